//! Storage of rooms: in this process's memory, or in Redis and shared by many processes.

pub(crate) mod memory;
mod redis;
#[cfg(test)]
mod suite;

use std::time::Duration;

use urr_db::Db;
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, Timestamp, UserId};
use urr_kv::Kv;

pub use self::redis::GRACE;
use self::{memory::MemoryRooms, redis::Redis};
use crate::{
    Failure,
    journal::{Step, Why},
    room_model::{Totals, UserState},
    settings::Limits,
    token_position::{Claim, Flaws, TokenPosition},
};

/// The room's store is unreachable or cannot persist a decision. Admissions stop meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the waiting room's store is unavailable")]
pub struct Closed;

/// Users keep waiting: a failure must never admit.
impl From<Closed> for Failure {
    fn from(closed: Closed) -> Self {
        Self::unavailable(closed)
    }
}

/// Why rooms in memory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CannotOpen {
    /// Their journal cannot be read.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// Another process has them open.
    #[error(
        "another process keeps the waiting rooms of this database in its memory; \
         several processes share rooms through Redis (redis.urls)"
    )]
    InUse,
}

/// A user's state, and the room's totals at that moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The user's state.
    pub state: UserState,
    /// The room's totals.
    pub totals: Totals,
    /// Promises of the user's tokens that do not hold.
    pub flaws: Flaws,
    /// Time by the clock of the store that decided.
    pub now: Timestamp,
}

/// Whether admissions are possible: the sale is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admissions {
    Open,
    Closed,
}

/// The admission lock of a room, which one worker at a time holds.
///
/// A worker acquires it before it reads anything a decision depends on. If it then stalls until the
/// lock expires, its epoch is over and it admits no users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionLock {
    /// Held by this worker, in this epoch. Rooms in memory have one worker and no epochs.
    Ours { epoch: Option<String> },
    /// Held by another worker.
    Others,
}

/// A command of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sets the number of slots.
    Threshold(u32),
    /// Stops admissions.
    Pause,
    /// Resumes admissions.
    Resume,
    /// Removes all users and voids their tickets.
    Clear,
    /// Changes nothing; reads the totals.
    Look,
}

impl Order {
    /// The step that carries it out, unless the room is in that state already.
    fn step(self, totals: &Totals) -> Option<Step> {
        match self {
            Self::Threshold(threshold) => {
                (threshold != totals.threshold).then_some(Step::Threshold { threshold })
            }
            Self::Pause => (!totals.paused).then_some(Step::Paused),
            Self::Resume => totals.paused.then_some(Step::Resumed),
            Self::Clear => Some(Step::Cleared { epoch: totals.epoch + 1 }),
            Self::Look => None,
        }
    }
}

/// All rooms, on one backend.
pub enum Room {
    /// In the memory of one process.
    Memory(MemoryRooms),
    /// In Redis, for many processes.
    Redis(Redis),
}

impl Room {
    /// Rooms in this process's memory, rebuilt from their journal in `db`.
    pub async fn memory(
        db: Db,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        tasks: &Tasks,
    ) -> Result<Self, CannotOpen> {
        MemoryRooms::load(db, clock, ids, limits, tasks).await.map(Self::Memory)
    }

    /// Rooms in Redis. After Redis has lost one, admissions stop for `grace`.
    pub fn redis(kv: Kv, db: Db, clock: Clock, ids: Ids, limits: Limits, grace: Duration) -> Self {
        Self::Redis(Redis::new(kv, db, clock, ids, limits, grace))
    }

    /// Joins the line, resumes a position or returns the user's state.
    pub async fn check(
        &self,
        event: EventId,
        user: UserId,
        promise: Option<TokenPosition>,
    ) -> Result<Answer, Closed> {
        self.come(event, user, &Claim::of(promise.as_ref()), Admissions::Open).await
    }

    /// The same with every promise of the user's tokens. Before the sale opens users only wait,
    /// even if there are free slots.
    pub(crate) async fn come(
        &self,
        event: EventId,
        user: UserId,
        claim: &Claim<'_>,
        admissions: Admissions,
    ) -> Result<Answer, Closed> {
        match self {
            Self::Memory(room) => room.check(event, user, claim, admissions).await,
            Self::Redis(room) => room.check(event, user, claim, admissions).await,
        }
    }

    /// The user's state; counts as activity.
    pub async fn status(&self, event: EventId, user: UserId) -> Result<Answer, Closed> {
        match self {
            Self::Memory(room) => room.status(event, user).await,
            Self::Redis(room) => room.status(event, user).await,
        }
    }

