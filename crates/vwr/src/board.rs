//! What every process knows of every room: a copy at most a second old, from which all questions of the crowd are answered.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use urr_contracts::vwr::{Error, Room};
use urr_kernel::{Clock, EventId};

use crate::rules::{Pace, as_float};

/// How often the copy is made anew. With what a look takes, decisions reach every process within a second.
pub(crate) const REFRESH: Duration = Duration::from_millis(300);

/// A copy that is older is not to be relied on: the store has not answered for many looks.
pub(crate) const STALE: Duration = Duration::from_secs(5);

/// How far back the pace is measured.
const MEASURED: Duration = Duration::from_mins(1);
/// The pace of late, for the other end of a range.
const OF_LATE: Duration = Duration::from_secs(15);
/// Less than this says nothing.
const AT_LEAST: Duration = Duration::from_secs(10);
/// Looks that are kept: a minute of them.
const MAX_SEEN: usize = 256;

/// The copy.
pub(crate) struct Board {
    clock: Clock,
    shown: ArcSwap<Shown>,
    /// Held while the copy is changed, so that a look and a decision do not undo each other.
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    seen: HashMap<EventId, Seen>,
    /// How often something became of a room in this process, and of which room when last.
    puts: u64,
    put: HashMap<EventId, u64>,
}

/// When a look at the store began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(u64);

#[derive(Default)]
struct Shown {
    rooms: HashMap<EventId, (Room, Option<Pace>)>,
    /// When the store last answered; `None` until it has.
    at: Option<Duration>,
}

/// How far people were let on at which tick, under the same conditions.
#[derive(Default)]
struct Seen {
    condition: (u64, u32, bool),
    steps: VecDeque<(Duration, u64)>,
}

