//! The hashing threads. There are few and their queue is short, so a flood of sign-ins delays or
//! refuses sign-ins only and does not affect other requests.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};
use urr_contracts::auth::Error;
use urr_kernel::Ids;

use super::hash::{self, BadHash, HashBuffer, HashCost, SALT_LEN, Terms, Verdict, WorkCounter};
use crate::Failure;

/// Permits per thread: one running hash and 63 queued. At 16 ms each the last one waits about a
/// second.
const PERMITS_PER_WORKER: usize = 64;

/// Settings of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// Number of threads. Each holds the memory of one hash.
    pub workers: usize,
    /// Cost of new hashes.
    pub cost: HashCost,
    /// Maximum wait for a hash, including the queue. After that the request fails as busy.
    pub patience: Duration,
}

impl Default for Hashing {
    /// All cores but one, which is left for other requests.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            workers: cores.saturating_sub(1).max(1),
            cost: HashCost::STANDARD,
            patience: Duration::from_secs(3),
        }
    }
}

/// Why a hash is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoHash {
    /// The queue is full, or the wait was too long.
    #[error("the hashing queue is full")]
    Busy,
    /// The stored hash is damaged.
    #[error(transparent)]
    Bad(#[from] BadHash),
}

impl From<NoHash> for Failure {
    fn from(error: NoHash) -> Self {
        match error {
            NoHash::Busy => Error::Busy.into(),
            NoHash::Bad(bad) => Self::internal(bad),
        }
    }
}

/// A job holds its permit until it is done or found to be abandoned.
enum Job {
    Make {
        password: String,
        salt: [u8; SALT_LEN],
        reply: oneshot::Sender<String>,
        _permit: OwnedSemaphorePermit,
    },
    Verify {
        password: String,
        stored: Option<String>,
        salt: [u8; SALT_LEN],
        imported: Option<u32>,
        reply: oneshot::Sender<Result<Verdict, BadHash>>,
        _permit: OwnedSemaphorePermit,
    },
}

/// The pool. Its threads end when it is dropped.
pub(crate) struct Pool {
    permits: Arc<Semaphore>,
    queue: SyncSender<Job>,
    patience: Duration,
    ids: Ids,
    /// Work done by all threads.
    #[cfg(test)]
    pub(crate) work: Arc<WorkCounter>,
}

impl Pool {
    pub(crate) fn start(hashing: Hashing, ids: Ids) -> Self {
        let workers = hashing.workers.max(1);
        let permits = workers * PERMITS_PER_WORKER;
        let (queue, jobs) = sync_channel(permits);
        let jobs = Arc::new(Mutex::new(jobs));
        let work = Arc::new(WorkCounter::default());
        for number in 0..workers {
            let (jobs, cost) = (Arc::clone(&jobs), hashing.cost);
            let memory = HashBuffer::new(Arc::clone(&work));
            #[expect(
                clippy::disallowed_methods,
                reason = "the threads of the runtime would let hundreds of hashes run side by side"
            )]
            thread::Builder::new()
                .name(format!("hash-{number}"))
                .spawn(move || run_all(&jobs, cost, memory))
                .expect("a thread can be created at start");
        }
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            queue,
            patience: hashing.patience,
            ids,
            #[cfg(test)]
            work,
        }
    }

    /// Takes a permit. Call this before any other work of a request, so that a flood beyond the
    /// limit costs next to nothing.
    pub(crate) fn enter(&self) -> Result<HashPermit<'_>, NoHash> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        Ok(HashPermit { pool: self, permit: permit.map_err(|_| refused_one("full"))? })
    }

    fn give(&self, job: Job) -> Result<(), NoHash> {
        // The queue has room for as many jobs as there are permits.
        self.queue.try_send(job).map_err(|_| refused_one("gone"))
    }

    async fn wait<T>(&self, answer: oneshot::Receiver<T>) -> Result<T, NoHash> {
        match timeout(self.patience, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(refused_one("late")),
        }
    }
}

/// A permit for one hash.
pub(crate) struct HashPermit<'p> {
    pool: &'p Pool,
    permit: OwnedSemaphorePermit,
}

impl HashPermit<'_> {
    /// Hashes a new password.
    pub(crate) async fn make(self, password: &str) -> Result<String, NoHash> {
        let (reply, answer) = oneshot::channel();
        let (password, salt) = (password.to_owned(), self.pool.ids.bytes());
        self.pool.give(Job::Make { password, salt, reply, _permit: self.permit })?;
        self.pool.wait(answer).await
    }

    /// Compares a password with a stored hash, or with none, which never matches and takes as long.
    /// `imported` is the highest bcrypt cost among imported accounts.
    pub(crate) async fn verify(
        self,
        password: &str,
        stored: Option<&str>,
        imported: Option<u32>,
    ) -> Result<Verdict, NoHash> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Verify {
            password: password.to_owned(),
            stored: stored.map(str::to_owned),
            salt: self.pool.ids.bytes(),
            imported,
            reply,
            _permit: self.permit,
        };
        self.pool.give(job)?;
        Ok(self.pool.wait(answer).await??)
    }
}

