//! Copy of every room in every process, at most a second old. Visitors' checks are answered from
//! it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use urr_contracts::vwr::{Error, Room};
use urr_kernel::{Clock, CommonError, EventId};

use crate::rules::{Pace, as_float};

/// Refresh interval. Together with the time of a refresh, decisions reach every process within a
/// second.
pub(crate) const REFRESH: Duration = Duration::from_millis(300);

/// A copy older than this is stale: many refreshes have failed.
pub(crate) const STALE: Duration = Duration::from_secs(5);

/// Window of the admission rate.
const MEASURED: Duration = Duration::from_mins(1);
/// Short window, for the other end of the range.
const OF_LATE: Duration = Duration::from_secs(15);
/// Shortest time that gives a rate.
const AT_LEAST: Duration = Duration::from_secs(10);
/// Observations kept: one minute.
const MAX_SAMPLES: usize = 256;

pub(crate) struct RoomCache {
    clock: Clock,
    cached: ArcSwap<CachedRooms>,
    /// Held while the copy changes, so that a refresh and a decision do not overwrite each other.
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    samples: HashMap<EventId, RateSamples>,
    /// Number of changes made by this process, and the last one per room.
    puts: u64,
    put: HashMap<EventId, u64>,
}

/// When a refresh began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(u64);

#[derive(Default)]
struct CachedRooms {
    rooms: HashMap<EventId, (Room, Option<Pace>)>,
    /// When the store last answered; `None` before the first time.
    at: Option<Duration>,
}

/// Observed serving counters by time, under unchanged conditions.
#[derive(Default)]
struct RateSamples {
    condition: (u64, u32, bool),
    steps: VecDeque<(Duration, u64)>,
}

