//! Hands the batch from writer to writer, and to the committer when it is full.
//!
//! The batch is not handed to a particular writer: the next one that runs takes it. A woken writer
//! may be far back in its runtime's queue, and the batch would wait for it although other writers
//! are ready.

use std::{
    ops::{Deref, DerefMut},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::batch::Batch;

/// How long an open batch waits for writers that want it and do not take it. A future that is
/// polled once and then never again must not delay the commit of all others.
const LEFT: Duration = Duration::from_millis(100);

/// Where the batch is while no writer and no committer uses it.
pub(super) struct BatchQueue {
    state: Mutex<QueueState>,
    /// Wakes a writer: the batch may be free.
    free: Notify,
    /// Wakes the committer: there is a batch to commit, there may be one soon, or the queue is
    /// closed.
    full: Condvar,
}

struct QueueState {
    /// Available to the next writer.
    free: Option<Box<Batch>>,
    /// Ready for the committer.
    full: Option<Box<Batch>>,
    /// Writers waiting for the batch.
    waiters: usize,
    /// The committer sleeps without a timeout, because there are no writers and no open batch.
    asleep: bool,
    closed: bool,
}

impl QueueState {
    /// Whether there are no writers and no open batch. The committer must be woken when that
    /// changes.
    fn is_at_rest(&self) -> bool {
        self.waiters == 0 && self.free.as_ref().is_some_and(|batch| batch.writes() == 0)
    }

    /// Whether an open batch is available to the next writer.
    fn has_work(&self) -> bool {
        self.free.as_ref().is_some_and(|batch| batch.writes() > 0)
    }
}

impl BatchQueue {
    pub(super) fn new(batch: Batch) -> Self {
        let state =
            QueueState { free: Some(Box::new(batch)), full: None, waiters: 0, asleep: false, closed: false };
        Self { state: Mutex::new(state), free: Notify::new(), full: Condvar::new() }
    }

    /// Waits for exclusive use of the batch.
    pub(super) async fn acquire(&self) -> BatchGuard<'_> {
        let waiter = Waiter::new(self);
        loop {
            if let Some(guard) = waiter.grant() {
                return guard;
            }
            self.free.notified().await;
        }
    }

    /// Waits for a batch to commit; `None` after [`close`](Self::close).
    pub(super) fn full(&self) -> Option<BatchGuard<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(batch) = state.full.take() {
                return Some(BatchGuard { queue: self, batch: Some(batch) });
            }
            if state.closed {
                return None;
            }
            if state.is_at_rest() {
                state.asleep = true;
                state = self.full.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.asleep = false;
                continue;
            }
            let (still, waited) = self.full.wait_timeout(state, LEFT).unwrap_or_else(PoisonError::into_inner);
            state = still;
            if waited.timed_out() && state.has_work() {
                state.full = state.free.take();
            } else if waited.timed_out() && state.free.is_some() {
                // The writer that was notified has not taken the batch: notify the next one.
                self.free.notify_one();
            }
        }
    }

    /// Stops the committer once nothing is left to commit.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.full.notify_one();
    }

    /// Makes the batch available. It goes to the committer if no writer waits, or if it has as many
    /// writes as writers waited when it began: under constant load there is always one waiting.
    fn put_back(&self, mut state: MutexGuard<'_, QueueState>, mut batch: Box<Batch>) {
        if batch.writes() == 1 {
            batch.quota = 1 + state.waiters;
        }
        let full = batch.writes() > 0 && (state.waiters == 0 || batch.writes() >= batch.quota);
        let awaited = state.waiters > 0;
        *(if full { &mut state.full } else { &mut state.free }) = Some(batch);
        // A waiting writer may never be polled again, so the committer must apply its timeout.
        let wake = full || (state.asleep && !state.is_at_rest());
        drop(state);
        if wake {
            self.full.notify_one();
        }
        if !full && awaited {
            self.free.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiting writer.
struct Waiter<'d> {
    queue: &'d BatchQueue,
}

impl<'d> Waiter<'d> {
    fn new(queue: &'d BatchQueue) -> Self {
        queue.lock().waiters += 1;
        Self { queue }
    }

    fn grant(&self) -> Option<BatchGuard<'d>> {
        self.queue.lock().free.take().map(|batch| BatchGuard { queue: self.queue, batch: Some(batch) })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.waiters -= 1;
        if state.waiters == 0
            && let Some(batch) = state.free.take()
        {
            // The batch may have been made available for this writer, which is gone now.
            self.queue.put_back(state, batch);
        }
    }
}

/// Exclusive use of the batch until dropped.
pub(super) struct BatchGuard<'d> {
    queue: &'d BatchQueue,
    batch: Option<Box<Batch>>,
}

impl Deref for BatchGuard<'_> {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        self.batch.as_ref().expect("taken only in drop")
    }
}

impl DerefMut for BatchGuard<'_> {
    fn deref_mut(&mut self) -> &mut Batch {
        self.batch.as_mut().expect("taken only in drop")
    }
}

