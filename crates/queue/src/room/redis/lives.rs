//! The lives of a room: it begins when somebody comes, ends when nobody has for long, and begins anew after Redis has lost it.
//!
//! What Redis loses comes back from two sides: slots from the database, which knew of each before its owner did, and places from the
//! tickets that people carry.

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
    journal::{Entry, Step, Unwritten, carrying::Carrying, store},
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

/// Whoever opens a room and has not within this time, or taken another page of slots over, has died.
const OPENING: Duration = Duration::from_secs(5);
/// How often the others look whether it is open, and the pause between two looks: six seconds in all.
const OPEN_LOOKS: u32 = 120;
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// Slots that go on, a page at a time: a transaction of some ten milliseconds, and a script of one or two.
const CARRIED_AT_ONCE: u32 = 1_000;
/// Pages for as many as may be in at once, and one that is not full.
const MAX_PAGES: u32 = MAX_THRESHOLD / CARRIED_AT_ONCE + 1;

impl Redis {
    /// Runs a script in a room, which is opened first if Redis does not know it.
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

    /// Begins a life of a room that Redis does not know: its first, or the next after Redis lost it. `false`: somebody else is
    /// about to; `true`: it is open, whoever did it. Lives are numbered in the database, and two that begin at once would be one too many.
    async fn open(&self, event: EventId) -> Result<bool, Closed> {
        let keys = ["room", "opening"].map(|name| key(event, name));
        let by = Uuid::from_bytes(self.ids.bytes()).to_string();
        let args = [Arg::from(by.as_str()), Arg::from(millis(OPENING))];
        let parts = ["room", "opening", "active", "slots"].map(|name| key(event, name));
        match self.kv.run(&ONE_OPENS, &parts, &args).await.map_err(closed)? {
            Reply::Int(1) => {}
            // It was opened since somebody looked, by another.
            Reply::Int(2) => return Ok(true),
            _ => return Ok(false),
        }
        let (threshold, now) = (self.limits.threshold, self.clock.now());
        let opened: Result<store::Kept, urr_db::Error> =
            transaction!(self.db, "queue.open", async |tx: &mut Tx<'_>| {
                store::begin(tx, event, threshold, now).await
            });
        let kept = opened.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "a room cannot be opened");
            Closed
        })?;
        let mut slots = 0;
        if let Some(carrying) = kept.carrying(now.before(self.limits.slot_total)) {
            let Some(carried) = self.carry(event, &by, carrying).await? else { return Ok(false) };
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
            // Their time runs out also if nobody else comes.
            self.remember(event).await?;
            tracing::warn!(%event, generation, slots, "Redis had lost a room; slots go on, people get their places back, then it goes on");
        }
        Ok(true)
    }

    /// Takes slots that go on over into the new life, in the database and then in Redis, a page at a time. Answers with how many, or
    /// with nothing when another has begun to open the room meanwhile.
    async fn carry(&self, event: EventId, by: &str, mut carrying: Carrying) -> Result<Option<usize>, Closed> {
        let mut carried = 0;
        for _ in 0..MAX_PAGES {
            let page: Result<(Vec<Entry>, Carrying), Unwritten> =
                transaction!(self.db, "queue.carry", async |tx: &mut Tx<'_>| {
                    if !store::goes_on(tx, event, carrying.generation).await? {
                        return Err(Unwritten::Foreign);
                    }
                    Ok(carrying.page(tx, event, CARRIED_AT_ONCE.into()).await?)
                });
            let (slots, next) = match page {
                Ok(page) => page,
                Err(Unwritten::Foreign) => return Ok(None),
                Err(Unwritten::Db(error)) => {
                    tracing::error!(%event, error = urr_telemetry::chain(&error), "slots of a room that Redis had lost cannot be read");
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
            carrying = next;
        }
        Ok(Some(carried))
    }

    /// Tells Redis of slots that go on. `false`: another opens the room.
    async fn tell(&self, event: EventId, by: &str, slots: &[Entry]) -> Result<bool, Closed> {
        let keys = ["room", "active", "slots", "opening"].map(|name| key(event, name));
        let (idle, total) = self.terms();
        let mut args = vec![Arg::from(idle), Arg::from(total), Arg::from(by), Arg::from(millis(OPENING))];
        let slots: Vec<[String; 4]> = slots.iter().filter_map(slot).collect();
        args.extend(slots.iter().flatten().map(|word| Arg::from(word.as_str())));
        let reply = self.kv.run(&CARRY, &keys, &args).await.map_err(closed)?;
        Ok(reply == Reply::List(vec![Reply::Int(1)]))
    }

    /// Gives a room up of which the database knows more than Redis does, also where nothing happens that would show it.
    ///
    /// A step is in Redis before it is in the database, and the database is asked first: however much is on its way, a Redis that
    /// knows everything is never taken for one that does not.
    pub(super) async fn compare(&self, event: EventId) -> Result<(), Closed> {
        let newest: Result<Option<store::Newest>, urr_db::Error> =
            self.db.read("queue.newest", async |tx: &mut Tx<'_>| store::newest(tx, event).await).await;
        let newest = newest.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "nobody knows whether Redis has the whole room");
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

    /// Gives a life of a room up whose journal goes on otherwise: a replica that was behind has taken over, or Redis is back with
    /// what it was, and what it does not know has happened. The next life begins as after any other loss.
    pub(super) async fn lose(&self, event: EventId, generation: u64) -> Result<(), Closed> {
        tracing::error!(%event, generation, "Redis has gone back to an earlier time; the room begins anew with slots from the database and places from tickets");
        let number = i64::try_from(generation).unwrap_or(i64::MAX);
        self.kv.run(&LOSE, &room_keys(event), &[Arg::from(number)]).await.map(drop).map_err(closed)
    }

    /// Closes a room that has been empty for `idle`. `false`: it goes on.
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
                // A room that Redis has just lost is not over: whoever was in it comes back.
                let used: Option<Timestamp> = store::last_used(tx, event, generation).await?;
                if is_lost && used.is_none_or(|used| used.after(idle) > now) {
                    return Ok(false);
                }
                store::close(tx, event, generation, now).await
            });
        closed.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "a room cannot be closed");
            Closed
        })
    }
}

/// A slot that goes on, in the words of `carry.lua`.
fn slot(entry: &Entry) -> Option<[String; 4]> {
    let Step::Admitted { user, order, slot, .. } = entry.step else { return None };
    let user: UserId = user;
    Some([user.to_string(), slot.to_string(), order.to_string(), entry.at.as_micros().to_string()])
}
