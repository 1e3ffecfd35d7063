//! The gate in the memory of this process.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher as _, RandomState},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use urr_kernel::{Clock, EventId, SeatId};

use super::{Entry, Owner};

/// Events are distributed over this many locks, so that concurrent sales rarely share one.
const SHARDS: usize = 16;

/// Marks per shard, including expired ones that are not yet removed: one for each seat of the
/// largest event (100,000) plus room for repeats. At about 112 bytes a mark this is 15 MB. A full
/// shard returns `Open`: the database decides alone.
const MAX_MARKS: usize = 131_072;

/// Expired marks removed per call. A call adds at most four marks, so removal is sixteen times as
/// fast as growth, and no single call pays for a past rush.
const FORGET_PER_CALL: usize = 64;

/// A shard never shrinks below this capacity.
const ROOM_TO_KEEP: usize = 1_024;

/// Marks by seat, in shards.
#[derive(Debug)]
pub struct MemoryGate {
    clock: Clock,
    ttl: Duration,
    spread: RandomState,
    shards: Box<[Mutex<Shard>; SHARDS]>,
    /// Next shard to clean up. Rotates, so that shards without calls are cleaned up too.
    turn: AtomicUsize,
}

type SeatKey = (EventId, SeatId);

#[derive(Debug, Default)]
struct Shard {
    marks: HashMap<SeatKey, Mark>,
    /// Expiry of each mark, in the order of creation. All marks have the same TTL, so the next to
    /// expire is always at the front. A mark that was set again or released leaves a stale entry,
    /// which is removed when it expires.
    fading: VecDeque<(Duration, SeatKey)>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    owner: Owner,
    until: Duration,
}

impl MemoryGate {
    pub(super) fn new(clock: Clock, ttl: Duration) -> Self {
        Self { clock, ttl, spread: RandomState::new(), shards: Box::default(), turn: AtomicUsize::new(0) }
    }

    pub(super) fn acquire(&self, event: EventId, seats: &[SeatId], owner: Owner) -> Entry {
        let now = self.clock.ticks();
        self.tidy(now);
        let mut shard = self.shard(event);
        shard.forget(now);
        let taken = |seat: &SeatId| shard.mark(event, *seat, now).is_some_and(|mark| mark.owner != owner);
        let busy: Vec<SeatId> = seats.iter().copied().filter(taken).collect();
        if !busy.is_empty() {
            return Entry::Busy(busy);
        }
        if shard.fading.len() + seats.len() > MAX_MARKS {
            return Entry::Open;
        }
        let until = now + self.ttl;
        for seat in seats {
            shard.marks.insert((event, *seat), Mark { owner, until });
            shard.fading.push_back((until, (event, *seat)));
        }
        Entry::Through
    }

    pub(super) fn release(&self, event: EventId, seats: &[SeatId], owner: Owner) {
        let mut shard = self.shard(event);
        for seat in seats {
            if shard.marks.get(&(event, *seat)).is_some_and(|mark| mark.owner == owner) {
                shard.marks.remove(&(event, *seat));
            }
        }
    }

