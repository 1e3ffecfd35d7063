//! Rooms in this process's memory, with their journal on disk.
//!
//! A request locks the room of one event for about a microsecond, decides, queues its steps for the
//! journal and unlocks. It is answered once the journal is written. At start rooms are rebuilt from
//! the journal.

mod generations;
mod keeper;
mod reading;
mod runs;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use urr_db::{Db, Sql, Tx};
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, Timestamp, UserId};
use uuid::Uuid;

pub(crate) use self::keeper::Keeper;
use self::runs::Runs;
use super::{Admissions, Answer, CannotOpen, Closed, Order};
use crate::{
    journal::{
        Entry, Step, Why, store,
        writer::{Mark, Writer},
    },
    presence::longest_gap,
    room_model::{RoomModel, Totals, UserState},
    settings::Limits,
    token_position::{Claim, Flaws},
};

/// Waiting users checked for inactivity per event and second: a million in under two minutes, at
/// about 2 ms each time.
const SWEEP: usize = 10_000;

/// An empty room stays listed for this long, so that its gauges reach zero.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// Locks that serialise concurrent joins of one user, so that both cannot take their last free
/// line. Users share them by hash.
const TURNS: usize = 256;

pub(crate) fn statements() -> Vec<&'static Sql> {
    [keeper::STATEMENTS, runs::STATEMENTS].concat()
}

type RoomMap = HashMap<EventId, Arc<Mutex<Numbered>>>;

/// Rooms by event.
pub struct MemoryRooms {
    /// Read by every request and rarely replaced, so a read must not write to a shared cache line.
    rooms: ArcSwap<RoomMap>,
    /// Serialises opening and closing of rooms: generations are numbered in the database.
    opening: tokio::sync::Mutex<()>,
    turns: Vec<Mutex<()>>,
    hasher: RandomState,
    writer: Writer,
    keeper: Keeper,
    runs: Runs,
    db: Db,
    clock: Clock,
    ids: Ids,
    limits: Limits,
    longest_gap: Duration,
}

/// A room's state and its position in the journal.
#[derive(Debug)]
struct Numbered {
    room_model: RoomModel,
    generation: u64,
    seq: u64,
    /// Time of the last step.
    changed: Timestamp,
    /// A request that finds this set looks up the next generation.
    closed: bool,
}

impl Numbered {
    fn new(threshold: u32, generation: u64, now: Timestamp) -> Self {
        Self { room_model: RoomModel::new(threshold), generation, seq: 0, changed: now, closed: false }
    }
}

/// Result of a decision.
enum Decided {
    /// The answer may be sent once the journal is written up to this mark.
    At(Mark, Answer),
    /// The room was closed in between.
    Closed,
}

