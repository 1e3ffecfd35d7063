//! The two numbers of a room: how many places were given, and up to which one people are let on.

mod demand;
#[cfg(feature = "aws")]
pub(crate) mod dynamo;
mod memory;
mod redis;
#[cfg(test)]
mod suite;

use std::time::Duration;

use urr_contracts::vwr::{Order, Ordered, Room};
use urr_db::{Db, Tx, transaction};
use urr_kernel::{Clock, EventId, Timestamp};
use urr_kv::Kv;
use uuid::Uuid;

use self::{memory::Memory, redis::Redis};
use crate::{
    rules::{self, DEFAULT_RATE},
    store::{self, By, Kept, Lead},
    trouble::Trouble,
};

/// Whoever lets people on and has not done so for this long has stopped. It is done every second.
const LEASE: Duration = Duration::from_secs(4);

/// By how much the clocks of two machines may differ. A term that ends later than that allows is from before a clock went back.
const CLOCKS_DIFFER: Duration = Duration::from_mins(1);

/// A room that was closed is remembered for as long as its tickets are, and an hour more.
const REMEMBERED: Duration = Duration::from_hours(25);

/// Rooms read from the database at a time, and how many times: a hundred thousand rooms, each opened by hand.
const PAGE: i64 = 1_000;
const MAX_PAGES: usize = 100;

/// Places were given, the first of them this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) first: u64,
    pub(crate) room: Room,
}

/// What came of letting people on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is ours to do, in this term.
    Ours {
        /// To be shown the next time.
        term: u64,
        /// The room afterwards.
        room: Room,
    },
    /// Somebody else does it.
    Theirs,
}

/// Counts places, in this process or for many.
pub enum Counters {
    /// For one process.
    Memory(Memory),
    /// For many processes.
    Redis(Redis),
    /// For many processes, and for functions that have no database.
    #[cfg(feature = "aws")]
    DynamoDb(dynamo::DynamoDb),
}

impl Counters {
    /// Counts in this process's memory; the database keeps a mark that no count ever passes.
    pub fn memory(db: Db, clock: Clock) -> Self {
        Self::Memory(Memory::new(db, clock))
    }

    /// Counts in Redis; the database keeps what operators decided and the same mark.
    pub fn redis(kv: Kv, db: Db, clock: Clock) -> Self {
        Self::Redis(Redis::new(kv, db, clock))
    }

    /// Counts in the DynamoDB table of this prefix; the database keeps what operators decided. Without one nobody can decide here.
    #[cfg(feature = "aws")]
    pub fn dynamo_db(
        dynamo: urr_aws::Dynamo,
        prefix: &str,
        db: Option<Db>,
        clock: Clock,
        ids: urr_kernel::Ids,
    ) -> Self {
        Self::DynamoDb(dynamo::DynamoDb::new(dynamo, prefix, db, clock, ids))
    }

    /// Gives the next `count` places.
    pub(crate) async fn add(&self, event: EventId, count: u64) -> Result<Given, Trouble> {
        match self {
            Self::Memory(counters) => counters.add(event, count).await,
            Self::Redis(counters) => counters.add(event, count).await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.add(event, count).await,
        }
    }

    /// Every room that is open, or was not long ago.
    pub(crate) async fn look(&self) -> Result<Vec<Room>, Trouble> {
        match self {
            Self::Memory(counters) => counters.look().await,
            Self::Redis(counters) => counters.look().await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.look().await,
        }
    }

    /// Lets on as many as are due, if that is `worker`'s to do. `term`: the one it was told last, if it still believes in it.
    pub(crate) async fn advance(
        &self,
        event: EventId,
        worker: Uuid,
        term: Option<u64>,
    ) -> Result<Turn, Trouble> {
        match self {
            Self::Memory(counters) => counters.advance(event, worker, term).await,
            Self::Redis(counters) => counters.advance(event, worker, term).await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.advance(event, worker, term).await,
        }
    }