    /// Removes expired marks of one shard per call, in rotation, so that the marks of past sales
    /// are freed.
    fn tidy(&self, now: Duration) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
        // If the shard is locked, its holder is already removing expired marks.
        if let Ok(mut shard) = self.shards[turn].try_lock() {
            shard.forget(now);
        }
    }

    fn shard(&self, event: EventId) -> MutexGuard<'_, Shard> {
        let spread = self.spread.hash_one(event);
        let key = usize::try_from(spread % SHARDS as u64).expect("a remainder below 16 fits into usize");
        self.shards[key].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// Returns the mark on a seat unless it has expired.
    fn mark(&self, event: EventId, seat: SeatId, now: Duration) -> Option<&Mark> {
        self.marks.get(&(event, seat)).filter(|mark| mark.until > now)
    }

    fn forget(&mut self, now: Duration) {
        for _ in 0..FORGET_PER_CALL {
            let Some((_, key)) = self.fading.pop_front_if(|(until, _)| *until <= now) else { break };
            if self.marks.get(&key).is_some_and(|mark| mark.until <= now) {
                self.marks.remove(&key);
            }
        }
        // Shrinking copies what is left, at most a quarter of the capacity, so its amortised cost
        // is constant.
        if self.fading.capacity() > (self.fading.len() * 4).max(ROOM_TO_KEEP) {
            self.fading.shrink_to(self.fading.len() * 2);
            self.marks.shrink_to(self.marks.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use urr_kernel::{Ids, Timestamp};
    use uuid::Uuid;

    use super::*;

    const TTL: Duration = Duration::from_secs(5);

    fn gate() -> (Clock, Ids, MemoryGate) {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        (clock.clone(), Ids::seeded(clock.clone(), 1), MemoryGate::new(clock, TTL))
    }

    #[test]
    fn a_full_gate_returns_open_until_marks_expire() {
        let (clock, ids, gate) = gate();
        let event: EventId = ids.next();
        let enter = || gate.acquire(event, &[ids.next()], Owner::from_uuid(ids.next()));
        for _ in 0..MAX_MARKS {
            assert_eq!(enter(), Entry::Through);
        }
        assert_eq!(enter(), Entry::Open);
        assert_eq!(gate.shard(event).marks.len(), MAX_MARKS);
        clock.advance(TTL);
        assert_eq!(enter(), Entry::Through);
    }

    #[test]
    fn repeated_and_released_marks_stay_within_the_limit() {
        let (_, ids, gate) = gate();
        let (event, seat): (EventId, SeatId) = (ids.next(), ids.next());
        let owner = Owner::from_uuid(ids.next());
        for _ in 0..MAX_MARKS {
            assert_eq!(gate.acquire(event, &[seat], owner), Entry::Through);
            gate.release(event, &[seat], owner);
        }
        assert_eq!(gate.acquire(event, &[seat], owner), Entry::Open);
        assert_eq!(gate.shard(event).fading.len(), MAX_MARKS);
    }

    #[test]
    fn marks_of_past_sales_are_freed_by_calls_for_other_events() {
        let (clock, ids, gate) = gate();
        let (over, other): (EventId, EventId) = (ids.next(), ids.next());
        for _ in 0..10_000 {
            gate.acquire(over, &[ids.next()], Owner::from_uuid(ids.next()));
        }
        clock.advance(TTL);
        let (seat, owner): (SeatId, _) = (ids.next(), Owner::from_uuid(ids.next()));
        for _ in 0..SHARDS * (10_000 / FORGET_PER_CALL + 1) {
            gate.acquire(other, &[seat], owner);
            gate.release(other, &[seat], owner);
        }
        let left = gate.shard(over).marks.keys().filter(|(event, _)| *event == over).count();
        assert_eq!(left, 0);
        let shard = gate.shard(over);
        assert!(
            shard.marks.capacity() < 10_000,
            "capacity for {} marks was not freed",
            shard.marks.capacity()
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        Acquire { seats: Vec<usize>, owner: usize },
        Release { seats: Vec<usize>, owner: usize },
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let seats = || proptest::sample::subsequence(vec![0_usize, 1, 2, 3, 4], 1..=4);
        let step = prop_oneof![
            4 => (seats(), 0..3_usize).prop_map(|(seats, owner)| Step::Acquire { seats, owner }),
            2 => (seats(), 0..3_usize).prop_map(|(seats, owner)| Step::Release { seats, owner }),
            1 => (0..7_u64).prop_map(Step::Wait),
        ];
        proptest::collection::vec(step, 1..60)
    }

    proptest! {
        /// Compares the gate with a reference model: a list of marks that is never cleaned up.
        #[test]
        fn it_matches_the_reference_model(steps in steps()) {
            let (clock, ids, gate) = gate();
            let event: EventId = ids.next();
            let seats: Vec<SeatId> = (0..5).map(|_| ids.next()).collect();
            let owners: Vec<Owner> = (0..3).map(|_| Owner::from_uuid(ids.next::<Uuid>())).collect();
            let mut marks: HashMap<usize, (usize, Duration)> = HashMap::new();
            let pick = |chosen: &[usize]| chosen.iter().map(|seat| seats[*seat]).collect::<Vec<_>>();
            for step in steps {
                let now = clock.ticks();
                match step {
                    Step::Wait(secs) => clock.advance(Duration::from_secs(secs)),
                    Step::Release { seats, owner } => {
                        gate.release(event, &pick(&seats), owners[owner]);
                        marks.retain(|seat, (by, _)| !(seats.contains(seat) && *by == owner));
                    }
                    Step::Acquire { seats, owner } => {
                        let others = |seat: &&usize| marks.get(seat).is_some_and(|(by, until)| *by != owner && *until > now);
                        let busy: Vec<usize> = seats.iter().filter(others).copied().collect();
                        let expected = if busy.is_empty() { Entry::Through } else { Entry::Busy(pick(&busy)) };
                        if busy.is_empty() {
                            marks.extend(seats.iter().map(|seat| (*seat, (owner, now + TTL))));
                        }
                        prop_assert_eq!(gate.acquire(event, &pick(&seats), owners[owner]), expected);
                    }
                }
            }
        }
    }
}