impl Drop for BatchGuard<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.queue.put_back(self.queue.lock(), batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future as _,
        pin::pin,
        task::{Context, Waker},
    };

    use rusqlite::Connection;

    use super::*;

    /// Much longer than [`LEFT`].
    const LIMIT: Duration = Duration::from_secs(10);

    fn queue() -> BatchQueue {
        BatchQueue::new(Batch::new(Connection::open_in_memory().unwrap()))
    }

    /// Takes the batch if it is available now.
    fn at_once(queue: &BatchQueue) -> Option<BatchGuard<'_>> {
        match pin!(queue.acquire()).poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(guard) => Some(guard),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn one_writer_at_a_time_and_the_last_hands_over_to_the_committer() {
        let queue = queue();
        let mut first = at_once(&queue).unwrap();
        assert!(at_once(&queue).is_none());
        let _told = first.join();
        drop(first);
        assert!(at_once(&queue).is_none(), "it is ready for the committer");
        let mut committing = queue.full().unwrap();
        assert_eq!(committing.take_waiting().len(), 1);
        drop(committing);
        assert!(at_once(&queue).is_some());
    }

    #[test]
    fn waiting_writer_delays_the_committer_until_it_is_dropped() {
        let queue = queue();
        let mut first = at_once(&queue).unwrap();
        let mut second = Box::pin(queue.acquire());
        assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let _told = first.join();
        drop(first);
        assert!(queue.lock().full.is_none());
        drop(second);
        assert!(
            queue.lock().full.is_some(),
            "dropping the waiting writer must hand the batch to the committer"
        );
    }

    #[test]
    fn writer_that_is_never_polled_does_not_block_the_commit() {
        let queue = queue();
        let mut first = at_once(&queue).unwrap();
        let mut parked = Box::pin(queue.acquire());
        assert!(parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let _told = first.join();
        drop(first);
        let mut committing = queue.full().expect("the committer takes the batch after its timeout");
        assert_eq!(committing.take_waiting().len(), 1);
        drop(committing);
        assert!(
            parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready(),
            "the parked writer still gets the batch"
        );
    }

    #[test]
    fn batch_begun_before_the_committer_waits_is_committed() {
        let queue = queue();
        let mut first = at_once(&queue).unwrap();
        let (mut second, mut parked) = (Box::pin(queue.acquire()), Box::pin(queue.acquire()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending() && parked.as_mut().poll(&mut cx).is_pending());
        let told = [first.join()];
        drop(first);
        let std::task::Poll::Ready(mut guard) = second.as_mut().poll(&mut cx) else {
            panic!("expected the batch to be free")
        };
        std::thread::scope(|scope| {
            let (begun, may_go_on) = std::sync::mpsc::channel();
            let committer = scope.spawn({
                let queue = &queue;
                move || {
                    begun.send(()).unwrap();
                    queue.full().map(|mut batch| batch.take_waiting().len())
                }
            });
            may_go_on.recv().unwrap();
            let _told = (told, guard.join());
            drop(guard);
            assert_eq!(committer.join().unwrap(), Some(2));
        });
    }

    #[test]
    fn free_batch_goes_to_the_next_writer_when_the_first_is_not_polled() {
        let queue = queue();
        let mut cx = Context::from_waker(Waker::noop());
        let guard = at_once(&queue).unwrap();
        let (mut parked, mut next) = (Box::pin(queue.acquire()), Box::pin(queue.acquire()));
        assert!(parked.as_mut().poll(&mut cx).is_pending() && next.as_mut().poll(&mut cx).is_pending());
        drop(guard);
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(queue.full().is_none()));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            drop(runtime.block_on(next));
            drop(parked);
            queue.close();
        });
    }

    #[test]
    fn sleeping_committer_wakes_writers_behind_one_that_is_not_polled() {
        let queue = queue();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(queue.full().is_none()));
            while !queue.lock().asleep {
                std::thread::yield_now();
            }
            let refusing = at_once(&queue).unwrap();
            let (mut parked, mut next) = (Box::pin(queue.acquire()), Box::pin(queue.acquire()));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(parked.as_mut().poll(&mut cx).is_pending() && next.as_mut().poll(&mut cx).is_pending());
            drop(refusing);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let guard = runtime.block_on(async { tokio::time::timeout(LIMIT, next).await });
            drop(parked);
            queue.close();
            assert!(guard.is_ok(), "the waiting writer was not notified that the batch is free");
        });
    }

    #[test]
    fn constant_load_does_not_delay_the_commit_forever() {
        let queue = queue();
        let mut waiters: Vec<_> = (0..3).map(|_| Box::pin(queue.acquire())).collect();
        let mut told = Vec::new();
        for joined in 1..=3 {
            let mut guard = at_once(&queue).unwrap();
            for waiter in &mut waiters {
                assert!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            told.push(guard.join());
            drop(guard);
            assert!(queue.lock().full.is_none(), "{joined}");
        }
        let mut fourth = at_once(&queue).unwrap();
        told.push(fourth.join());
        drop(fourth);
        assert!(queue.lock().full.is_some(), "the batch has as many writes as writers waited when it began");
    }

    #[test]
    fn closed_queue_returns_the_last_batch_and_then_none() {
        let queue = queue();
        let mut guard = at_once(&queue).unwrap();
        let _told = guard.join();
        drop(guard);
        queue.close();
        let mut left = queue.full().unwrap();
        left.take_waiting();
        drop(left);
        assert!(queue.full().is_none());
    }
}
