//! Generations of a room in Redis: one begins with the first user, ends after a long idle time, and
//! a new one begins after Redis has lost the room.
//!
//! After a loss, slots are restored from the database, which records each before its owner learns
//! of it. Positions in line are restored from the tickets that users carry.

use std::time::Duration;

use urr_contracts::queue::MAX_THRESHOLD;
use urr_db::{Tx, transaction};
use urr_kernel::{EventId, Timestamp, UserId};
use urr_kv::{Arg, Reply, Script};
use uuid::Uuid;

use super::{
    Redis, closed, key, micros, millis,
    replies::{is_unknown, numbered},
    room_keys,
};
use crate::{
    journal::{Entry, Step, Unwritten, slot_copy::SlotCopy, store},
    room::Closed,
};

static CLOSE: Script =
    Script::new("queue.close", concat!(include_str!("../room.lua"), include_str!("../close.lua")));
static LOSE: Script =
    Script::new("queue.lose", concat!(include_str!("../room.lua"), include_str!("../lose.lua")));
static OPEN: Script = Script::new("queue.open", include_str!("../open.lua"));
static CARRY: Script = Script::new("queue.carry", include_str!("../carry.lua"));
static NUMBER: Script =
    Script::new("queue.number", "return redis.call('HMGET', KEYS[1], 'generation', 'seq')");
static ONE_OPENS: Script = Script::new("queue.one_opens", include_str!("../one_opens.lua"));

/// Lifetime of the opening lock. An opener renews it with every page of slots; one that does not
/// has crashed.
const OPENING: Duration = Duration::from_secs(5);
/// Number of polls, and the pause between two, while another process opens the room: six seconds in
/// all.
const OPEN_LOOKS: u32 = 120;
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// Slots restored per page: a transaction of about 10 ms and a script of 1 to 2 ms.
const CARRIED_AT_ONCE: u32 = 1_000;
/// Enough pages for the largest threshold, and one that is not full.
const MAX_PAGES: u32 = MAX_THRESHOLD / CARRIED_AT_ONCE + 1;