    /// The same, but `None` if Redis is unreachable; then nothing happens in the room either.
    pub(crate) async fn status_unless_away(
        &self,
        event: EventId,
        user: UserId,
    ) -> Result<Option<Answer>, Closed> {
        match self {
            Self::Memory(room) => room.status(event, user).await.map(Some),
            Self::Redis(room) => room.status_unless_away(event, user).await,
        }
    }

    /// Events in which a user waits (`false`) or holds a slot (`true`). Does not count as activity.
    pub(crate) async fn entries(&self, user: UserId) -> Result<Vec<(EventId, bool)>, Closed> {
        match self {
            Self::Memory(room) => Ok(room.entries(user)),
            Self::Redis(room) => room.entries(user).await,
        }
    }

    /// Removes a user. Returns `false` if they were not in the room.
    pub async fn leave(&self, event: EventId, user: UserId, why: Why) -> Result<bool, Closed> {
        match self {
            Self::Memory(room) => room.leave(event, user, why).await,
            Self::Redis(room) => room.leave(event, user, why).await,
        }
    }

    /// Ends the slot of a user who bought at `at`. Returns `false` if they have none given before
    /// that.
    pub(crate) async fn bought(&self, event: EventId, user: UserId, at: Timestamp) -> Result<bool, Closed> {
        match self {
            Self::Memory(room) => room.bought(event, user, at).await,
            Self::Redis(room) => room.bought(event, user, at).await,
        }
    }

    /// `check.lua` without the code around it; in memory, a plain check. For benchmarks.
    pub async fn bare_check(&self, event: EventId, user: UserId) -> Result<(), Closed> {
        match self {
            Self::Memory(room) => room.check(event, user, &Claim::of(None), Admissions::Open).await.map(drop),
            Self::Redis(room) => {
                room.arrive(event, user, &Claim::of(None), Admissions::Open, "").await.map(drop)
            }
        }
    }

    /// `status.lua` without the code around it; in memory, a plain status. For benchmarks.
    pub async fn bare_status(&self, event: EventId, user: UserId) -> Result<(), Closed> {
        match self {
            Self::Memory(room) => room.status(event, user).await.map(drop),
            Self::Redis(room) => room.status_script(event, user).await.map(drop),
        }
    }

    /// Ends expired slots and admits the next users. Returns the number of admissions.
    pub async fn admit(&self, event: EventId) -> Result<usize, Closed> {
        let turn = self.turn(event).await?;
        self.work(event, &turn, Admissions::Open).await
    }

    /// Acquires the admission lock, unless another worker holds it.
    pub(crate) async fn turn(&self, event: EventId) -> Result<AdmissionLock, Closed> {
        match self {
            Self::Memory(_) => Ok(AdmissionLock::Ours { epoch: None }),
            Self::Redis(room) => room.turn(event).await,
        }
    }

    /// Ends expired slots and admits the next users, if the sale is on. Returns the number of
    /// admissions.
    pub(crate) async fn work(
        &self,
        event: EventId,
        turn: &AdmissionLock,
        admissions: Admissions,
    ) -> Result<usize, Closed> {
        match self {
            Self::Memory(room) => room.admit(event, admissions).await,
            Self::Redis(room) => room.admit(event, turn, admissions).await,
        }
    }

    /// Carries out an operator's command and returns the resulting totals.
    pub async fn order(&self, event: EventId, order: Order) -> Result<Totals, Closed> {
        match self {
            Self::Memory(room) => room.order(event, order).await,
            Self::Redis(room) => room.order(event, order).await,
        }
    }

    /// Copies steps from Redis to the database, so that the journal is complete. A no-op in memory.
    pub async fn settle(&self, event: EventId) -> Result<(), Closed> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(room) => room.take_over(event).await.map(drop),
        }
    }

    /// Closes a room that has been empty for `idle`. Returns `false` if it stays open.
    pub(crate) async fn close(
        &self,
        event: EventId,
        generation: u64,
        idle: Duration,
    ) -> Result<bool, Closed> {
        match self {
            Self::Memory(room) => room.close(event, idle).await,
            Self::Redis(room) => room.close(event, generation, idle).await,
        }
    }

    /// How long steps could not be written, if some are waiting now.
    pub(crate) fn outage(&self) -> Option<Duration> {
        match self {
            Self::Memory(room) => room.outage(),
            Self::Redis(room) => room.outage(),
        }
    }

    /// Events whose rooms may be in use.
    pub async fn events(&self) -> Result<Vec<EventId>, Closed> {
        match self {
            Self::Memory(room) => Ok(room.events()),
            Self::Redis(room) => room.events().await,
        }
    }
}
