//! Counters in DynamoDB, for many processes and for functions without a database: one item per
//! room, one conditional update per operation.
//!
//! DynamoDB is durable, so the item is the count and no positions are reserved elsewhere. Decisions
//! are still made in the database, which records them; a process without one gives positions and
//! reads rooms only. DynamoDB has no clock, so the lease holder uses its own.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use urr_aws::{Change, Changed, Dynamo, Item, Value};
use urr_contracts::vwr::{Error, Order, Ordered, Room};
use urr_db::{Db, Tx, transaction};
use urr_kernel::{Clock, EventId, Ids, Timestamp};
use uuid::Uuid;

use super::{AssignedPositions, LEASE, LeaseOutcome, REMEMBERED, decide, is_led, rooms};
use crate::{
    Failure, rules,
    store::{self, CommandSource, Lead, RoomRow},
};

/// Suffix of the table's name.
const TABLE: &str = "vwr-counters";
/// The table's key.
pub(super) const KEY: &str = "eventId";
/// The item's TTL, in seconds since 1970.
const EXPIRES: &str = "expiresAt";
/// 31 December 9999.
const NEVER: i64 = 253_402_300_799;

/// An attempt fails only if a concurrent one succeeded, and few processes write: operators, the
/// lease holder, and its successor.
const TRIES: usize = 8;

/// Rooms written to DynamoDB concurrently.
const AT_ONCE: usize = 16;

/// A room missing in DynamoDB is either not written yet or lost. A process that opens a room writes
/// it within this time.
const TOLD: Duration = Duration::from_secs(10);

/// Updates decisions within an opening. The counters stay.
const DECIDED: &str = "SET isActive = :active, isPaused = :paused, ratePerSecond = :rate, failsOpen = :open, decision = :decision, \
                       movedAt = :now, updatedAt = :ms, expiresAt = :expires";

/// Begins an opening. The counters restart.
const OPENED: &str = "SET isActive = :active, isPaused = :paused, ratePerSecond = :rate, failsOpen = :open, decision = :decision, \
                      movedAt = :now, updatedAt = :ms, expiresAt = :expires, epoch = :epoch, openedAt = :opened, \
                      nextPosition = :zero, servingCounter = :zero, ledBy = :nobody, ledTerm = :zero, ledUntil = :zero";

/// Counters in DynamoDB.
pub struct DynamoDb {
    dynamo: Dynamo,
    table: String,
    db: Option<Db>,
    clock: Clock,
    ids: Ids,
}

impl DynamoDb {
    pub(super) fn new(dynamo: Dynamo, prefix: &str, db: Option<Db>, clock: Clock, ids: Ids) -> Self {
        Self { dynamo, table: table(prefix), db, clock, ids }
    }

    pub(super) async fn add(&self, event: EventId, count: u64) -> Result<AssignedPositions, Failure> {
        for _ in 0..2 {
            let values = vec![
                (":count", number(count)),
                (":yes", Value::Flag(true)),
                (":ms", Value::Number(millis(self.clock.now()))),
            ];
            let expression = "SET updatedAt = :ms ADD nextPosition :count";
            match self.change(event, expression, "isActive = :yes", values).await? {
                Changed::Yes(item) => {
                    let room = known(&item)?.room;
                    return Ok(AssignedPositions { first: room.tail - count + 1, room });
                }
                Changed::No(Some(_)) => return Err(Error::NotActive.into()),
                Changed::No(None) => self.restore(event).await?.ok_or(Error::NotActive)?,
            };
        }
        Err(Failure::unavailable("a room written to DynamoDB is missing again"))
    }

    pub(super) async fn look(&self) -> Result<Vec<Room>, Failure> {
        let items = self.dynamo.scan(&self.table).await?;
        let now = self.clock.now();
        let Some(db) = &self.db else {
            let since = millis(now.before(REMEMBERED));
            let recent_tickets = items.iter().filter(|item| item.number("updatedAt") >= Some(since));
            return Ok(recent_tickets.filter_map(read).map(|kept| kept.room).collect());
        };
        let mut found: HashMap<EventId, RoomRow> =
            items.iter().filter_map(read).map(|kept| (kept.room.event, kept)).collect();
        let rows = rooms(db, now).await?.into_iter().map(|row| {
            let found = found.remove(&row.room.event);
            async move {
                match found {
                    Some(kept) if kept.version >= row.version => Ok(kept.room),
                    Some(_) => Ok(self.push(&row).await?.room),
                    None => Ok(self.bring_back(db, row).await?.room),
                }
            }
        });
        stream::iter(rows).buffered(AT_ONCE).try_collect().await
    }

