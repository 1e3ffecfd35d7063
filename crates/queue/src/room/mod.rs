//! Where people wait, in this process or shared by many.

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
use self::{memory::Memory, redis::Redis};
use crate::{
    hall::{Standing, Totals},
    journal::{Step, Why},
    promise::{Claim, Flaws, Promise},
    settings::Limits,
};

/// The store of the rooms cannot be asked or cannot keep what it decides. Nobody is let in meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the waiting room cannot answer")]
pub struct Closed;

/// Why rooms in memory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CannotOpen {
    /// Their journal cannot be read.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// They are open elsewhere.
    #[error(
        "another process keeps the waiting rooms of this database in its memory; \
         several processes share rooms through Redis (redis.urls)"
    )]
    InUse,
}

/// How somebody stands, and what the room held at that moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// How they stand.
    pub standing: Standing,
    /// The room.
    pub totals: Totals,
    /// Which of the promises they came with do not hold.
    pub flaws: Flaws,
    /// By the clock of the store that decided.
    pub now: Timestamp,
}

/// Whether there is anything to be let in to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Shut,
}

/// The right to let people in to a room, which one worker at a time has.
///
/// It is taken before anything is looked at that a decision rests on. If a worker sleeps after that until its right has lapsed, its
/// epoch is over, and it lets nobody in with what it knew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This worker's, in this epoch. Rooms in memory have one worker and no epochs.
    Ours { epoch: Option<String> },
    /// Another worker's.
    Others,
}

/// What an operator may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// How many may be in at once.
    Threshold(u32),
    /// Nobody is let in until further notice.
    Pause,
    /// People are let in again.
    Resume,
    /// Everybody is sent away; tickets from before are void.
    Clear,
    /// Nothing: they only look.
    Look,
}

impl Order {
    /// The step that carries it out, if anything is left to do.
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

/// The rooms.
pub enum Room {
    /// For one process.
    Memory(Memory),
    /// For many processes.
    Redis(Redis),
}

impl Room {
    /// Rooms in this process's memory, read back from their journal in `db`.
    pub async fn memory(
        db: Db,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        tasks: &Tasks,
    ) -> Result<Self, CannotOpen> {
        Memory::load(db, clock, ids, limits, tasks).await.map(Self::Memory)
    }

    /// Rooms in Redis. After Redis has lost one, nobody is let in for `grace`.
    pub fn redis(kv: Kv, db: Db, clock: Clock, ids: Ids, limits: Limits, grace: Duration) -> Self {
        Self::Redis(Redis::new(kv, db, clock, ids, limits, grace))
    }

    /// Joins, resumes or finds out, whichever is due.
    pub async fn check(
        &self,
        event: EventId,
        user: UserId,
        promise: Option<Promise>,
    ) -> Result<Answer, Closed> {
        self.come(event, user, &Claim::of(promise.as_ref()), Door::Open).await
    }

    /// The same with everything that somebody claims. Before a sale begins whoever comes stands in line, however much room there is.
    pub(crate) async fn come(
        &self,
        event: EventId,
        user: UserId,
        claim: &Claim<'_>,
        door: Door,
    ) -> Result<Answer, Closed> {
        match self {
            Self::Memory(room) => room.check(event, user, claim, door).await,
            Self::Redis(room) => room.check(event, user, claim, door).await,
        }
    }

    /// The negative control: looks whether there is room, and then acts on what it saw.
    #[cfg(test)]
    pub(crate) async fn look_then_act(&self, event: EventId, user: UserId) -> Result<bool, Closed> {
        let seen = self.order(event, Order::Look).await?;
        if seen.waiting > 0 || u32::try_from(seen.active).is_ok_and(|active| active >= seen.threshold) {
            return Ok(false);
        }
        tokio::task::yield_now().await;
        match self {
            Self::Memory(room) => room.let_in(event, user).await?,
            Self::Redis(room) => room.let_in(event, user).await?,
        }
        Ok(true)
    }

