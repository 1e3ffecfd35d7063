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
pub(super) struct Desk {
    lying: Mutex<Lying>,
    /// Wakes a writer: the batch may be free.
    free: Notify,
    /// Wakes the committer: there is a batch to commit, there may be one soon, or the desk is
    /// closed.
    full: Condvar,
}

struct Lying {
    /// Available to the next writer.
    free: Option<Box<Batch>>,
    /// Ready for the committer.
    full: Option<Box<Batch>>,
    /// Writers waiting for the batch.
    wanting: usize,
    /// The committer sleeps without a timeout, because there are no writers and no open batch.
    asleep: bool,
    closed: bool,
}

impl Lying {
    /// Whether there are no writers and no open batch. The committer must be woken when that
    /// changes.
    fn is_at_rest(&self) -> bool {
        self.wanting == 0 && self.free.as_ref().is_some_and(|batch| batch.writes() == 0)
    }

    /// Whether an open batch is available to the next writer.
    fn has_work(&self) -> bool {
        self.free.as_ref().is_some_and(|batch| batch.writes() > 0)
    }
}

impl Desk {
    pub(super) fn new(batch: Batch) -> Self {
        let lying =
            Lying { free: Some(Box::new(batch)), full: None, wanting: 0, asleep: false, closed: false };
        Self { lying: Mutex::new(lying), free: Notify::new(), full: Condvar::new() }
    }

    /// Waits for exclusive use of the batch.
    pub(super) async fn turn(&self) -> Turn<'_> {
        let wish = Wish::new(self);
        loop {
            if let Some(turn) = wish.grant() {
                return turn;
            }
            self.free.notified().await;
        }
    }

    /// Waits for a batch to commit; `None` after [`close`](Self::close).
    pub(super) fn full(&self) -> Option<Turn<'_>> {
        let mut lying = self.look();
        loop {
            if let Some(batch) = lying.full.take() {
                return Some(Turn { desk: self, batch: Some(batch) });
            }
            if lying.closed {
                return None;
            }
            if lying.is_at_rest() {
                lying.asleep = true;
                lying = self.full.wait(lying).unwrap_or_else(PoisonError::into_inner);
                lying.asleep = false;
                continue;
            }
            let (still, waited) = self.full.wait_timeout(lying, LEFT).unwrap_or_else(PoisonError::into_inner);
            lying = still;
            if waited.timed_out() && lying.has_work() {
                lying.full = lying.free.take();
            } else if waited.timed_out() && lying.free.is_some() {
                // The writer that was notified has not taken the batch: notify the next one.
                self.free.notify_one();
            }
        }
    }

    /// Stops the committer once nothing is left to commit.
    pub(super) fn close(&self) {
        self.look().closed = true;
        self.full.notify_one();
    }

    /// Makes the batch available. It goes to the committer if no writer waits, or if it has as many
    /// writes as writers waited when it began: under constant load there is always one waiting.
    fn lay(&self, mut lying: MutexGuard<'_, Lying>, mut batch: Box<Batch>) {
        if batch.writes() == 1 {
            batch.quota = 1 + lying.wanting;
        }
        let full = batch.writes() > 0 && (lying.wanting == 0 || batch.writes() >= batch.quota);
        let awaited = lying.wanting > 0;
        *(if full { &mut lying.full } else { &mut lying.free }) = Some(batch);
        // A waiting writer may never be polled again, so the committer must apply its timeout.
        let wake = full || (lying.asleep && !lying.is_at_rest());
        drop(lying);
        if wake {
            self.full.notify_one();
        }
        if !full && awaited {
            self.free.notify_one();
        }
    }

    fn look(&self) -> MutexGuard<'_, Lying> {
        self.lying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiting writer.
struct Wish<'d> {
    desk: &'d Desk,
}

impl<'d> Wish<'d> {
    fn new(desk: &'d Desk) -> Self {
        desk.look().wanting += 1;
        Self { desk }
    }

    fn grant(&self) -> Option<Turn<'d>> {
        self.desk.look().free.take().map(|batch| Turn { desk: self.desk, batch: Some(batch) })
    }
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        let mut lying = self.desk.look();
        lying.wanting -= 1;
        if lying.wanting == 0
            && let Some(batch) = lying.free.take()
        {
            // The batch may have been made available for this writer, which is gone now.
            self.desk.lay(lying, batch);
        }
    }
}

/// Exclusive use of the batch until dropped.
pub(super) struct Turn<'d> {
    desk: &'d Desk,
    batch: Option<Box<Batch>>,
}