impl MemoryRooms {
    /// Rebuilds every room and continues its journal.
    pub(super) async fn load(
        db: Db,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        tasks: &Tasks,
    ) -> Result<Self, CannotOpen> {
        let keeper = Keeper::take(&db, &clock, &ids).await?;
        let (now, longest_gap) = (clock.now(), longest_gap(&clock));
        let runs = Runs::begin(longest_gap, now);
        let absences = runs.absences(&db).await?;
        let mut rooms = HashMap::new();
        let mut last = EventId::from_uuid(Uuid::nil());
        loop {
            let generations: Result<Vec<store::Life>, urr_db::Error> = db
                .read("queue.rooms", async |tx: &mut Tx<'_>| {
                    store::generations(tx, last, reading::PAGE).await
                })
                .await;
            let generations = generations?;
            for life in &generations {
                let numbered = reading::read_back(&db, life, &absences, longest_gap, now).await?;
                rooms.insert(life.event, Arc::new(Mutex::new(numbered)));
            }
            match generations.last() {
                Some(life) => last = life.event,
                None => break,
            }
        }
        keeper.watch(tasks);
        let writer = Writer::start(db.clone(), clock.clone(), keeper.clone(), tasks);
        Ok(Self {
            rooms: ArcSwap::from_pointee(rooms),
            opening: tokio::sync::Mutex::new(()),
            turns: (0..TURNS).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
            writer,
            keeper,
            runs,
            db,
            longest_gap,
            clock,
            ids,
            limits,
        })
    }

    pub(super) async fn check(
        &self,
        event: EventId,
        user: UserId,
        claim: &Claim<'_>,
        admissions: Admissions,
    ) -> Result<Answer, Closed> {
        let slot = (admissions == Admissions::Open).then(|| Uuid::from_bytes(self.ids.bytes()));
        let mut flaws = Flaws::default();
        let answer = self
            .decide(event, |numbered| {
                let _turn = self.turn(user);
                if self.is_elsewhere(event, numbered, user) {
                    return self.decided(event, numbered, |_, _, _| UserState::Elsewhere);
                }
                self.decided(event, numbered, |room_model, now, steps| {
                    let state;
                    (state, flaws) = room_model.check(user, claim, slot, now, &self.limits, steps);
                    state
                })
            })
            .await?;
        Ok(Answer { flaws, ..answer })
    }

    /// Whether the user is not in this line and stands in the maximum number of others.
    fn is_elsewhere(&self, event: EventId, here: &Mutex<Numbered>, user: UserId) -> bool {
        let now = self.clock.now();
        let is_in = |room_model: &Mutex<Numbered>| lock(room_model).room_model.has(user, now, &self.limits);
        if is_in(here) {
            return false;
        }
        let rooms = self.rooms.load();
        let others = rooms.iter().filter(|(other, room_model)| **other != event && is_in(room_model));
        others.take(self.limits.max_events_per_user).count() == self.limits.max_events_per_user
    }

    pub(super) fn entries(&self, user: UserId) -> Vec<(EventId, bool)> {
        let now = self.clock.now();
        let rooms = self.rooms.load();
        let entry = |(event, room_model): (&EventId, &Arc<Mutex<Numbered>>)| {
            let room_model = &lock(room_model).room_model;
            let active = matches!(room_model.state(user, &self.limits), UserState::Active { .. });
            room_model.has(user, now, &self.limits).then_some((*event, active))
        };
        rooms.iter().filter_map(entry).collect()
    }

    fn turn(&self, user: UserId) -> MutexGuard<'_, ()> {
        let hash = usize::try_from(self.hasher.hash_one(user)).unwrap_or(usize::MAX);
        self.turns[hash % TURNS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn status(&self, event: EventId, user: UserId) -> Result<Answer, Closed> {
        let answer = self
            .decide_if_open(event, |numbered| {
                self.decided(event, numbered, |room_model, now, steps| {
                    room_model.status(user, now, &self.limits, steps)
                })
            })
            .await?;
        Ok(answer.unwrap_or_else(|| self.nobody()))
    }

    pub(super) async fn leave(&self, event: EventId, user: UserId, why: Why) -> Result<bool, Closed> {
        self.go(event, |room_model, now, steps| room_model.leave(user, why, now, steps)).await
    }

    pub(super) async fn bought(&self, event: EventId, user: UserId, at: Timestamp) -> Result<bool, Closed> {
        self.go(event, |room_model, now, steps| room_model.bought(user, at, now, steps)).await
    }

    async fn go(
        &self,
        event: EventId,
        going: impl Fn(&mut RoomModel, Timestamp, &mut Vec<Step>) -> bool,
    ) -> Result<bool, Closed> {
        let mut gone = false;
        self.decide_if_open(event, |numbered| {
            self.decided(event, numbered, |room_model, now, steps| {
                gone = going(room_model, now, steps);
                UserState::Absent
            })
        })
        .await?;
        Ok(gone)
    }

    /// Ends expired slots and admits the next users. Returns the number of admissions.
    pub(super) async fn admit(&self, event: EventId, admissions: Admissions) -> Result<usize, Closed> {
        self.runs.here(&self.db, &self.keeper, self.clock.now()).await;
        let batch = if admissions == Admissions::Open { self.limits.batch } else { 0 };
        let mut admitted = 0;
        self.decide_if_open(event, |numbered| {
            self.decided(event, numbered, |room_model, now, steps| {
                room_model.sweep(SWEEP, now, &self.limits, steps);
                let slot = || Uuid::from_bytes(self.ids.bytes());
                admitted = room_model.admit(batch, now, &self.limits, slot, steps);
                UserState::Absent
            })
        })
        .await?;
        Ok(admitted)
    }

    /// Carries out an operator's command.
    pub(super) async fn order(&self, event: EventId, order: Order) -> Result<Totals, Closed> {
        let answer = self
            .decide(event, |numbered| {
                self.decided(event, numbered, |room_model, now, steps| {
                    if let Some(step) = order.step(&room_model.totals(now)) {
                        room_model.take(step, now, steps);
                    }
                    UserState::Absent
                })
            })
            .await?;
        Ok(answer.totals)
    }

    /// Events whose rooms are in use, or were a moment ago.
    pub(super) fn events(&self) -> Vec<EventId> {
        let now = self.clock.now();
        let is_used = |room_model: &Mutex<Numbered>| {
            let numbered = lock(room_model);
            !numbered.room_model.is_empty() || numbered.changed.after(LEFT_ALONE) > now
        };
        let rooms = self.rooms.load();
        rooms.iter().filter(|(_, room_model)| is_used(room_model)).map(|(event, _)| *event).collect()
    }

    /// How long the journal could not be written, if it cannot now.
    pub(super) fn outage(&self) -> Option<Duration> {
        self.writer.outage()
    }

    fn nobody(&self) -> Answer {
        let now = self.clock.now();
        let totals = RoomModel::new(self.limits.threshold).totals(now);
        Answer { state: UserState::Absent, totals, flaws: Flaws::default(), now }
    }

    fn room_model(&self, event: EventId) -> Option<Arc<Mutex<Numbered>>> {
        self.rooms.load().get(&event).cloned()
    }

    /// Decides in a room, which is opened if necessary, and waits until the steps are written.
    async fn decide(
        &self,
        event: EventId,
        mut decision: impl FnMut(&Mutex<Numbered>) -> Decided,
    ) -> Result<Answer, Closed> {
        // A room closed concurrently is opened again; twice in a row is practically impossible.
        for _ in 0..2 {
            if let Some(answer) = self.decide_if_open(event, &mut decision).await? {
                return Ok(answer);
            }
            self.open(event).await?;
        }
        self.decide_if_open(event, decision).await?.ok_or(Closed)
    }

    /// Decides in a room, if it is open, and waits until the steps are written.
    ///
    /// An answer may reflect other users' steps, so it waits for those too.
    async fn decide_if_open(
        &self,
        event: EventId,
        decision: impl FnOnce(&Mutex<Numbered>) -> Decided,
    ) -> Result<Option<Answer>, Closed> {
        self.writer.ready().map_err(|_| Closed)?;
        let decided = self.rooms.load().get(&event).map(|room_model| decision(room_model));
        let Some(Decided::At(mark, answer)) = decided else { return Ok(None) };
        self.writer.written(mark).await.map_err(|_| Closed)?;
        Ok(Some(answer))
    }

    /// Decides under the room's lock.
    fn decided(
        &self,
        event: EventId,
        room_model: &Mutex<Numbered>,
        decision: impl FnOnce(&mut RoomModel, Timestamp, &mut Vec<Step>) -> UserState,
    ) -> Decided {
        let mut numbered = lock(room_model);
        if numbered.closed {
            return Decided::Closed;
        }
        let now = self.clock.now();
        numbered.room_model.notice(now, self.longest_gap);
        let mut steps = Vec::new();
        let state = decision(&mut numbered.room_model, now, &mut steps);
        let answer = Answer { state, totals: numbered.room_model.totals(now), flaws: Flaws::default(), now };
        Decided::At(self.note(event, &mut numbered, steps, now), answer)
    }

    /// Queues steps for the journal, in the order of the room.
    fn note(&self, event: EventId, numbered: &mut Numbered, steps: Vec<Step>, now: Timestamp) -> Mark {
        if steps.is_empty() {
            return self.writer.latest();
        }
        let (generation, first) = (numbered.generation, numbered.seq + 1);
        numbered.seq += u64::try_from(steps.len()).unwrap_or(u64::MAX);
        numbered.changed = now;
        let entry = |(seq, step)| Entry { generation, seq, at: now, step };
        self.writer.hand_over(event, (first..).zip(steps).map(entry))
    }
}

fn lock(room_model: &Mutex<Numbered>) -> MutexGuard<'_, Numbered> {
    room_model.lock().unwrap_or_else(PoisonError::into_inner)
}