    pub(super) async fn advance(
        &self,
        event: EventId,
        worker: Uuid,
        term: Option<u64>,
    ) -> Result<LeaseOutcome, Failure> {
        for _ in 0..TRIES {
            let kept = self.item(event).await?;
            let now = self.clock.now();
            let ours = kept.lead.leader == Some(worker) && term == Some(kept.lead.term);
            if !ours && is_led(kept.lead, now) {
                return Ok(LeaseOutcome::Theirs);
            }
            let term = if ours { kept.lead.term } else { kept.lead.term + 1 };
            let (serving, moved_at) = rules::advance(&kept.room, kept.moved_at, now);
            let lead = Lead { leader: Some(worker), term, until: now.after(LEASE) };
            if let Some(after) = self.lead(&kept, serving, moved_at, lead).await? {
                return Ok(LeaseOutcome::Ours { term, room: after.room });
            }
        }
        Err(Failure::unavailable("concurrent updates of the room keep winning"))
    }

    pub(super) async fn order(
        &self,
        event: EventId,
        order: Order,
        by: CommandSource,
    ) -> Result<Ordered, Failure> {
        let db = self
            .db
            .as_ref()
            .ok_or_else(|| Failure::unavailable("this process has no database and accepts no commands"))?;
        // As with Redis: the decision is written to the database first. Only DynamoDB has the tail.
        let (_, after) = decide(db, event, order, by, |row| row.serving).await?;
        let told = self.push(&after).await?;
        match order {
            Order::Advance { batch } => self.jump(event, after.room.epoch, batch.into()).await,
            _ => Ok(Ordered { room: told.room, advanced: 0 }),
        }
    }

    /// Admits more visitors at once.
    async fn jump(&self, event: EventId, epoch: u64, batch: u64) -> Result<Ordered, Failure> {
        for _ in 0..TRIES {
            let room = self.item(event).await?.room;
            let serving = (room.serving + batch).min(room.tail).max(room.serving);
            let advanced = serving - room.serving;
            if room.epoch != epoch || advanced == 0 {
                return Ok(Ordered { room, advanced: 0 });
            }
            let values = vec![
                (":epoch", number(epoch)),
                (":before", number(room.serving)),
                (":serving", number(serving)),
            ];
            let condition = "epoch = :epoch AND servingCounter = :before";
            let changed = self.change(event, "SET servingCounter = :serving", condition, values).await?;
            if let Changed::Yes(item) = changed {
                return Ok(Ordered { room: known(&item)?.room, advanced });
            }
        }
        Err(Failure::unavailable("concurrent updates of the room keep winning"))
    }

    /// Advances the serving counter, unless anything but the tail has changed since the room was
    /// read.
    async fn lead(
        &self,
        kept: &RoomRow,
        serving: u64,
        moved_at: Timestamp,
        lead: Lead,
    ) -> Result<Option<RoomRow>, Failure> {
        let values = vec![
            (":epoch", number(kept.room.epoch)),
            (":decision", number(kept.version)),
            (":served", number(kept.room.serving)),
            (":moved", Value::Number(kept.moved_at.as_micros())),
            (":led", leader(kept.lead.leader)),
            (":before", number(kept.lead.term)),
            (":serving", number(serving)),
            (":upto", Value::Number(moved_at.as_micros())),
            (":leader", leader(lead.leader)),
            (":term", number(lead.term)),
            (":until", Value::Number(lead.until.as_micros())),
            (":ms", Value::Number(millis(self.clock.now()))),
        ];
        let expression = "SET servingCounter = :serving, movedAt = :upto, ledBy = :leader, ledTerm = :term, \
                          ledUntil = :until, updatedAt = :ms";
        let condition = "epoch = :epoch AND decision = :decision AND servingCounter = :served AND movedAt = :moved \
                         AND ledBy = :led AND ledTerm = :before";
        match self.change(kept.room.event, expression, condition, values).await? {
            Changed::Yes(item) => known(&item).map(Some),
            Changed::No(_) => Ok(None),
        }
    }

    /// The current state of a room.
    async fn item(&self, event: EventId) -> Result<RoomRow, Failure> {
        let key = event.to_string();
        match self.dynamo.get(&self.table, (KEY, &key)).await?.as_ref().and_then(read) {
            Some(kept) => Ok(kept),
            None => Ok(self.restore(event).await?.ok_or(Error::RoomNotFound)?),
        }
    }