    /// Gives back what was set aside and not given: for a process that stops. Redis and DynamoDB go on counting without us.
    pub(crate) async fn settle(&self) -> Result<(), Trouble> {
        match self {
            Self::Memory(counters) => counters.settle().await,
            Self::Redis(_) => Ok(()),
            #[cfg(feature = "aws")]
            Self::DynamoDb(_) => Ok(()),
        }
    }

    /// Carries out what an operator decided, and writes down that they did.
    pub(crate) async fn order(&self, event: EventId, order: Order, by: By) -> Result<Ordered, Trouble> {
        rules::check(order)?;
        match self {
            Self::Memory(counters) => counters.order(event, order, by).await,
            Self::Redis(counters) => counters.order(event, order, by).await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.order(event, order, by).await,
        }
    }
}

/// Whether somebody lets people on at `now`.
fn is_led(lead: Lead, now: Timestamp) -> bool {
    lead.leader.is_some() && lead.until > now && lead.until <= now.after(LEASE + CLOCKS_DIFFER)
}

/// A room that nobody has opened yet.
fn unopened(event: EventId, now: Timestamp) -> Room {
    Room {
        event,
        epoch: 1,
        opened_at: now,
        active: true,
        paused: false,
        rate: DEFAULT_RATE,
        fail_open: false,
        tail: 0,
        serving: 0,
    }
}

/// Rooms that are open, or were not long ago.
async fn rooms(db: &Db, now: Timestamp) -> Result<Vec<Kept>, Trouble> {
    let since = now.before(REMEMBERED);
    let (mut found, mut last) = (Vec::new(), EventId::from_uuid(Uuid::nil()));
    for _ in 0..MAX_PAGES {
        let page: Vec<Kept> = db
            .read("vwr.rooms", async |tx: &mut Tx<'_>| {
                Ok::<_, Trouble>(store::rooms(tx, since, last, PAGE).await?)
            })
            .await?;
        let Some(kept) = page.last() else { return Ok(found) };
        last = kept.room.event;
        found.extend(page);
    }
    // A room that is not looked at would be one in front of which nobody waits.
    Err(Trouble::Busy("there are more rooms than can be looked at"))
}

/// Decides and writes it down, in one transaction. Answers with the room before and after; `tail` is how many places were given
/// of the room's present opening, if anybody knows better than the database.
async fn decide(
    db: &Db,
    event: EventId,
    order: Order,
    by: By,
    tail: impl Fn(&Room) -> u64,
) -> Result<(Room, Kept), Trouble> {
    transaction!(db, "vwr.order", async |tx: &mut Tx<'_>| {
        let before = match store::room(tx, event).await? {
            Some(kept) => kept,
            None if matches!(order, Order::Activate { .. }) => {
                store::insert(tx, &unopened(event, by.at)).await?;
                store::room(tx, event).await?.ok_or(Trouble::Busy("a new room is not there"))?
            }
            None => return Err(urr_contracts::vwr::Error::RoomNotFound.into()),
        };
        let known = Room { tail: tail(&before.room), ..before.room };
        let after = rules::decide(&known, order, rules::opens_at(&before.room, by.at));
        // What is set aside stays set aside, unless the count begins anew.
        let reserved = if after.epoch == known.epoch { before.room.tail } else { 0 };
        let after = Room { tail: reserved, ..after };
        store::decide(tx, &after, by.at).await?;
        store::act(tx, event, order, by).await?;
        Ok((known, Kept { room: after, version: before.version + 1, ..before }))
    })
}

/// Takes `count` more places. Answers behind which one they begin, and with the last of them.
async fn reserve(db: &Db, event: EventId, epoch: u64, count: u64) -> Result<(u64, u64), Trouble> {
    let last: Option<u64> = transaction!(db, "vwr.reserve", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::reserve(tx, event, epoch, count).await?)
    })?;
    let last = last.ok_or(Trouble::Busy("the room was opened again in this moment"))?;
    Ok((last - count, last))
}
