//! The gate in this process's memory.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use urr_kernel::{Clock, EventId, SeatId};

use super::{Entry, Owner};

/// Events are spread over this many locks, so that two sales do not wait for each other.
const SHARDS: usize = 16;

/// Marks one shard, and so one event, may hold: 65,536 at about 64 bytes are 4 MB. With marks of five seconds that is
/// 13,000 marked seats a second for one event. Past it the gate is open and the database decides.
const MAX_MARKS: usize = 65_536;

/// Below this many marks a shard is not worth sweeping.
const SWEEP_AT_LEAST: usize = 1_024;

/// Sweeps in the time a mark lasts, at most: a shard full of live marks is not looked through at every call.
const SWEEPS_PER_TTL: u32 = 8;

/// Marks by seat.
#[derive(Debug)]
pub struct Memory {
    clock: Clock,
    ttl: Duration,
    spread: RandomState,
    shards: Box<[Mutex<Shard>; SHARDS]>,
}

#[derive(Debug, Default)]
struct Shard {
    marks: HashMap<(EventId, SeatId), Mark>,
    /// Sweep when there are this many marks; twice what the last sweep left, so that sweeping costs O(1) a mark.
    sweep_at: usize,
    /// No sweep before this time.
    rest_until: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    owner: Owner,
    until: Duration,
}

impl Memory {
    pub(super) fn new(clock: Clock, ttl: Duration) -> Self {
        Self { clock, ttl, spread: RandomState::new(), shards: Box::default() }
    }

    pub(super) fn acquire(&self, event: EventId, seats: &[SeatId], owner: Owner) -> Entry {
        let now = self.clock.ticks();
        let mut shard = self.shard(event);
        let busy: Vec<SeatId> = seats
            .iter()
            .copied()
            .filter(|seat| {
                let mark = shard.marks.get(&(event, *seat));
                mark.is_some_and(|mark| mark.until > now && mark.owner != owner)
            })
            .collect();
        if !busy.is_empty() {
            return Entry::Busy(busy);
        }
        if !shard.has_room_for(seats.len(), now, self.ttl) {
            return Entry::Open;
        }
        let mark = Mark { owner, until: now + self.ttl };
        for seat in seats {
            shard.marks.insert((event, *seat), mark);
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

    fn shard(&self, event: EventId) -> MutexGuard<'_, Shard> {
        let spread = self.spread.hash_one(event);
        let place = usize::try_from(spread % SHARDS as u64).expect("a remainder of 16 fits");
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn has_room_for(&mut self, more: usize, now: Duration, ttl: Duration) -> bool {
        if self.marks.len() + more > self.sweep_at.max(SWEEP_AT_LEAST) && now >= self.rest_until {
            self.marks.retain(|_, mark| mark.until > now);
            self.sweep_at = (self.marks.len() * 2).min(MAX_MARKS);
            self.rest_until = now + ttl / SWEEPS_PER_TTL;
        }
        self.marks.len() + more <= MAX_MARKS
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::{Ids, Timestamp};

    use super::*;

    #[test]
    fn memory_stays_bounded_and_a_full_gate_opens() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let ids = Ids::seeded(clock.clone(), 1);
        let gate = Memory::new(clock.clone(), Duration::from_secs(5));
        let event: EventId = ids.next();
        let enter = || gate.acquire(event, &[ids.next()], Owner::from_uuid(ids.next()));
        for _ in 0..MAX_MARKS {
            assert_eq!(enter(), Entry::Through);
        }
        assert_eq!(enter(), Entry::Open);
        clock.advance(Duration::from_secs(5));
        assert_eq!(enter(), Entry::Through);
        assert_eq!(gate.shard(event).marks.len(), 1, "faded marks are gone");
    }
}