    /// How somebody stands, which is a sign of life.
    pub async fn status(&self, event: EventId, user: UserId) -> Result<Answer, Closed> {
        match self {
            Self::Memory(room) => room.status(event, user).await,
            Self::Redis(room) => room.status(event, user).await,
        }
    }

    /// The same, and nothing where the store itself cannot be asked: then nothing happens in the room, either.
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

    /// Somebody goes. `false`: they were not here.
    pub async fn leave(&self, event: EventId, user: UserId, why: Why) -> Result<bool, Closed> {
        match self {
            Self::Memory(room) => room.leave(event, user, why).await,
            Self::Redis(room) => room.leave(event, user, why).await,
        }
    }

    /// Somebody bought at a given time, which ends the slot with which they did. `false`: they have none that was given before that.
    pub(crate) async fn bought(&self, event: EventId, user: UserId, at: Timestamp) -> Result<bool, Closed> {
        match self {
            Self::Memory(room) => room.bought(event, user, at).await,
            Self::Redis(room) => room.bought(event, user, at).await,
        }
    }

    /// A check in Redis without anything around its script; in memory nothing is. For benchmarks to compare with.
    pub async fn bare_check(&self, event: EventId, user: UserId) -> Result<(), Closed> {
        match self {
            Self::Memory(room) => room.check(event, user, &Claim::of(None), Door::Open).await.map(drop),
            Self::Redis(room) => room.arrive(event, user, &Claim::of(None), Door::Open, "").await.map(drop),
        }
    }

    /// A status in Redis without anything around its script; in memory nothing is. For benchmarks to compare with.
    pub async fn bare_status(&self, event: EventId, user: UserId) -> Result<(), Closed> {
        match self {
            Self::Memory(room) => room.status(event, user).await.map(drop),
            Self::Redis(room) => room.status_script(event, user).await.map(drop),
        }
    }

    /// Ends what is over and lets in whoever's turn it is. Answers with how many.
    pub async fn admit(&self, event: EventId) -> Result<usize, Closed> {
        let turn = self.turn(event).await?;
        self.work(event, &turn, Door::Open).await
    }

    /// Takes the right to let people in, if no other worker has it.
    pub(crate) async fn turn(&self, event: EventId) -> Result<Turn, Closed> {
        match self {
            Self::Memory(_) => Ok(Turn::Ours { epoch: None }),
            Self::Redis(room) => room.turn(event).await,
        }
    }

    /// Ends what is over and lets in whoever's turn it is; nobody while there is nothing to buy. Answers with how many.
    pub(crate) async fn work(&self, event: EventId, turn: &Turn, door: Door) -> Result<usize, Closed> {
        match self {
            Self::Memory(room) => room.admit(event, door).await,
            Self::Redis(room) => room.admit(event, turn, door).await,
        }
    }

    /// Carries out what an operator decided, and tells how the room is afterwards.
    pub async fn order(&self, event: EventId, order: Order) -> Result<Totals, Closed> {
        match self {
            Self::Memory(room) => room.order(event, order).await,
            Self::Redis(room) => room.order(event, order).await,
        }
    }

    /// Moves steps that Redis noted into the database, so that the journal is whole. In memory they are there already.
    pub async fn settle(&self, event: EventId) -> Result<(), Closed> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(room) => room.take_over(event).await.map(drop),
        }
    }

    /// Closes a room that has been empty for `idle`. `false`: it goes on.
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

    /// For how long the journal could not be written, if something waits to be and it cannot.
    pub(crate) fn outage(&self) -> Option<Duration> {
        match self {
            Self::Memory(room) => room.outage(),
            Self::Redis(room) => room.outage(),
        }
    }

    /// The events that have a room in which somebody may be.
    pub async fn events(&self) -> Result<Vec<EventId>, Closed> {
        match self {
            Self::Memory(room) => Ok(room.events()),
            Self::Redis(room) => room.events().await,
        }
    }
}
