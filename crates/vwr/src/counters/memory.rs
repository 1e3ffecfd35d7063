//! Counts in this process's memory. Places are set aside in the database a block at a time and before the first of them is given, so
//! a process that dies may skip some but never gives one twice. Everything else is a row of the database.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Mutex as AsyncMutex;
use urr_contracts::vwr::{Error, Order, Ordered, Room};
use urr_db::{Db, Tx, transaction};
use urr_kernel::{Clock, EventId};
use uuid::Uuid;

use super::{Given, LEASE, Turn, decide, reserve, rooms};
use crate::{
    rules,
    store::{self, By, Kept, Lead},
    trouble::Trouble,
};

/// Tails by event.
pub struct Memory {
    db: Db,
    clock: Clock,
    tails: Mutex<HashMap<EventId, Arc<AsyncMutex<Tail>>>>,
}

/// The end of one line, as far as this process knows.
#[derive(Debug, Default)]
struct Tail {
    /// As it was when we last looked, with the places that were really given. Nothing until then.
    room: Option<Room>,
    /// Of the latest decision we know of.
    version: u64,
    /// Up to here places may be given without asking the database.
    reserved: u64,
}

impl Tail {
    /// Takes over what the database says. Answers with the room as it is.
    fn learn(&mut self, kept: &Kept) -> Room {
        // Somebody may have decided after that row was read.
        let row = match self.room {
            Some(known) if kept.version < self.version => Room { tail: known.tail, ..known },
            _ => kept.room,
        };
        self.version = self.version.max(kept.version);
        let room = match self.room {
            // Places that another process set aside may have been given.
            Some(known) if known.epoch == row.epoch && self.reserved >= row.tail => {
                Room { tail: known.tail, serving: known.serving.max(row.serving), ..row }
            }
            Some(known) if known.epoch == row.epoch => {
                self.reserved = known.tail;
                Room { serving: known.serving.max(row.serving), ..row }
            }
            // What an earlier process had set aside may have been given.
            _ => {
                self.reserved = row.tail;
                row
            }
        };
        self.room = Some(room);
        room
    }

    /// How many places were given of this opening.
    fn of(&self, row: &Room) -> u64 {
        match self.room {
            Some(known) if known.epoch == row.epoch && self.reserved >= row.tail => known.tail,
            _ => row.tail,
        }
    }
}

impl Memory {
    pub(super) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, tails: Mutex::default() }
    }

    pub(super) async fn add(&self, event: EventId, count: u64) -> Result<Given, Trouble> {
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
            let (before, last) = reserve(&self.db, event, room.epoch, count).await?;
            // Where another process took a block meanwhile, what is left of ours is skipped.
            given = if before == tail.reserved { given } else { before };
            tail.reserved = last;
        }
        let room = Room { tail: given + count, ..room };
        tail.room = Some(room);
        Ok(Given { first: given + 1, room })
    }

    pub(super) async fn look(&self) -> Result<Vec<Room>, Trouble> {
        let mut found = Vec::new();
        for kept in rooms(&self.db, self.clock.now()).await? {
            let tail = self.tail(kept.room.event);
            let room = tail.lock().await.learn(&kept);
            found.push(room);
        }
        Ok(found)
    }

    pub(super) async fn advance(
        &self,
        event: EventId,
        worker: Uuid,
        term: Option<u64>,
    ) -> Result<Turn, Trouble> {
        let tail = self.tail(event);
        let mut tail = tail.lock().await;
        let now = self.clock.now();
        let turn: Option<(Kept, u64)> = transaction!(self.db, "vwr.advance", async |tx: &mut Tx<'_>| {
            let Some(kept) = store::room(tx, event).await? else {
                return Err(Trouble::from(Error::RoomNotFound));
            };
            let ours = kept.lead.leader == Some(worker) && term == Some(kept.lead.term);
            if !ours && kept.lead.leader.is_some() && kept.lead.until > now {
                return Ok(None);
            }
            let term = if ours { kept.lead.term } else { kept.lead.term + 1 };
            let line = Room { tail: tail.of(&kept.room), ..kept.room };
            let (serving, moved_at) = rules::advance(&line, kept.moved_at, now);
            let lead = Lead { leader: Some(worker), term, until: now.after(LEASE) };
            store::advance(tx, event, (serving, moved_at), lead).await?;
            Ok(Some((Kept { room: Room { serving, ..kept.room }, ..kept }, term)))
        })?;
        Ok(turn.map_or(Turn::Theirs, |(kept, term)| Turn::Ours { term, room: tail.learn(&kept) }))
    }

    pub(super) async fn order(&self, event: EventId, order: Order, by: By) -> Result<Ordered, Trouble> {
        let tail = self.tail(event);
        let mut tail = tail.lock().await;
        let (before, after) = decide(&self.db, event, order, by, |row| tail.of(row)).await?;
        let room = tail.learn(&after);
        let advanced = if room.epoch == before.epoch { room.serving - before.serving } else { 0 };
        Ok(Ordered { room, advanced })
    }

    async fn row(&self, event: EventId) -> Result<Kept, Trouble> {
        let found: Result<Option<Kept>, Trouble> =
            transaction!(self.db, "vwr.room", async |tx: &mut Tx<'_>| { Ok(store::room(tx, event).await?) });
        found?.ok_or_else(|| Error::NotActive.into())
    }

    fn tail(&self, event: EventId) -> Arc<AsyncMutex<Tail>> {
        Arc::clone(self.tails.lock().unwrap_or_else(PoisonError::into_inner).entry(event).or_default())
    }
}