fn refused_one(why: &'static str) -> NoHash {
    metrics::counter!("urr_auth_hash_refused_total", "why" => why).increment(1);
    NoHash::Busy
}

fn run_all(jobs: &Mutex<Receiver<Job>>, cost: HashCost, mut memory: HashBuffer) {
    loop {
        // The lock is held while waiting for a job; other workers wait for the lock instead, which
        // has the same effect.
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Err(_) => return,
            Ok(job) => run(job, cost, &mut memory),
        }
    }
}

/// Runs a job, unless its caller has given up.
fn run(job: Job, cost: HashCost, memory: &mut HashBuffer) {
    match job {
        Job::Make { reply, .. } if reply.is_closed() => {}
        Job::Verify { reply, .. } if reply.is_closed() => {}
        Job::Make { password, salt, reply, _permit } => {
            let _left = reply.send(hash::make(&password, salt, cost, memory));
        }
        Job::Verify { password, stored, salt, imported, reply, _permit } => {
            let terms = Terms { cost, salt, imported };
            let _left = reply.send(hash::compare(&password, stored.as_deref(), terms, memory));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use urr_testkit::{fixed, within};

    use super::*;

    const CHEAP: HashCost = HashCost { memory_kib: 64, passes: 1 };
    const LONG: Duration = Duration::from_mins(1);

    impl Pool {
        /// A pool without permits.
        pub(crate) fn full() -> Self {
            Self { permits: Arc::new(Semaphore::new(0)), ..Self::idle(1) }
        }

        /// A pool with permits but without threads, for the timeout.
        pub(crate) fn idle(permits: usize) -> Self {
            let (_, ids) = fixed();
            let (queue, jobs) = sync_channel(permits);
            // Keep the channel open, or the pool would look stopped.
            std::mem::forget(jobs);
            let permits = Arc::new(Semaphore::new(permits));
            Self { permits, queue, patience: Duration::from_millis(1), ids, work: Arc::default() }
        }
    }

    fn pool(workers: usize, cost: HashCost, patience: Duration) -> Pool {
        let (_, ids) = fixed();
        Pool::start(Hashing { workers, cost, patience }, ids)
    }

    #[tokio::test]
    async fn a_password_is_compared_and_an_old_hash_replaced() {
        let pool = pool(2, CHEAP, LONG);
        let verify = async |password, stored: &str| pool.enter()?.verify(password, Some(stored), None).await;
        let stored = pool.enter().unwrap().make("correct horse").await.unwrap();
        assert_eq!(verify("correct horse", &stored).await, Ok(Verdict::Right { upgrade: None }));
        assert_eq!(verify("wrong horse", &stored).await, Ok(Verdict::Wrong));
        let imported = bcrypt::hash("correct horse", 4).unwrap();
        let Ok(Verdict::Right { upgrade: Some(new) }) = verify("correct horse", &imported).await else {
            panic!("an imported hash is replaced")
        };
        assert_eq!(verify("correct horse", &new).await, Ok(Verdict::Right { upgrade: None }));
        assert_eq!(
            verify("x", "damaged").await,
            Err(NoHash::Bad(BadHash)),
            "a damaged hash is not a wrong password"
        );
    }

    #[tokio::test]
    async fn an_unknown_account_never_matches_a_password() {
        let pool = pool(1, CHEAP, LONG);
        for password in ["", "anything"] {
            assert_eq!(pool.enter().unwrap().verify(password, None, None).await, Ok(Verdict::Wrong));
        }
    }

    #[tokio::test]
    async fn hashing_requests_beyond_the_queue_limit_are_refused() {
        let pool = pool(1, HashCost { memory_kib: 1_024, passes: 1 }, LONG);
        let entered: Vec<_> = (0..4 * PERMITS_PER_WORKER).map(|_| pool.enter()).collect();
        let refused = entered.iter().filter(|entered| entered.is_err()).count();
        assert_eq!(refused, 3 * PERMITS_PER_WORKER);
        let served = join_all(entered.into_iter().flatten().map(|permit| permit.verify("x", None, None)));
        assert!(within(LONG, served).await.iter().all(Result::is_ok));
        assert!(pool.enter().is_ok(), "the permits are released");
    }

    #[tokio::test]
    async fn an_abandoned_hashing_permit_is_released() {
        let pool = pool(1, CHEAP, LONG);
        let permits: Vec<_> = (0..PERMITS_PER_WORKER).map(|_| pool.enter().unwrap()).collect();
        assert!(pool.enter().is_err());
        drop(permits);
        assert!(pool.enter().is_ok());
    }

    #[tokio::test]
    async fn a_hash_timeout_is_busy_and_keeps_its_permit() {
        let pool = Pool::idle(1);
        assert_eq!(pool.enter().unwrap().verify("x", None, None).await, Err(NoHash::Busy));
        assert!(pool.enter().is_err(), "the permit is held until a worker finds the job abandoned");
    }
}
