//! Batches concurrent jobs: one transaction, call or fsync for all of them. While one batch runs
//! the next one collects, so the cost per job falls under load, and without load no job waits for
//! others.

use std::{
    collections::HashMap,
    hash::Hash,
    iter, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use crate::Tasks;

/// Work that is done in batches.
pub trait Work: Send + Sync + 'static {
    /// Jobs with the same key share a queue; queues are independent.
    type Key: Copy + Eq + Hash + Send + Sync + 'static;
    /// The input of one caller.
    type Job: Send + 'static;
    /// The result for that caller.
    type Answer: Send + 'static;

    /// Name of the task and the metric label.
    const NAME: &'static str;
    /// Maximum jobs waiting per queue. More are rejected at once.
    const MAX_WAITING: usize;
    /// Maximum concurrent batches per queue.
    const LANES: usize;
    /// How long a job may wait to be started. A started job is waited for: the work has its own
    /// limits.
    const PATIENCE: Duration;

    /// Takes the next batch from a non-empty queue; it must include the first job. The others keep
    /// their order.
    fn choose<T>(waiting: &mut Vec<(Self::Job, T)>) -> Vec<(Self::Job, T)> {
        mem::take(waiting)
    }

    /// If a batch's results show that waiting jobs would fail too, the result for those jobs. They
    /// have already waited as long as the batch took to fail and need not wait that long again.
    fn give_up(_answers: &[Self::Answer]) -> Option<Self::Answer> {
        None
    }

    /// Runs a batch and returns the results in the order of the jobs.
    fn run(&self, key: Self::Key, jobs: Vec<Self::Job>) -> impl Future<Output = Vec<Self::Answer>> + Send;
}

/// Why a job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The queue is full. Nothing was done.
    #[error("too many jobs are waiting")]
    Full,
    /// The job was not started in time. Nothing was done.
    #[error("the job was not started in time")]
    Late,
    /// The batch panicked or was dropped at shutdown. Whether the job was done is unknown.
    #[error("the batch was aborted")]
    Aborted,
}

/// Runs jobs in batches.
pub struct Batcher<W: Work>(Arc<Shared<W>>);

struct Shared<W: Work> {
    work: W,
    tasks: Tasks,
    /// Has an entry for a key while a batch of that key runs.
    lines: Mutex<HashMap<W::Key, Line<W>>>,
    next: AtomicU64,
}

/// Where the result goes.
struct Caller<A> {
    number: u64,
    answer: oneshot::Sender<A>,
}

type Asked<W> = (<W as Work>::Job, Caller<<W as Work>::Answer>);

struct Line<W: Work> {
    waiting: Vec<Asked<W>>,
    lanes: usize,
}

impl<W: Work> Batcher<W> {
    /// Creates empty queues. Batches run in tasks of their own, so that a caller that goes away
    /// does not cancel the others' jobs.
    pub fn new(work: W, tasks: Tasks) -> Self {
        Self(Arc::new(Shared { work, tasks, lines: Mutex::default(), next: AtomicU64::new(0) }))
    }

    /// Queues a job and waits for its result. Dropping the future before the batch starts cancels
    /// the job.
    pub async fn ask(&self, key: W::Key, job: W::Job) -> Result<W::Answer, BatchError> {
        let (answer, mut answer_rx) = oneshot::channel();
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        if let Some(lane) = self.0.join(key, (job, Caller { number, answer }))? {
            let shared = Arc::clone(&self.0);
            self.0.tasks.spawn(W::NAME, async move { lane.run(&shared.work).await });
        }
        let outcome = match timeout(W::PATIENCE, &mut answer_rx).await {
            Ok(outcome) => outcome,
            Err(_elapsed) if self.0.leave(key, number) => return Err(BatchError::Late),
            Err(_elapsed) => answer_rx.await,
        };
        outcome.map_err(|_| BatchError::Aborted)
    }
}

impl<W: Work> Shared<W> {
    /// Queues a job. Returns a lane to run if one more batch may run concurrently.
    fn join(self: &Arc<Self>, key: W::Key, asked: Asked<W>) -> Result<Option<Lane<W>>, BatchError> {
        let mut lines = self.lines();
        let line = lines.entry(key).or_insert_with(|| Line { waiting: Vec::new(), lanes: 0 });
        if line.waiting.len() >= W::MAX_WAITING {
            return Err(BatchError::Full);
        }
        line.waiting.push(asked);
        if line.lanes >= W::LANES {
            return Ok(None);
        }
        line.lanes += 1;
        Ok(Some(Lane { shared: Arc::clone(self), key, open: true }))
    }

