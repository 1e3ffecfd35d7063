//! Counters in memory. Positions are reserved in the database in blocks before the first of a block
//! is given, so a crash may skip some but repeats none. Unused ones are released each second and at
//! shutdown. All other state is in the database.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Mutex as AsyncMutex;
use urr_contracts::vwr::{Error, Order, Ordered, Room};
use urr_db::{Db, Tx, transaction};
use urr_kernel::{Clock, EventId};
use uuid::Uuid;

use super::{AssignedPositions, LEASE, LeaseOutcome, decide, demand::Demand, is_led, reserve, rooms};
use crate::{
    Failure, rules,
    store::{self, CommandSource, Lead, RoomRow},
};

/// Counters in memory.
pub struct MemoryCounters {
    db: Db,
    clock: Clock,
    tails: Mutex<HashMap<EventId, Arc<AsyncMutex<Tail>>>>,
}

/// The end of one line, as far as this process knows.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    /// The room when last read, with the positions really given. `None` before the first read.
    room: Option<Room>,
    /// Version of the latest decision seen.
    version: u64,
    /// Positions up to here may be given without another reservation.
    reserved: u64,
    /// Size of the next reservation.
    demand: Demand,
}

impl Tail {
    /// Merges a row of the database. Returns the current room.
    fn learn(&mut self, kept: &RoomRow) -> Room {
        // A decision may have been made after the row was read.
        let row = match self.room {
            Some(known) if kept.version < self.version => Room { tail: self.reserved, ..known },
            _ => kept.room,
        };
        self.version = self.version.max(kept.version);
        let tail = self.of(&row);
        // Positions reserved by another or an earlier process may have been given.
        self.reserved = row.tail;
        let served = self.room.filter(|known| known.epoch == row.epoch).map_or(0, |known| known.serving);
        let room = Room { tail, serving: row.serving.max(served), ..row };
        self.room = Some(room);
        room
    }

    /// Positions given in this opening.
    fn of(&self, row: &Room) -> u64 {
        match self.room {
            Some(known) if self.is_up_to_date(row) => known.tail,
            _ => row.tail,
        }
    }

    /// Whether this process made the latest reservation.
    fn is_up_to_date(&self, row: &Room) -> bool {
        self.reserved == row.tail && self.room.is_some_and(|known| known.epoch == row.epoch)
    }

    /// Releases reserved positions that were not given. Returns the previous state, to be restored
    /// if the write fails. If the result of the write is unknown, those positions are skipped.
    fn give_up(&mut self) -> Self {
        let before = *self;
        self.reserved = self.room.map_or(self.reserved, |room| room.tail.min(self.reserved));
        before
    }
}

impl MemoryCounters {
    pub(super) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, tails: Mutex::default() }
    }

    pub(super) async fn add(&self, event: EventId, count: u64) -> Result<AssignedPositions, Failure> {
        let tail = self.tail(event);
        let mut tail = tail.lock().await;
        let room = match tail.room {
            Some(room) => room,
            None => tail.learn(&self.row(event).await?),
        };
        if !room.active {
            return Err(Error::NotActive.into());
        }
        let mut given = room.tail;
        if given + count > tail.reserved {
            let block = tail.demand.next(given, count, self.clock.ticks());
            let (before, last) = reserve(&self.db, event, room.epoch, block).await?;
            // If another process reserved a block meanwhile, the rest of this one is skipped.
            given = if before == tail.reserved { given } else { before };
            tail.reserved = last;
        }
        let room = Room { tail: given + count, ..room };
        tail.room = Some(room);
        Ok(AssignedPositions { first: given + 1, room })
    }

    pub(super) async fn look(&self) -> Result<Vec<Room>, Failure> {
        let mut found = Vec::new();
        for kept in rooms(&self.db, self.clock.now()).await? {
            let event = kept.room.event;
            let tail = self.tail(event);
            let mut tail = tail.lock().await;
            // Another process reserved positions, or this one reserved or released some since the
            // row was read.
            let is_news = tail.room.is_some() && !tail.is_up_to_date(&kept.room);
            let kept = if is_news { self.row(event).await? } else { kept };
            found.push(tail.learn(&kept));
        }
        Ok(found)
    }

    pub(super) async fn advance(
        &self,
        event: EventId,
        worker: Uuid,
        term: Option<u64>,
    ) -> Result<LeaseOutcome, Failure> {
        let tail = self.tail(event);
        let mut tail = tail.lock().await;
        let now = self.clock.now();
        let before = tail.give_up();
        let given = tail.reserved;
        let turn: Option<(RoomRow, u64)> = transaction!(self.db, "vwr.advance", async |tx: &mut Tx<'_>| {
            let Some(kept) = store::room(tx, event).await? else {
                return Err(Failure::from(Error::RoomNotFound));
            };
            let ours = kept.lead.leader == Some(worker) && term == Some(kept.lead.term);
            if !ours && is_led(kept.lead, now) {
                return Ok(None);
            }
            let term = if ours { kept.lead.term } else { kept.lead.term + 1 };
            let line = Room { tail: before.of(&kept.room), ..kept.room };
            let (serving, moved_at) = rules::advance(&line, kept.moved_at, now);
            let reserved = if before.is_up_to_date(&kept.room) { given.max(serving) } else { kept.room.tail };
            let lead = Lead { leader: Some(worker), term, until: now.after(LEASE) };
            store::advance(tx, event, (serving, moved_at), reserved, lead).await?;
            Ok(Some((RoomRow { room: Room { serving, tail: reserved, ..kept.room }, ..kept }, term)))
        })?;
        let Some((kept, term)) = turn else {
            // Nothing was written.
            *tail = before;
            return Ok(LeaseOutcome::Theirs);
        };
        Ok(LeaseOutcome::Ours { term, room: tail.learn(&kept) })
    }

    pub(super) async fn settle(&self) -> Result<(), Failure> {
        let tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (event, tail) in tails {
            let mut tail = tail.lock().await;
            let before = tail.give_up();
            let (Some(room), given) = (tail.room, tail.reserved) else { continue };
            if given < before.reserved {
                transaction!(self.db, "vwr.settle", async |tx: &mut Tx<'_>| {
                    let places = (given, before.reserved);
                    Ok::<_, Failure>(store::give_back(tx, event, room.epoch, places).await?)
                })?;
            }
        }
        Ok(())
    }

    pub(super) async fn order(
        &self,
        event: EventId,
        order: Order,
        by: CommandSource,
    ) -> Result<Ordered, Failure> {
        let tail = self.tail(event);
        let mut tail = tail.lock().await;
        let (before, after) = decide(&self.db, event, order, by, |row| tail.of(row)).await?;
        let room = tail.learn(&after);
        let advanced = if room.epoch == before.epoch { room.serving - before.serving } else { 0 };
        Ok(Ordered { room, advanced })
    }

    async fn row(&self, event: EventId) -> Result<RoomRow, Failure> {
        let found: Result<Option<RoomRow>, Failure> =
            transaction!(self.db, "vwr.room", async |tx: &mut Tx<'_>| { Ok(store::room(tx, event).await?) });
        found?.ok_or_else(|| Error::NotActive.into())
    }

    fn tail(&self, event: EventId) -> Arc<AsyncMutex<Tail>> {
        Arc::clone(self.tails.lock().unwrap_or_else(PoisonError::into_inner).entry(event).or_default())
    }
}