impl Board {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, shown: ArcSwap::default(), notes: Mutex::default() }
    }

    /// The room of an event, if it ever had one, and its pace. One that stands open because its store is away is not active. Before
    /// the store has said anything, nobody knows that there is none.
    pub(crate) fn room(&self, event: EventId) -> Result<Option<(Room, Option<Pace>)>, Error> {
        let shown = self.shown.load();
        match shown.rooms.get(&event) {
            Some((room, pace)) => Ok(Some((self.as_it_stands(&shown, room), *pace))),
            None if shown.at.is_none() => Err(Error::Unavailable),
            None => Ok(None),
        }
    }

    /// Every room.
    pub(crate) fn rooms(&self) -> Vec<Room> {
        let shown = self.shown.load();
        shown.rooms.values().map(|(room, _)| self.as_it_stands(&shown, room)).collect()
    }

    /// Whether the store has answered of late.
    pub(crate) fn is_fresh(&self) -> bool {
        self.is_recent(&self.shown.load())
    }

    /// Whether the store has ever answered.
    pub(crate) fn is_loaded(&self) -> bool {
        self.shown.load().at.is_some()
    }

    /// Whether the store has answered within this time.
    pub(crate) fn is_younger_than(&self, age: Duration) -> bool {
        self.is_younger(&self.shown.load(), age)
    }

    fn is_recent(&self, shown: &Shown) -> bool {
        self.is_younger(shown, STALE)
    }

    fn is_younger(&self, shown: &Shown, age: Duration) -> bool {
        shown.at.is_some_and(|at| self.clock.ticks().saturating_sub(at) < age)
    }

    fn as_it_stands(&self, shown: &Shown, room: &Room) -> Room {
        let open = room.fail_open && !self.is_recent(shown);
        Room { active: room.active && !open, ..*room }
    }

    /// To be called before the store is asked.
    pub(crate) fn begin(&self) -> Began {
        Began(self.notes().puts)
    }

    /// Takes over what the store says, but for rooms of which more became in this process meanwhile: the store may have answered before.
    pub(crate) fn replace(&self, rooms: Vec<Room>, began: Began) {
        let mut notes = self.notes();
        let Notes { seen, put, .. } = &mut *notes;
        put.retain(|_, at| *at > began.0);
        seen.retain(|event, _| rooms.iter().any(|room| room.event == *event));
        let before = self.shown.load();
        let now = self.clock.ticks();
        let looked_at = rooms.into_iter().filter(|room| !put.contains_key(&room.event)).map(|room| {
            let room = not_back(before.rooms.get(&room.event).map(|(room, _)| room), room);
            (room.event, (room, seen.entry(room.event).or_default().note(&room, now)))
        });
        let newer = before.rooms.iter().filter(|(event, _)| put.contains_key(event));
        let rooms = looked_at.chain(newer.map(|(event, shown)| (*event, *shown))).collect();
        self.shown.store(Arc::new(Shown { rooms, at: Some(now) }));
    }

    /// Takes over what became of one room in this process.
    pub(crate) fn put(&self, room: Room) {
        let mut notes = self.notes();
        notes.puts += 1;
        let at = notes.puts;
        notes.put.insert(room.event, at);
        let before = self.shown.load();
        let known = before.rooms.get(&room.event);
        let room = not_back(known.map(|(room, _)| room), room);
        let mut rooms = before.rooms.clone();
        rooms.insert(room.event, (room, known.and_then(|(_, pace)| *pace)));
        self.shown.store(Arc::new(Shown { rooms, at: before.at }));
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was told once stays true: within an opening no count goes back, whatever a store says that lost its last second.
fn not_back(known: Option<&Room>, room: Room) -> Room {
    match known {
        Some(known) if known.epoch == room.epoch => {
            Room { tail: room.tail.max(known.tail), serving: room.serving.max(known.serving), ..room }
        }
        _ => room,
    }
}

impl Seen {
    /// Adds a look and measures. The pace is that of a room that lets people on while there are any.
    fn note(&mut self, room: &Room, now: Duration) -> Option<Pace> {
        let condition = (room.epoch, room.rate, room.paused);
        if condition != self.condition || room.waiting() == 0 || !room.active {
            *self = Self { condition, steps: VecDeque::new() };
        }
        self.steps.push_back((now, room.serving));
        while self.steps.len() > MAX_SEEN || self.steps.front().is_some_and(|(at, _)| *at + MEASURED < now) {
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

    fn board() -> (Clock, Board) {
        let clock = urr_testkit::fixed_clock();
        (clock.clone(), Board::new(clock))
    }

    fn shown(board: &Board) -> (Room, Option<Pace>) {
        board.room(EventId::from_uuid(Uuid::nil())).unwrap().unwrap()
    }

    #[test]
    fn the_pace_is_what_was_seen_once_there_was_enough_to_see() {
        let (clock, board) = board();
        for second in 0..40 {
            board.replace(vec![room(second * 30)], board.begin());
            let pace = shown(&board).1;
            assert_eq!(pace.is_some(), second >= 10, "after {second} s");
            if let Some(Pace { slow, quick }) = pace {
                assert!(slow <= 30.0 && (30.0..40.0).contains(&quick), "{slow} to {quick}");
            }
            clock.advance(Duration::from_secs(1));
        }
        board.replace(vec![Room { rate: 80, ..room(1_200) }], board.begin());
        assert_eq!(shown(&board).1, None, "another rate is measured anew");
    }

    #[test]
    fn a_count_that_was_told_never_goes_back() {
        let (_, board) = board();
        board.replace(vec![room(500)], board.begin());
        board.replace(vec![room(400)], board.begin());
        assert_eq!(shown(&board).0.serving, 500);
        board.put(room(450));
        assert_eq!(shown(&board).0.serving, 500);
        board.replace(vec![Room { epoch: 2, ..room(0) }], board.begin());
        assert_eq!(shown(&board).0.serving, 0, "another opening counts anew");
    }

    #[test]
    fn a_look_that_began_before_a_decision_does_not_undo_it() {
        let (_, board) = board();
        let began = board.begin();
        board.put(room(0));
        board.replace(vec![], began);
        assert!(shown(&board).0.active, "a room that was just opened is there");
        let began = board.begin();
        board.put(Room { paused: true, ..room(0) });
        board.replace(vec![room(0)], began);
        assert!(shown(&board).0.paused);
        board.replace(vec![room(0)], board.begin());
        assert!(!shown(&board).0.paused, "the next look knows better");
    }

    #[test]
    fn only_a_room_that_fails_open_stands_open_without_its_store() {
        let (clock, board) = board();
        assert!(!board.is_fresh(), "nobody has told us anything");
        assert_eq!(board.room(room(0).event), Err(Error::Unavailable));
        let open = Room { event: EventId::from_uuid(Uuid::max()), fail_open: true, ..room(0) };
        board.replace(vec![room(0), open], board.begin());
        assert!(board.rooms().iter().all(|room| room.active) && board.is_fresh());
        clock.advance(STALE);
        assert!(!board.is_fresh());
        let active = |event| board.room(event).unwrap().unwrap().0.active;
        assert!(active(room(0).event) && !active(open.event));
        assert_eq!(board.room(EventId::from_uuid(Uuid::from_u128(7))), Ok(None));
    }
}
