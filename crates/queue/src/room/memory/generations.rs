//! Generations of a room in memory: one begins with the first user and ends after a long idle time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_db::{Tx, transaction};
use urr_kernel::{EventId, Timestamp};

use super::{MemoryRooms, Numbered, RoomMap, lock};
use crate::{
    journal::{Unwritten, store, writer::Mark},
    room::Closed,
};

impl MemoryRooms {
    /// Opens the room of an event that has none. Its row is committed before its first step.
    pub(super) async fn open(&self, event: EventId) -> Result<Arc<Mutex<Numbered>>, Closed> {
        let _one_at_a_time = self.opening.lock().await;
        if let Some(room_model) = self.room_model(event) {
            return Ok(room_model);
        }
        let (threshold, now) = (self.limits.threshold, self.clock.now());
        let opened: Result<store::RoomRecord, Unwritten> =
            transaction!(self.db, "queue.open", async |tx: &mut Tx<'_>| {
                let kept = store::begin(tx, event, threshold, now).await?;
                // All rooms open at start are in memory, so a room open elsewhere belongs to
                // another process.
                if kept.lost || !self.keeper.is_ours(tx).await? { Err(Unwritten::Foreign) } else { Ok(kept) }
            });
        let kept = opened.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot open a waiting room: users of this event get 503; retried with the next request");
            Closed
        })?;
        let mut numbered = Numbered::new(kept.began_with, kept.generation, now);
        for entry in &kept.entries {
            numbered.room_model.apply(entry.step, entry.at);
            numbered.seq = entry.seq;
        }
        let room_model = Arc::new(Mutex::new(numbered));
        self.put(event, &room_model);
        Ok(room_model)
    }

    fn put(&self, event: EventId, room_model: &Arc<Mutex<Numbered>>) {
        self.change(|rooms| drop(rooms.insert(event, Arc::clone(room_model))));
    }

    fn take_out(&self, event: EventId) {
        self.change(|rooms| drop(rooms.remove(&event)));
    }

    /// Changes a copy of the map and swaps it in.
    fn change(&self, change: impl Fn(&mut RoomMap)) {
        self.rooms.rcu(|rooms| {
            let mut rooms = RoomMap::clone(rooms);
            change(&mut rooms);
            rooms
        });
    }

    /// Closes a room that has been empty for `idle`. Returns `false` if it stays open, also when
    /// the close cannot be written.
    pub(in crate::room) async fn close(&self, event: EventId, idle: Duration) -> Result<bool, Closed> {
        // Concurrent joins wait here too, and then find this room or its next generation.
        let _one_at_a_time = self.opening.lock().await;
        let Some(room_model) = self.room_model(event) else { return Ok(false) };
        let now = self.clock.now();
        let (generation, mark) = {
            let mut numbered = lock(&room_model);
            if numbered.closed || !numbered.room_model.is_empty() || numbered.changed.after(idle) > now {
                return Ok(false);
            }
            numbered.closed = true;
            self.take_out(event);
            (numbered.generation, self.writer.latest())
        };
        let closed = self.write_end(event, generation, mark, now).await;
        if closed.is_err() {
            lock(&room_model).closed = false;
            self.put(event, &room_model);
        }
        closed
    }

    async fn write_end(
        &self,
        event: EventId,
        generation: u64,
        mark: Mark,
        now: Timestamp,
    ) -> Result<bool, Closed> {
        self.writer.written(mark).await.map_err(|_| Closed)?;
        let closed: Result<bool, Unwritten> =
            transaction!(self.db, "queue.close", async |tx: &mut Tx<'_>| {
                if !self.keeper.is_ours(tx).await? {
                    return Err(Unwritten::Foreign);
                }
                Ok(store::close(tx, event, generation, now).await?)
            });
        closed.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot close an idle waiting room: it stays open; retried at the next run");
            Closed
        })
    }
}