    /// Writes a room that DynamoDB lacks. `None` if it was never opened, as far as this process can
    /// tell.
    async fn restore(&self, event: EventId) -> Result<Option<RoomRow>, Failure> {
        let Some(db) = &self.db else { return Ok(None) };
        let row: Result<Option<RoomRow>, Failure> =
            transaction!(db, "vwr.room", async |tx: &mut Tx<'_>| Ok(store::room(tx, event).await?));
        match row? {
            Some(row) => self.bring_back(db, row).await.map(Some),
            None => Ok(None),
        }
    }

    /// Writes a room that DynamoDB lacks. If it was there before, the counters are lost and
    /// positions would repeat: the room is reopened, and waiting visitors get new positions.
    async fn bring_back(&self, db: &Db, row: RoomRow) -> Result<RoomRow, Failure> {
        let (room, now) = (row.room, self.clock.now());
        if !room.active || now.since(room.opened_at) < TOLD {
            return self.push(&row).await;
        }
        let event = room.event;
        tracing::error!(%event, epoch = room.epoch, "dynamodb lost a waiting room (table deleted?): reopened, waiting visitors get new positions");
        let again = [Order::Deactivate, Order::Activate { rate: None, fail_open: None }];
        let mut after = row;
        for order in again.into_iter().chain(room.paused.then_some(Order::Pause)) {
            let by = CommandSource { id: self.ids.next(), actor: None, at: self.clock.now() };
            (_, after) = decide(db, event, order, by, |row| row.serving).await?;
        }
        self.push(&after).await
    }

    /// Applies a decision in DynamoDB, unless a later one has been applied. Returns the room.
    async fn push(&self, row: &RoomRow) -> Result<RoomRow, Failure> {
        for _ in 0..TRIES {
            let condition = "epoch = :epoch AND decision < :decision";
            let values = [self.decided(row), vec![(":epoch", number(row.room.epoch))]].concat();
            match self.change(row.room.event, DECIDED, condition, values).await? {
                Changed::Yes(item) => return known(&item),
                Changed::No(item) => match item.as_ref().and_then(read) {
                    Some(later) if later.version >= row.version => return Ok(later),
                    _ => {}
                },
            }
            let condition = "attribute_not_exists(epoch) OR epoch < :epoch";
            let opening = vec![
                (":epoch", number(row.room.epoch)),
                (":opened", Value::Number(row.room.opened_at.as_micros())),
                (":zero", Value::Number(0)),
                (":nobody", leader(None)),
            ];
            let values = [self.decided(row), opening].concat();
            if let Changed::Yes(item) = self.change(row.room.event, OPENED, condition, values).await? {
                return known(&item);
            }
        }
        Err(Failure::unavailable("concurrent commands for the room keep winning"))
    }

    fn decided(&self, row: &RoomRow) -> Vec<(&'static str, Value)> {
        let (room, now) = (&row.room, self.clock.now());
        let expires = if room.active { NEVER } else { millis(now.after(REMEMBERED)) / 1_000 };
        vec![
            (":active", Value::Flag(room.active)),
            (":paused", Value::Flag(room.paused)),
            (":rate", Value::Number(room.rate.into())),
            (":open", Value::Flag(room.fail_open)),
            (":decision", number(row.version)),
            (":now", Value::Number(now.as_micros())),
            (":ms", Value::Number(millis(now))),
            (":expires", Value::Number(expires)),
        ]
    }

    async fn change(
        &self,
        event: EventId,
        expression: &'static str,
        condition: &'static str,
        values: Vec<(&'static str, Value)>,
    ) -> Result<Changed, Failure> {
        let key = (KEY, event.to_string());
        Ok(self.dynamo.change(Change { table: &self.table, key, expression, condition, values }).await?)
    }
}

/// The table's name.
pub fn table(prefix: &str) -> String {
    format!("{prefix}-{TABLE}")
}

/// Creates the table, unless it exists. Returns whether it was created.
pub async fn create_table(dynamo: &Dynamo, prefix: &str) -> Result<bool, urr_aws::Error> {
    dynamo.create_table(&table(prefix), KEY, EXPIRES).await
}

/// Decodes an item. `None` if another program wrote it.
fn read(item: &Item) -> Option<RoomRow> {
    let count = |name| item.number(name).and_then(|number| u64::try_from(number).ok());
    let instant = |name| item.number(name).map(Timestamp::from_micros);
    let room = Room {
        event: item.text(KEY)?.parse().ok()?,
        epoch: count("epoch")?,
        opened_at: instant("openedAt")?,
        active: item.flag("isActive")?,
        paused: item.flag("isPaused")?,
        rate: u32::try_from(count("ratePerSecond")?).ok()?,
        fail_open: item.flag("failsOpen")?,
        tail: count("nextPosition")?,
        serving: count("servingCounter")?,
    };
    let leader = item.text("ledBy").filter(|text| *text != NOBODY).and_then(|text| text.parse().ok());
    let lead = Lead { leader, term: count("ledTerm")?, until: instant("ledUntil")? };
    Some(RoomRow { room, version: count("decision")?, moved_at: instant("movedAt")?, lead })
}

/// Decodes an item that must be a room.
fn known(item: &Item) -> Result<RoomRow, Failure> {
    read(item).ok_or_else(|| Failure::unavailable("an item in the DynamoDB table is not a room"))
}

const NOBODY: &str = "nobody";

fn leader(leader: Option<Uuid>) -> Value {
    Value::Text(leader.map_or_else(|| NOBODY.to_owned(), |leader| leader.to_string()))
}

fn number(count: u64) -> Value {
    Value::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

fn millis(at: Timestamp) -> i64 {
    at.as_micros() / 1_000
}