impl Deref for Turn<'_> {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        self.batch.as_ref().expect("taken only in drop")
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Batch {
        self.batch.as_mut().expect("taken only in drop")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.desk.lay(self.desk.look(), batch);
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

    fn desk() -> Desk {
        Desk::new(Batch::new(Connection::open_in_memory().unwrap()))
    }

    /// Takes the batch if it is available now.
    fn at_once(desk: &Desk) -> Option<Turn<'_>> {
        match pin!(desk.turn()).poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(turn) => Some(turn),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn one_writer_at_a_time_and_the_last_hands_over_to_the_committer() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        assert!(at_once(&desk).is_none());
        let _told = first.join();
        drop(first);
        assert!(at_once(&desk).is_none(), "it is ready for the committer");
        let mut committing = desk.full().unwrap();
        assert_eq!(committing.take_waiting().len(), 1);
        drop(committing);
        assert!(at_once(&desk).is_some());
    }

    #[test]
    fn waiting_writer_delays_the_committer_until_it_is_dropped() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        let mut second = Box::pin(desk.turn());
        assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let _told = first.join();
        drop(first);
        assert!(desk.look().full.is_none());
        drop(second);
        assert!(
            desk.look().full.is_some(),
            "dropping the waiting writer must hand the batch to the committer"
        );
    }

    #[test]
    fn writer_that_is_never_polled_does_not_block_the_commit() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        let mut parked = Box::pin(desk.turn());
        assert!(parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let _told = first.join();
        drop(first);
        let mut committing = desk.full().expect("the committer takes the batch after its timeout");
        assert_eq!(committing.take_waiting().len(), 1);
        drop(committing);
        assert!(
            parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready(),
            "the parked writer still gets its turn"
        );
    }

    #[test]
    fn batch_begun_before_the_committer_waits_is_committed() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        let (mut second, mut parked) = (Box::pin(desk.turn()), Box::pin(desk.turn()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending() && parked.as_mut().poll(&mut cx).is_pending());
        let told = [first.join()];
        drop(first);
        let std::task::Poll::Ready(mut turn) = second.as_mut().poll(&mut cx) else {
            panic!("expected the batch to be free")
        };
        std::thread::scope(|scope| {
            let (begun, may_go_on) = std::sync::mpsc::channel();
            let committer = scope.spawn({
                let desk = &desk;
                move || {
                    begun.send(()).unwrap();
                    desk.full().map(|mut batch| batch.take_waiting().len())
                }
            });
            may_go_on.recv().unwrap();
            let _told = (told, turn.join());
            drop(turn);
            assert_eq!(committer.join().unwrap(), Some(2));
        });
    }

    #[test]
    fn free_batch_goes_to_the_next_writer_when_the_first_is_not_polled() {
        let desk = desk();
        let mut cx = Context::from_waker(Waker::noop());
        let turn = at_once(&desk).unwrap();
        let (mut parked, mut next) = (Box::pin(desk.turn()), Box::pin(desk.turn()));
        assert!(parked.as_mut().poll(&mut cx).is_pending() && next.as_mut().poll(&mut cx).is_pending());
        drop(turn);
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(desk.full().is_none()));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            drop(runtime.block_on(next));
            drop(parked);
            desk.close();
        });
    }

    #[test]
    fn sleeping_committer_wakes_writers_behind_one_that_is_not_polled() {
        let desk = desk();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(desk.full().is_none()));
            while !desk.look().asleep {
                std::thread::yield_now();
            }
            let refusing = at_once(&desk).unwrap();
            let (mut parked, mut next) = (Box::pin(desk.turn()), Box::pin(desk.turn()));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(parked.as_mut().poll(&mut cx).is_pending() && next.as_mut().poll(&mut cx).is_pending());
            drop(refusing);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let turn = runtime.block_on(async { tokio::time::timeout(LIMIT, next).await });
            drop(parked);
            desk.close();
            assert!(turn.is_ok(), "the waiting writer was not notified that the batch is free");
        });
    }

    #[test]
    fn constant_load_does_not_delay_the_commit_forever() {
        let desk = desk();
        let mut wishes: Vec<_> = (0..3).map(|_| Box::pin(desk.turn())).collect();
        let mut told = Vec::new();
        for joined in 1..=3 {
            let mut turn = at_once(&desk).unwrap();
            for wish in &mut wishes {
                assert!(wish.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            told.push(turn.join());
            drop(turn);
            assert!(desk.look().full.is_none(), "{joined}");
        }
        let mut fourth = at_once(&desk).unwrap();
        told.push(fourth.join());
        drop(fourth);
        assert!(desk.look().full.is_some(), "the batch has as many writes as writers waited when it began");
    }

    #[test]
    fn closed_desk_returns_the_last_batch_and_then_none() {
        let desk = desk();
        let mut turn = at_once(&desk).unwrap();
        let _told = turn.join();
        drop(turn);
        desk.close();
        let mut left = desk.full().unwrap();
        left.take_waiting();
        drop(left);
        assert!(desk.full().is_none());
    }
}
