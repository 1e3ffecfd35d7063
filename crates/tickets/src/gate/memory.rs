//! The gate in this process's memory.

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

/// Events are spread over this many locks, so that two sales do not wait for each other.
const SHARDS: usize = 16;

/// Marks one shard may remember, faded ones that wait to be forgotten included: the seats of the largest event (100,000),
/// each marked once, and room for repeats. At about 112 bytes a mark that is 15 MB. Past it the gate is open and the
/// database decides alone.
const MAX_MARKS: usize = 131_072;

/// Faded marks one call forgets. A call adds four at most, so forgetting catches up sixteen times as fast, and no call
/// pays for a crowd that has left.
const FORGET_PER_CALL: usize = 64;

/// Below this many marks a shard keeps its room.
const ROOM_TO_KEEP: usize = 1_024;

/// Marks by seat.
#[derive(Debug)]
pub struct Memory {
    clock: Clock,
    ttl: Duration,
    spread: RandomState,
    shards: Box<[Mutex<Shard>; SHARDS]>,
    /// Whose turn it is to forget although nobody calls for its events any more.
    turn: AtomicUsize,
}

type Place = (EventId, SeatId);

#[derive(Debug, Default)]
struct Shard {
    marks: HashMap<Place, Mark>,
    /// When each mark fades, in the order in which it was made. All marks last equally long, so the first to fade is always
    /// in front. A mark that was made again or released has an entry too many, which is dropped in its time.
    fading: VecDeque<(Duration, Place)>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    owner: Owner,
    until: Duration,
}

impl Memory {
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

    /// Forgets faded marks of one shard after the other, so that a sale that is over takes no memory.
    fn tidy(&self, now: Duration) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
        // Whoever holds the lock is forgetting already.
        if let Ok(mut shard) = self.shards[turn].try_lock() {
            shard.forget(now);
        }
    }

    fn shard(&self, event: EventId) -> MutexGuard<'_, Shard> {
        let spread = self.spread.hash_one(event);
        let place = usize::try_from(spread % SHARDS as u64).expect("a remainder of 16 fits");
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// The mark on a seat, unless it has faded.
    fn mark(&self, event: EventId, seat: SeatId, now: Duration) -> Option<&Mark> {
        self.marks.get(&(event, seat)).filter(|mark| mark.until > now)
    }

    fn forget(&mut self, now: Duration) {
        for _ in 0..FORGET_PER_CALL {
            let Some((_, place)) = self.fading.pop_front_if(|(until, _)| *until <= now) else { break };
            if self.marks.get(&place).is_some_and(|mark| mark.until <= now) {
                self.marks.remove(&place);
            }
        }
        // Giving room back costs a copy of what is left, at most a quarter, so it pays for itself.
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

    fn gate() -> (Clock, Ids, Memory) {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        (clock.clone(), Ids::seeded(clock.clone(), 1), Memory::new(clock, TTL))
    }

    #[test]
    fn a_full_gate_opens_and_takes_marks_again_when_some_have_faded() {
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
    fn repeating_and_releasing_do_not_grow_the_gate_past_its_limit() {
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
    fn a_sale_that_is_over_takes_no_memory_once_others_call() {
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
        assert!(shard.marks.capacity() < 10_000, "room for {} marks is kept", shard.marks.capacity());
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
        /// Against the simplest thing that could be right: a list of marks that is never tidied.
        #[test]
        fn it_answers_like_a_list_of_marks(steps in steps()) {
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