impl RoomCache {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, cached: ArcSwap::default(), notes: Mutex::default() }
    }

    /// The room of an event, if it ever had one, and its rate. With `fail_open` a room is reported
    /// inactive while the store is unreachable. An error before the first refresh: the rooms are
    /// unknown then.
    pub(crate) fn room(&self, event: EventId) -> Result<Option<(Room, Option<Pace>)>, Error> {
        let cached = self.cached.load();
        match cached.rooms.get(&event) {
            Some((room, pace)) => Ok(Some((self.as_it_stands(&cached, room), *pace))),
            None if cached.at.is_none() => Err(Error::Common(CommonError::Unavailable)),
            None => Ok(None),
        }
    }

    pub(crate) fn rooms(&self) -> Vec<Room> {
        let cached = self.cached.load();
        cached.rooms.values().map(|(room, _)| self.as_it_stands(&cached, room)).collect()
    }

    /// Whether the store has answered recently.
    pub(crate) fn is_fresh(&self) -> bool {
        self.is_recent(&self.cached.load())
    }

    /// Whether the store has ever answered.
    pub(crate) fn is_loaded(&self) -> bool {
        self.cached.load().at.is_some()
    }

    /// Whether the store has answered within this time.
    pub(crate) fn is_younger_than(&self, age: Duration) -> bool {
        self.is_younger(&self.cached.load(), age)
    }

    fn is_recent(&self, cached: &CachedRooms) -> bool {
        self.is_younger(cached, STALE)
    }

    fn is_younger(&self, cached: &CachedRooms, age: Duration) -> bool {
        cached.at.is_some_and(|at| self.clock.ticks().saturating_sub(at) < age)
    }

    fn as_it_stands(&self, cached: &CachedRooms, room: &Room) -> Room {
        let open = room.fail_open && !self.is_recent(cached);
        Room { active: room.active && !open, ..*room }
    }

    /// Must be called before the store is read.
    pub(crate) fn begin(&self) -> Began {
        Began(self.notes().puts)
    }

    /// Replaces the copy, except for rooms that this process changed meanwhile: the store may have
    /// been read before.
    pub(crate) fn replace(&self, rooms: Vec<Room>, began: Began) {
        let mut notes = self.notes();
        let Notes { samples, put, .. } = &mut *notes;
        put.retain(|_, at| *at > began.0);
        samples.retain(|event, _| rooms.iter().any(|room| room.event == *event));
        let before = self.cached.load();
        let now = self.clock.ticks();
        let looked_at = rooms.into_iter().filter(|room| !put.contains_key(&room.event)).map(|room| {
            let room = not_back(before.rooms.get(&room.event).map(|(room, _)| room), room);
            (room.event, (room, samples.entry(room.event).or_default().note(&room, now)))
        });
        let newer = before.rooms.iter().filter(|(event, _)| put.contains_key(event));
        let rooms = looked_at.chain(newer.map(|(event, cached)| (*event, *cached))).collect();
        self.cached.store(Arc::new(CachedRooms { rooms, at: Some(now) }));
    }

    /// Applies a change made by this process.
    pub(crate) fn put(&self, room: Room) {
        let mut notes = self.notes();
        notes.puts += 1;
        let at = notes.puts;
        notes.put.insert(room.event, at);
        let before = self.cached.load();
        let known = before.rooms.get(&room.event);
        let room = not_back(known.map(|(room, _)| room), room);
        let mut rooms = before.rooms.clone();
        rooms.insert(room.event, (room, known.and_then(|(_, pace)| *pace)));
        self.cached.store(Arc::new(CachedRooms { rooms, at: before.at }));
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters never go back within an opening, even if the store has lost its last second.
fn not_back(known: Option<&Room>, room: Room) -> Room {
    match known {
        Some(known) if known.epoch == room.epoch => {
            Room { tail: room.tail.max(known.tail), serving: room.serving.max(known.serving), ..room }
        }
        _ => room,
    }
}

impl RateSamples {
    /// Adds an observation and returns the rate. Only measured while visitors wait and are
    /// admitted.
    fn note(&mut self, room: &Room, now: Duration) -> Option<Pace> {
        let condition = (room.epoch, room.rate, room.paused);
        if condition != self.condition || room.waiting() == 0 || !room.active {
            *self = Self { condition, steps: VecDeque::new() };
        }
        self.steps.push_back((now, room.serving));
        while self.steps.len() > MAX_SAMPLES || self.steps.front().is_some_and(|(at, _)| *at + MEASURED < now)
        {
            self.steps.pop_front();
        }
        let pace = |back: Duration| {
            let (at, serving) = self.steps.iter().find(|(at, _)| *at + back >= now)?;
            let took = now.saturating_sub(*at);
            (took >= AT_LEAST).then(|| as_float(room.serving - serving) / took.as_secs_f64())
        };
        let (whole, late) = (pace(MEASURED)?, pace(OF_LATE)?);
        let slow = whole.min(late);
        (slow > 0.0).then(|| Pace { slow: slow * 0.9, quick: whole.max(late) * 1.1 })
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn room(serving: u64) -> Room {
        Room {
            event: EventId::from_uuid(Uuid::nil()),
            epoch: 1,
            opened_at: Timestamp::from_micros(0),
            active: true,
            paused: false,
            rate: 50,
            fail_open: false,
            tail: 1_000_000,
            serving,
        }
    }

    fn room_cache() -> (Clock, RoomCache) {
        let clock = urr_testkit::fixed_clock();
        (clock.clone(), RoomCache::new(clock))
    }

    fn cached(room_cache: &RoomCache) -> (Room, Option<Pace>) {
        room_cache.room(EventId::from_uuid(Uuid::nil())).unwrap().unwrap()
    }

    #[test]
    fn the_rate_is_measured_after_enough_time() {
        let (clock, room_cache) = room_cache();
        for second in 0..40 {
            room_cache.replace(vec![room(second * 30)], room_cache.begin());
            let pace = cached(&room_cache).1;
            assert_eq!(pace.is_some(), second >= 10, "after {second} s");
            if let Some(Pace { slow, quick }) = pace {
                assert!(slow <= 30.0 && (30.0..40.0).contains(&quick), "{slow} to {quick}");
            }
            clock.advance(Duration::from_secs(1));
        }
        room_cache.replace(vec![Room { rate: 80, ..room(1_200) }], room_cache.begin());
        assert_eq!(cached(&room_cache).1, None, "a new rate restarts the measurement");
    }

    #[test]
    fn counters_never_go_back() {
        let (_, room_cache) = room_cache();
        room_cache.replace(vec![room(500)], room_cache.begin());
        room_cache.replace(vec![room(400)], room_cache.begin());
        assert_eq!(cached(&room_cache).0.serving, 500);
        room_cache.put(room(450));
        assert_eq!(cached(&room_cache).0.serving, 500);
        room_cache.replace(vec![Room { epoch: 2, ..room(0) }], room_cache.begin());
        assert_eq!(cached(&room_cache).0.serving, 0, "a new opening starts from zero");
    }

    #[test]
    fn a_refresh_does_not_undo_a_later_command() {
        let (_, room_cache) = room_cache();
        let began = room_cache.begin();
        room_cache.put(room(0));
        room_cache.replace(vec![], began);
        assert!(cached(&room_cache).0.active, "the new room is still there");
        let began = room_cache.begin();
        room_cache.put(Room { paused: true, ..room(0) });
        room_cache.replace(vec![room(0)], began);
        assert!(cached(&room_cache).0.paused);
        room_cache.replace(vec![room(0)], room_cache.begin());
        assert!(!cached(&room_cache).0.paused, "the next refresh applies");
    }

    #[test]
    fn only_fail_open_rooms_open_without_the_store() {
        let (clock, room_cache) = room_cache();
        assert!(!room_cache.is_fresh(), "no refresh has succeeded yet");
        assert_eq!(room_cache.room(room(0).event), Err(Error::Common(CommonError::Unavailable)));
        let open = Room { event: EventId::from_uuid(Uuid::max()), fail_open: true, ..room(0) };
        room_cache.replace(vec![room(0), open], room_cache.begin());
        assert!(room_cache.rooms().iter().all(|room| room.active) && room_cache.is_fresh());
        clock.advance(STALE);
        assert!(!room_cache.is_fresh());
        let active = |event| room_cache.room(event).unwrap().unwrap().0.active;
        assert!(active(room(0).event) && !active(open.event));
        assert_eq!(room_cache.room(EventId::from_uuid(Uuid::from_u128(7))), Ok(None));
    }
}