    /// Removes a job from the queue. `false` if it has been started.
    fn leave(&self, key: W::Key, number: u64) -> bool {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(&key) else { return false };
        let place = line.waiting.iter().position(|(_, caller)| caller.number == number);
        place.map(|place| line.waiting.remove(place)).is_some()
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<W::Key, Line<W>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one batch after another.
struct Lane<W: Work> {
    shared: Arc<Shared<W>>,
    key: W::Key,
    open: bool,
}

impl<W: Work> Lane<W> {
    /// Runs until the queue is empty.
    async fn run(mut self, work: &W) {
        while let Some(batch) = self.take() {
            let (jobs, callers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            metrics::histogram!("urr_batch_size", "work" => W::NAME).record(count(jobs.len()));
            let answers = work.run(self.key, jobs).await;
            if W::give_up(&answers).is_some() {
                for (caller, answer) in
                    self.rest().into_iter().zip(iter::repeat_with(|| W::give_up(&answers)).flatten())
                {
                    let _ = caller.answer.send(answer);
                }
            }
            for (answer, caller) in answers.into_iter().zip(callers) {
                // Fails if the caller is gone; its job was done anyway.
                let _ = caller.answer.send(answer);
            }
        }
    }

    /// Takes all waiting callers, without running their jobs.
    fn rest(&self) -> Vec<Caller<W::Answer>> {
        let waiting = self.shared.lines().get_mut(&self.key).map(|line| mem::take(&mut line.waiting));
        waiting.unwrap_or_default().into_iter().map(|(_, caller)| caller).collect()
    }

    /// Takes the next batch. Returns `None` and closes the lane if the queue is empty.
    fn take(&mut self) -> Option<Vec<Asked<W>>> {
        let shared = Arc::clone(&self.shared);
        let mut lines = shared.lines();
        let line = lines.get_mut(&self.key)?;
        line.waiting.retain(|(_, caller)| !caller.answer.is_closed());
        if !line.waiting.is_empty() {
            return Some(W::choose(&mut line.waiting));
        }
        self.close(&mut lines);
        None
    }

    fn close(&mut self, lines: &mut HashMap<W::Key, Line<W>>) {
        self.open = false;
        let Some(line) = lines.get_mut(&self.key) else { return };
        line.lanes -= 1;
        if line.lanes == 0 {
            // If the batch panicked, this drops the waiting callers, which then see `Aborted`.
            lines.remove(&self.key);
        }
    }
}

impl<W: Work> Drop for Lane<W> {
    fn drop(&mut self) {
        if self.open {
            let shared = Arc::clone(&self.shared);
            self.close(&mut shared.lines());
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a batch is far smaller than 2^52")]
fn count(jobs: usize) -> f64 {
    jobs as f64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Semaphore;

    use super::*;

    /// A result after which waiting jobs are given up.
    const HOPELESS: u32 = 404;

    /// Doubles numbers when permitted, at most two per batch; panics at 13.
    struct Doubling<const LANES: usize> {
        may: Arc<Semaphore>,
        runs: Arc<AtomicUsize>,
    }

    impl<const LANES: usize> Work for Doubling<LANES> {
        type Key = ();
        type Job = u32;
        type Answer = (u32, usize);

        const NAME: &'static str = "test.doubling";
        const MAX_WAITING: usize = 3;
        const LANES: usize = LANES;
        const PATIENCE: Duration = Duration::from_secs(2);

        fn choose<T>(waiting: &mut Vec<(u32, T)>) -> Vec<(u32, T)> {
            waiting.drain(..waiting.len().min(2)).collect()
        }

        fn give_up(answers: &[(u32, usize)]) -> Option<(u32, usize)> {
            answers.iter().any(|(doubled, _)| *doubled == HOPELESS * 2).then_some((0, 0))
        }

        async fn run(&self, (): (), jobs: Vec<u32>) -> Vec<(u32, usize)> {
            self.may.acquire().await.unwrap().forget();
            assert!(!jobs.contains(&13), "on purpose");
            self.runs.fetch_add(1, Ordering::SeqCst);
            jobs.iter().map(|job| (job * 2, jobs.len())).collect()
        }
    }

    fn doubling<const LANES: usize>() -> (Arc<Batcher<Doubling<LANES>>>, Arc<Semaphore>, Arc<AtomicUsize>) {
        let (may, runs) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = Doubling { may: Arc::clone(&may), runs: Arc::clone(&runs) };
        (Arc::new(Batcher::new(work, Tasks::new())), may, runs)
    }

    /// Queues a job; it is in the queue when this returns.
    async fn ask<const LANES: usize>(
        batcher: &Arc<Batcher<Doubling<LANES>>>,
        job: u32,
    ) -> tokio::task::JoinHandle<Result<(u32, usize), BatchError>> {
        let asking = Arc::clone(batcher);
        #[expect(clippy::disallowed_methods, reason = "a test's callers need no shutdown")]
        let asked = tokio::spawn(async move { asking.ask((), job).await });
        // Single-threaded runtime: yielding lets all other tasks run first.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        asked
    }

    #[tokio::test]
    async fn jobs_queued_during_a_batch_run_together_with_their_own_results() {
        let (batcher, may, runs) = doubling::<1>();
        let first = ask(&batcher, 1).await;
        let (second, third, fourth) =
            (ask(&batcher, 2).await, ask(&batcher, 3).await, ask(&batcher, 4).await);
        may.add_permits(3);
        assert_eq!(first.await.unwrap(), Ok((2, 1)));
        assert_eq!(second.await.unwrap(), Ok((4, 2)));
        assert_eq!(third.await.unwrap(), Ok((6, 2)));
        assert_eq!(fourth.await.unwrap(), Ok((8, 1)));
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn full_queue_rejects_and_dropped_jobs_are_not_run() {
        let (batcher, may, runs) = doubling::<1>();
        let first = ask(&batcher, 1).await;
        let waiting = [ask(&batcher, 2).await, ask(&batcher, 3).await, ask(&batcher, 4).await];
        assert_eq!(ask(&batcher, 5).await.await.unwrap(), Err(BatchError::Full));
        for gone in waiting {
            gone.abort();
            assert!(gone.await.unwrap_err().is_cancelled());
        }
        may.add_permits(2);
        assert_eq!(first.await.unwrap(), Ok((2, 1)));
        assert_eq!(batcher.ask((), 6).await, Ok((12, 1)));
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn queued_jobs_time_out_and_started_jobs_do_not() {
        let (batcher, may, runs) = doubling::<1>();
        let (begun, waiting) = (ask(&batcher, 1).await, ask(&batcher, 2).await);
        assert_eq!(waiting.await.unwrap(), Err(BatchError::Late));
        tokio::time::sleep(Duration::from_mins(1)).await;
        may.add_permits(2);
        assert_eq!(begun.await.unwrap(), Ok((2, 1)));
        assert_eq!(batcher.ask((), 3).await, Ok((6, 1)));
        assert_eq!(runs.load(Ordering::SeqCst), 2, "the job that timed out was not run");
    }

    #[tokio::test]
    async fn jobs_behind_a_hopeless_batch_fail_at_once() {
        let (batcher, may, runs) = doubling::<1>();
        let (hopeless, behind, last) =
            (ask(&batcher, HOPELESS).await, ask(&batcher, 2).await, ask(&batcher, 3).await);
        may.add_permits(1);
        assert_eq!(hopeless.await.unwrap(), Ok((HOPELESS * 2, 1)));
        assert_eq!(behind.await.unwrap(), Ok((0, 0)), "not run");
        assert_eq!(last.await.unwrap(), Ok((0, 0)), "not run");
        may.add_permits(1);
        assert_eq!(batcher.ask((), 4).await, Ok((8, 1)), "the next job runs");
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn panic_fails_all_waiting_jobs_and_the_next_job_runs() {
        let (batcher, may, _) = doubling::<1>();
        let (unlucky, behind) = (ask(&batcher, 13).await, ask(&batcher, 2).await);
        may.add_permits(2);
        assert_eq!(unlucky.await.unwrap(), Err(BatchError::Aborted));
        assert_eq!(behind.await.unwrap(), Err(BatchError::Aborted));
        assert_eq!(batcher.ask((), 3).await, Ok((6, 1)));
    }

    #[tokio::test]
    async fn panic_in_one_lane_leaves_the_queue_to_the_other() {
        let (batcher, may, runs) = doubling::<2>();
        let (unlucky, beside) = (ask(&batcher, 13).await, ask(&batcher, 1).await);
        let (behind, last) = (ask(&batcher, 2).await, ask(&batcher, 3).await);
        may.add_permits(1);
        assert_eq!(unlucky.await.unwrap(), Err(BatchError::Aborted));
        may.add_permits(2);
        assert_eq!(beside.await.unwrap(), Ok((2, 1)));
        assert_eq!(behind.await.unwrap(), Ok((4, 2)));
        assert_eq!(last.await.unwrap(), Ok((6, 2)));
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        assert!(batcher.0.lines().is_empty(), "both lanes are closed");
    }
}
