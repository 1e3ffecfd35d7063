//! The two counters of a room: `tail`, the last position given, and `serving`, the last one
//! admitted.

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

use self::{memory::MemoryCounters, redis::Redis};
use crate::{
    Failure,
    rules::{self, DEFAULT_RATE},
    store::{self, CommandSource, Lead, RoomRow},
};

/// Lifetime of the lease of the process that admits visitors. It is renewed every second.
const LEASE: Duration = Duration::from_secs(4);

/// Largest difference between the clocks of two machines. A lease that ends later than this allows
/// is from before a clock went back.
const CLOCKS_DIFFER: Duration = Duration::from_mins(1);

/// How long a closed room stays listed: the lifetime of its tickets, and an hour more.
const REMEMBERED: Duration = Duration::from_hours(25);

/// Rooms per page, and most pages: a hundred thousand rooms.
const PAGE: i64 = 1_000;
const MAX_PAGES: usize = 100;

/// Positions that were given: the first of them, and the room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AssignedPositions {
    pub(crate) first: u64,
    pub(crate) room: Room,
}

/// Result of an attempt to admit visitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseOutcome {
    /// This process holds the lease.
    Ours {
        /// The lease's term, to be passed to the next call.
        term: u64,
        /// The room afterwards.
        room: Room,
    },
    /// Another process holds the lease.
    Theirs,
}

/// The counters of all rooms, in one store.
pub enum Counters {
    /// In the memory of one process.
    Memory(MemoryCounters),
    /// In Redis, for many processes.
    Redis(Redis),
    /// In DynamoDB, for many processes and for functions without a database.
    #[cfg(feature = "aws")]
    DynamoDb(dynamo::DynamoDb),
}

impl Counters {
    /// Counts in memory; the database has an upper bound of the positions given.
    pub fn memory(db: Db, clock: Clock) -> Self {
        Self::Memory(MemoryCounters::new(db, clock))
    }

    /// Counts in Redis; the database has the operators' decisions and the same upper bound.
    pub fn redis(kv: Kv, db: Db, clock: Clock) -> Self {
        Self::Redis(Redis::new(kv, db, clock))
    }

    /// Counts in the DynamoDB table of this prefix; the database has the operators' decisions.
    /// Without a database this process accepts no commands.
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

    /// Gives the next `count` positions.
    pub(crate) async fn add(&self, event: EventId, count: u64) -> Result<AssignedPositions, Failure> {
        match self {
            Self::Memory(counters) => counters.add(event, count).await,
            Self::Redis(counters) => counters.add(event, count).await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.add(event, count).await,
        }
    }

    /// Rooms that are open or were closed recently.
    pub(crate) async fn look(&self) -> Result<Vec<Room>, Failure> {
        match self {
            Self::Memory(counters) => counters.look().await,
            Self::Redis(counters) => counters.look().await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.look().await,
        }
    }

    /// Admits as many visitors as are due, if `worker` holds the lease or can take it. `term`: that
    /// of its last lease, if any.
    pub(crate) async fn advance(
        &self,
        event: EventId,
        worker: Uuid,
        term: Option<u64>,
    ) -> Result<LeaseOutcome, Failure> {
        match self {
            Self::Memory(counters) => counters.advance(event, worker, term).await,
            Self::Redis(counters) => counters.advance(event, worker, term).await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.advance(event, worker, term).await,
        }
    }

    /// Releases positions that were reserved and not given, at shutdown. Redis and DynamoDB keep
    /// counting without this process.
    pub(crate) async fn settle(&self) -> Result<(), Failure> {
        match self {
            Self::Memory(counters) => counters.settle().await,
            Self::Redis(_) => Ok(()),
            #[cfg(feature = "aws")]
            Self::DynamoDb(_) => Ok(()),
        }
    }

    /// Carries out an operator's command and records it.
    pub(crate) async fn order(
        &self,
        event: EventId,
        order: Order,
        by: CommandSource,
    ) -> Result<Ordered, Failure> {
        rules::check(order)?;
        match self {
            Self::Memory(counters) => counters.order(event, order, by).await,
            Self::Redis(counters) => counters.order(event, order, by).await,
            #[cfg(feature = "aws")]
            Self::DynamoDb(counters) => counters.order(event, order, by).await,
        }
    }
}

/// Whether a process holds a valid lease at `now`.
fn is_led(lead: Lead, now: Timestamp) -> bool {
    lead.leader.is_some() && lead.until > now && lead.until <= now.after(LEASE + CLOCKS_DIFFER)
}

/// A new room.
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

/// Rooms that are open or were closed recently.
async fn rooms(db: &Db, now: Timestamp) -> Result<Vec<RoomRow>, Failure> {
    let since = now.before(REMEMBERED);
    let (mut found, mut last) = (Vec::new(), EventId::from_uuid(Uuid::nil()));
    for _ in 0..MAX_PAGES {
        let page: Vec<RoomRow> = db
            .read("vwr.rooms", async |tx: &mut Tx<'_>| {
                Ok::<_, Failure>(store::rooms(tx, since, last, PAGE).await?)
            })
            .await?;
        let Some(kept) = page.last() else { return Ok(found) };
        last = kept.room.event;
        found.extend(page);
    }
    // A room that is left out would be treated as closed, and its visitors would not have to wait.
    Err(Failure::unavailable("there are more open rooms than the limit of 100,000"))
}

/// Applies a decision and records it, in one transaction. Returns the room before and after. `tail`
/// returns the last position given, if the caller knows it better than the database.
async fn decide(
    db: &Db,
    event: EventId,
    order: Order,
    by: CommandSource,
    tail: impl Fn(&Room) -> u64,
) -> Result<(Room, RoomRow), Failure> {
    transaction!(db, "vwr.order", async |tx: &mut Tx<'_>| {
        let before = match store::room(tx, event).await? {
            Some(kept) => kept,
            None if matches!(order, Order::Activate { .. }) => {
                store::insert(tx, &unopened(event, by.at)).await?;
                store::room(tx, event)
                    .await?
                    .ok_or_else(|| Failure::unavailable("a room that was just inserted is missing"))?
            }
            None => return Err(urr_contracts::vwr::Error::RoomNotFound.into()),
        };
        let known = Room { tail: tail(&before.room), ..before.room };
        let after = rules::decide(&known, order, rules::opens_at(&before.room, by.at));
        // Reservations stay, unless positions start from one again.
        let reserved = if after.epoch == known.epoch { before.room.tail } else { 0 };
        let after = Room { tail: reserved, ..after };
        store::decide(tx, &after, by.at).await?;
        store::act(tx, event, order, by).await?;
        Ok((known, RoomRow { room: after, version: before.version + 1, ..before }))
    })
}

/// Reserves `count` positions. Returns the one before the first, and the last.
async fn reserve(db: &Db, event: EventId, epoch: u64, count: u64) -> Result<(u64, u64), Failure> {
    let last: Option<u64> = transaction!(db, "vwr.reserve", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::reserve(tx, event, epoch, count).await?)
    })?;
    let last = last.ok_or_else(|| Failure::unavailable("the room was reopened concurrently"))?;
    Ok((last - count, last))
}
