//! Whose turn it is to have the batch.
//!
//! A turn is not handed on but left: whoever runs next takes it. A writer that is woken for its turn may be far back in its runtime's
//! queue, and the batch would wait with it while others, who could have had it, come and stand in line.

use std::{
    ops::{Deref, DerefMut},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::batch::Batch;

/// How long a batch with work in it may lie for writers who want it and do not come: a future that is asked once and then left alone keeps
/// its wish, and must not keep everybody else's commit.
const LEFT: Duration = Duration::from_millis(100);

/// Where the batch lies while nobody has it.
pub(super) struct Desk {
    lying: Mutex<Lying>,
    /// Tells a writer that the batch may be free.
    free: Notify,
    /// Tells the committer that it has work, may have some soon, or that there will be none any more.
    full: Condvar,
}

struct Lying {
    /// For the next writer.
    free: Option<Box<Batch>>,
    /// For the committer.
    full: Option<Box<Batch>>,
    /// Writers who want a turn and have not had it.
    wanting: usize,
    /// The committer sleeps until it is told, because nothing is under way.
    asleep: bool,
    closed: bool,
}

impl Lying {
    /// Whether nothing is under way: the committer is told when that has changed.
    fn is_at_rest(&self) -> bool {
        self.wanting == 0 && self.free.as_ref().is_some_and(|batch| batch.writes() == 0)
    }

    /// Whether somebody's work lies there for the next writer.
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

    /// Waits for a turn.
    pub(super) async fn turn(&self) -> Turn<'_> {
        let wish = Wish::new(self);
        loop {
            if let Some(turn) = wish.grant() {
                return turn;
            }
            self.free.notified().await;
        }
    }

    /// Waits for a batch to commit. `None`: there will be no more.
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
                // Whoever was told of it did not come; the next one is told.
                self.free.notify_one();
            }
        }
    }

    /// No writer will come any more.
    pub(super) fn close(&self) {
        self.look().closed = true;
        self.full.notify_one();
    }

    /// Puts the batch where it belongs: the committer gets it when nobody else wants a turn, and when it is as large as the crowd was when
    /// it began, for somebody always wants one.
    fn lay(&self, mut lying: MutexGuard<'_, Lying>, mut batch: Box<Batch>) {
        if batch.writes() == 1 {
            batch.quota = 1 + lying.wanting;
        }
        let full = batch.writes() > 0 && (lying.wanting == 0 || batch.writes() >= batch.quota);
        let awaited = lying.wanting > 0;
        *(if full { &mut lying.full } else { &mut lying.free }) = Some(batch);
        // Whoever is awaited may not come, whether or not there is work: the committer has to look after it.
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

/// A writer that wants a turn.
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
            // Others may have left the batch for a writer that has gone away.
            self.desk.lay(lying, batch);
        }
    }
}

/// The batch, until it is dropped.
pub(super) struct Turn<'d> {
    desk: &'d Desk,
    batch: Option<Box<Batch>>,
}

impl Deref for Turn<'_> {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        self.batch.as_ref().expect("it is there until the turn ends")
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Batch {
        self.batch.as_mut().expect("it is there until the turn ends")
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

    /// Far longer than a batch may lie.
    const LIMIT: Duration = Duration::from_secs(10);

    fn desk() -> Desk {
        Desk::new(Batch::new(Connection::open_in_memory().unwrap()))
    }

    /// A turn that is there for the taking.
    fn at_once(desk: &Desk) -> Option<Turn<'_>> {
        match pin!(desk.turn()).poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(turn) => Some(turn),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn one_at_a_time_and_the_last_leaves_the_batch_to_the_committer() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        assert!(at_once(&desk).is_none());
        let _told = first.join();
        drop(first);
        assert!(at_once(&desk).is_none(), "it lies before the committer");
        let mut committing = desk.full().unwrap();
        assert_eq!(committing.take_waiting().len(), 1);
        drop(committing);
        assert!(at_once(&desk).is_some());
    }

    #[test]
    fn whoever_wants_a_turn_keeps_the_batch_from_the_committer_until_it_goes_away() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        let mut second = Box::pin(desk.turn());
        assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let _told = first.join();
        drop(first);
        assert!(desk.look().full.is_none());
        drop(second);
        assert!(desk.look().full.is_some(), "nobody else would have woken the committer");
    }

    #[test]
    fn whoever_wants_a_turn_and_never_comes_for_it_does_not_keep_others_from_their_commit() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        let mut parked = Box::pin(desk.turn());
        assert!(parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let _told = first.join();
        drop(first);
        let mut committing = desk.full().expect("the committer does not wait for ever");
        assert_eq!(committing.take_waiting().len(), 1);
        drop(committing);
        assert!(
            parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready(),
            "its turn is not lost"
        );
    }

    #[test]
    fn a_batch_that_the_committer_did_not_see_begin_is_committed_all_the_same() {
        let desk = desk();
        let mut first = at_once(&desk).unwrap();
        let (mut second, mut parked) = (Box::pin(desk.turn()), Box::pin(desk.turn()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending() && parked.as_mut().poll(&mut cx).is_pending());
        let told = [first.join()];
        drop(first);
        let std::task::Poll::Ready(mut turn) = second.as_mut().poll(&mut cx) else { panic!("it lies there") };
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
    fn a_free_batch_is_offered_to_the_next_when_the_first_does_not_come() {
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
    fn a_sleeping_committer_looks_after_those_who_wait_behind_one_that_does_not_come() {
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
            assert!(turn.is_ok(), "nobody told it that the batch is free");
        });
    }

    #[test]
    fn a_crowd_that_never_ends_does_not_keep_the_batch_for_ever() {
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
        assert!(desk.look().full.is_some(), "as many wrote as wanted to when the batch began");
    }

    #[test]
    fn a_closed_desk_gives_the_committer_what_is_left_and_then_nothing() {
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