impl Redis {
    /// Runs a script in a room. Opens the room first if Redis does not have it.
    pub(super) async fn in_room(
        &self,
        event: EventId,
        script: &'static Script,
        args: &[Arg<'_>],
    ) -> Result<Reply, Closed> {
        let keys = room_keys(event);
        for _ in 0..OPEN_LOOKS {
            let reply = self.kv.run(script, &keys, args).await.map_err(closed)?;
            if !is_unknown(&reply) {
                return Ok(reply);
            }
            if !self.open(event).await? {
                tokio::time::sleep(OPEN_PAUSE).await;
            }
        }
        Err(Closed)
    }

    /// Begins the first or next generation of a room that Redis does not have. Returns `true` once
    /// the room is open, also if another process opened it, and `false` while another process opens
    /// it. The database numbers generations, so two openers at once would create one too many.
    async fn open(&self, event: EventId) -> Result<bool, Closed> {
        let keys = ["room", "opening"].map(|name| key(event, name));
        let by = Uuid::from_bytes(self.ids.bytes()).to_string();
        let args = [Arg::from(by.as_str()), Arg::from(millis(OPENING))];
        let parts = ["room", "opening", "active", "slots"].map(|name| key(event, name));
        match self.kv.run(&ONE_OPENS, &parts, &args).await.map_err(closed)? {
            Reply::Int(1) => {}
            // Another process opened it after `in_room` looked.
            Reply::Int(2) => return Ok(true),
            _ => return Ok(false),
        }
        let (threshold, now) = (self.limits.threshold, self.clock.now());
        let opened: Result<store::RoomRecord, urr_db::Error> =
            transaction!(self.db, "queue.open", async |tx: &mut Tx<'_>| {
                store::begin(tx, event, threshold, now).await
            });
        let kept = opened.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot open a waiting room: the database failed; users of this event get 503 until it answers");
            Closed
        })?;
        let mut slots = 0;
        if let Some(slot_copy) = kept.slot_copy(now.before(self.limits.slot_total)) {
            let Some(carried) = self.carry(event, &by, slot_copy).await? else { return Ok(false) };
            slots = carried;
        }
        let grace = if kept.lost { self.grace } else { Duration::ZERO };
        let generation = i64::try_from(kept.generation).unwrap_or(i64::MAX);
        let args = [
            Arg::from(generation),
            Arg::from(i64::from(kept.threshold)),
            Arg::from(i64::from(kept.paused)),
            Arg::from(i64::try_from(kept.epoch).unwrap_or(i64::MAX)),
            Arg::from(micros(grace)),
            Arg::from(i64::try_from(kept.entries.len() + slots).unwrap_or(i64::MAX)),
            Arg::from(i64::from(kept.lost)),
            Arg::from(by.as_str()),
        ];
        self.kv.run(&OPEN, &keys, &args).await.map_err(closed)?;
        if kept.lost {
            // Restored slots must expire even if the event gets no further requests.
            self.remember(event).await?;
            tracing::warn!(%event, generation, slots, "redis had lost a waiting room: slots restored from the database; admissions resume after queue.grace_secs, tickets restore positions");
        }
        Ok(true)
    }

    /// Copies active slots into the new generation, first in the database, then in Redis, one page
    /// at a time. Returns their number, or `None` if another process has started to open the room.
    async fn carry(
        &self,
        event: EventId,
        by: &str,
        mut slot_copy: SlotCopy,
    ) -> Result<Option<usize>, Closed> {
        let mut carried = 0;
        for _ in 0..MAX_PAGES {
            let page: Result<(Vec<Entry>, SlotCopy), Unwritten> =
                transaction!(self.db, "queue.carry", async |tx: &mut Tx<'_>| {
                    if !store::goes_on(tx, event, slot_copy.generation).await? {
                        return Err(Unwritten::Foreign);
                    }
                    Ok(slot_copy.page(tx, event, CARRIED_AT_ONCE.into()).await?)
                });
            let (slots, next) = match page {
                Ok(page) => page,
                Err(Unwritten::Foreign) => return Ok(None),
                Err(Unwritten::Db(error)) => {
                    tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot restore the slots of a waiting room that redis lost: the database failed; users of this event get 503 until it answers");
                    return Err(Closed);
                }
            };
            if slots.is_empty() {
                break;
            }
            if !self.tell(event, by, &slots).await? {
                return Ok(None);
            }
            carried += slots.len();
            slot_copy = next;
        }
        Ok(Some(carried))
    }

    /// Restores a page of slots in Redis. Returns `false` if another process opens the room.
    async fn tell(&self, event: EventId, by: &str, slots: &[Entry]) -> Result<bool, Closed> {
        let keys = ["room", "active", "slots", "opening"].map(|name| key(event, name));
        let (idle, total) = self.terms();
        let mut args = vec![Arg::from(idle), Arg::from(total), Arg::from(by), Arg::from(millis(OPENING))];
        let slots: Vec<[String; 4]> = slots.iter().filter_map(slot).collect();
        args.extend(slots.iter().flatten().map(|word| Arg::from(word.as_str())));
        let reply = self.kv.run(&CARRY, &keys, &args).await.map_err(closed)?;
        Ok(reply == Reply::List(vec![Reply::Int(1)]))
    }

    /// Discards the room in Redis if the database knows later steps, even when no request reveals
    /// it.
    ///
    /// Steps reach Redis before the database, and this reads the database first. A complete room is
    /// therefore never mistaken for an outdated one, however many steps are in flight.
    pub(super) async fn compare(&self, event: EventId) -> Result<(), Closed> {
        let newest: Result<Option<store::Newest>, urr_db::Error> =
            self.db.read("queue.newest", async |tx: &mut Tx<'_>| store::newest(tx, event).await).await;
        let newest = newest.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot compare redis with the journal: the database failed; admissions for this event stop until it answers");
            Closed
        })?;
        let reply = self.kv.run(&NUMBER, &[key(event, "room")], &[]).await.map_err(closed)?;
        let (Some(newest), Some((generation, seq))) = (newest, numbered(&reply).map_err(closed)?) else {
            return Ok(());
        };
        if !newest.is_ahead_of(generation, seq) {
            return Ok(());
        }
        self.lose(event, generation).await?;
        Err(Closed)
    }

    /// Discards a generation whose journal in the database continues differently: an outdated
    /// replica was promoted, or Redis was restored from old data. The next generation begins as
    /// after any loss.
    pub(super) async fn lose(&self, event: EventId, generation: u64) -> Result<(), Closed> {
        tracing::error!(%event, generation, "redis has older data than the journal (failover or restore?): waiting room restarted with slots from the database and positions from tickets");
        let number = i64::try_from(generation).unwrap_or(i64::MAX);
        self.kv.run(&LOSE, &room_keys(event), &[Arg::from(number)]).await.map(drop).map_err(closed)
    }

    /// Closes a room that has been empty for `idle`. Returns `false` if it stays open.
    pub(in crate::room) async fn close(
        &self,
        event: EventId,
        generation: u64,
        idle: Duration,
    ) -> Result<bool, Closed> {
        self.take_over(event).await?;
        self.compare(event).await?;
        let (now, number) = (self.clock.now(), i64::try_from(generation).unwrap_or(i64::MAX));
        let args = [Arg::from(micros(idle)), Arg::from(number)];
        let reply = self.kv.run(&CLOSE, &room_keys(event), &args).await.map_err(closed)?;
        let is_lost = is_unknown(&reply);
        if !is_lost && reply != Reply::List(vec![Reply::Int(1)]) {
            return Ok(false);
        }
        let closed: Result<bool, urr_db::Error> =
            transaction!(self.db, "queue.close", async |tx: &mut Tx<'_>| {
                // A room that Redis has just lost is not closed: its users will come back.
                let used: Option<Timestamp> = store::last_used(tx, event, generation).await?;
                if is_lost && used.is_none_or(|used| used.after(idle) > now) {
                    return Ok(false);
                }
                store::close(tx, event, generation, now).await
            });
        closed.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot close an idle waiting room: the database failed; retried at the next run");
            Closed
        })
    }
}

/// The arguments of `carry.lua` for one slot.
fn slot(entry: &Entry) -> Option<[String; 4]> {
    let Step::Admitted { user, order, slot, .. } = entry.step else { return None };
    let user: UserId = user;
    Some([user.to_string(), slot.to_string(), order.to_string(), entry.at.as_micros().to_string()])
}
