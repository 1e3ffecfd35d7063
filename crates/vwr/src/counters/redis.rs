//! Counters in Redis, for many processes: one key per room, one script per operation, by Redis's
//! clock.
//!
//! The database has the operators' decisions and an upper bound of the positions given. If Redis
//! loses its data, counting continues after that bound, so no position is given twice.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use urr_contracts::vwr::{Error, Order, Ordered, Room};
use urr_db::{Db, Tx, transaction};
use urr_kernel::{Clock, EventId, Timestamp};
use urr_kv::{Arg, Kv, Reply, Script};
use uuid::Uuid;

use super::{AssignedPositions, CLOCKS_DIFFER, LEASE, LeaseOutcome, decide, demand::Demand, reserve, rooms};
use crate::{
    Failure,
    rules::MAX_CREDIT,
    store::{self, CommandSource, RoomRow},
};

macro_rules! script {
    ($name:literal, $file:literal) => {
        Script::new($name, concat!(include_str!("room.lua"), include_str!($file)))
    };
}

static ADD: Script = script!("vwr.add", "add.lua");
static LOOK: Script = script!("vwr.look", "look.lua");
static RAISE: Script = script!("vwr.raise", "raise.lua");
static ADVANCE: Script = script!("vwr.advance", "advance.lua");
static JUMP: Script = script!("vwr.jump", "jump.lua");
static SET: Script = Script::new("vwr.set", include_str!("set.lua"));

/// Script replies that are not a position.
const UNKNOWN: i64 = -1;
const CLOSED: i64 = -2;
const USED_UP: i64 = -3;
const THEIRS: i64 = -4;

/// Redis may lack the room, then reserved positions, and other processes may use those up in
/// between.
const TRIES: usize = 5;

/// Rooms read concurrently.
const AT_ONCE: usize = 16;

/// Counters in Redis.
pub struct Redis {
    kv: Kv,
    db: Db,
    clock: Clock,
    /// Highest counters seen; they must not go back if Redis loses data.
    heard: Mutex<HashMap<EventId, Heard>>,
    /// Size of the next reservation per event.
    demand: Mutex<HashMap<EventId, Demand>>,
}

/// The highest counters seen in a room's current opening.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    epoch: u64,
    tail: u64,
    serving: u64,
}

impl Heard {
    fn learn(&mut self, room: &Room) {
        if room.epoch > self.epoch {
            *self = Self { epoch: room.epoch, ..Self::default() };
        }
        if room.epoch == self.epoch {
            self.tail = self.tail.max(room.tail);
            self.serving = self.serving.max(room.serving);
        }
    }
}

/// A script's reply: its number, and the room.
struct ScriptReply {
    number: i64,
    room: Room,
    version: u64,
}

impl Redis {
    pub(super) fn new(kv: Kv, db: Db, clock: Clock) -> Self {
        Self { kv, db, clock, heard: Mutex::default(), demand: Mutex::default() }
    }

    pub(super) async fn add(&self, event: EventId, count: u64) -> Result<AssignedPositions, Failure> {
        for _ in 0..TRIES {
            let reply = self.run(event, &ADD, &[Arg::from(signed(count))]).await?;
            match reply.number {
                CLOSED => return Err(Error::NotActive.into()),
                USED_UP => {
                    let block = self.block(&reply.room, count);
                    let (before, last) = reserve(&self.db, event, reply.room.epoch, block).await?;
                    let args = [reply.room.epoch, before, last].map(|number| Arg::from(signed(number)));
                    self.run(event, &RAISE, &args).await?;
                }
                first => return Ok(AssignedPositions { first: unsigned(first), room: reply.room }),
            }
        }
        Err(Failure::unavailable("other processes used up every reserved block of positions"))
    }

    /// How many positions to reserve when `count` more are needed.
    fn block(&self, room: &Room, count: u64) -> u64 {
        let mut demand = self.demand.lock().unwrap_or_else(PoisonError::into_inner);
        demand.entry(room.event).or_default().next(room.tail, count, self.clock.ticks())
    }

    pub(super) async fn look(&self) -> Result<Vec<Room>, Failure> {
        let kept = rooms(&self.db, self.clock.now()).await?;
        stream::iter(kept).map(|kept| self.look_at(kept)).buffered(AT_ONCE).try_collect().await
    }

    /// One room; updates Redis first if it lacks the latest decision.
    async fn look_at(&self, kept: RoomRow) -> Result<Room, Failure> {
        let event = kept.room.event;
        let reply = self.ask(event, &LOOK, &[]).await?;
        let reply = match reply {
            Some(reply) if reply.version >= kept.version => reply,
            _ => {
                self.push(&kept).await?;
                self.run(event, &LOOK, &[]).await?
            }
        };
        Ok(reply.room)
    }

    pub(super) async fn advance(
        &self,
        event: EventId,
        worker: Uuid,
        term: Option<u64>,
    ) -> Result<LeaseOutcome, Failure> {
        let worker = worker.to_string();
        let args = [
            Arg::from(worker.as_str()),
            Arg::from(term.map_or(0, signed)),
            Arg::from(micros(LEASE)),
            Arg::from(micros(MAX_CREDIT)),
            Arg::from(micros(CLOCKS_DIFFER)),
        ];
        let reply = self.run(event, &ADVANCE, &args).await?;
        if reply.number == THEIRS {
            return Ok(LeaseOutcome::Theirs);
        }
        self.remember(&reply.room).await?;
        Ok(LeaseOutcome::Ours { term: unsigned(reply.number), room: reply.room })
    }

    pub(super) async fn order(
        &self,
        event: EventId,
        order: Order,
        by: CommandSource,
    ) -> Result<Ordered, Failure> {
        // A decision is in the database before Redis applies it, so every action is recorded. Only
        // Redis has the tail, so it admits visitors, and the database gets the result afterwards.
        let (_, after) = decide(&self.db, event, order, by, |row| row.serving).await?;
        self.push(&after).await?;
        let Order::Advance { batch } = order else {
            let reply = self.run(event, &LOOK, &[]).await?;
            return Ok(Ordered { room: reply.room, advanced: 0 });
        };
        let args = [Arg::from(signed(after.room.epoch)), Arg::from(i64::from(batch))];
        let reply = self.run(event, &JUMP, &args).await?;
        self.remember(&reply.room).await?;
        Ok(Ordered { room: reply.room, advanced: unsigned(reply.number) })
    }

    /// Stores the serving counter in the database.
    async fn remember(&self, room: &Room) -> Result<(), Failure> {
        transaction!(self.db, "vwr.served", async |tx: &mut Tx<'_>| {
            Ok::<_, Failure>(store::served(tx, room.event, room.epoch, room.serving).await?)
        })
    }

    /// Runs a script on a room. Writes the room to Redis first if it is missing there.
    async fn run(
        &self,
        event: EventId,
        script: &'static Script,
        args: &[Arg<'_>],
    ) -> Result<ScriptReply, Failure> {
        for _ in 0..2 {
            if let Some(reply) = self.ask(event, script, args).await? {
                return Ok(reply);
            }
            let kept: Result<Option<RoomRow>, Failure> =
                transaction!(self.db, "vwr.room", async |tx: &mut Tx<'_>| Ok(store::room(tx, event).await?));
            let kept = kept?.ok_or(Error::RoomNotFound)?;
            tracing::warn!(%event, epoch = kept.room.epoch, "redis does not have a waiting room (data lost?): restored from the database, a few positions are skipped and none repeated");
            self.push(&kept).await?;
        }
        Err(Failure::unavailable("a room written to Redis is missing again"))
    }

    /// Runs a script on a room. `None` if Redis does not have it.
    async fn ask(
        &self,
        event: EventId,
        script: &'static Script,
        args: &[Arg<'_>],
    ) -> Result<Option<ScriptReply>, Failure> {
        let Heard { epoch, tail, serving } = self.heard(event);
        let heard = [epoch, tail, serving].map(|number| Arg::from(signed(number)));
        let reply = self.kv.run(script, &[key(event)], &[args, &heard].concat()).await?;
        let reply = parse_reply(event, &reply)?;
        if let Some(reply) = &reply {
            let mut all = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(event).or_default().learn(&reply.room);
        }
        Ok(reply)
    }

    fn heard(&self, event: EventId) -> Heard {
        let all = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&event).copied().unwrap_or_default()
    }

    /// Applies a decision in Redis, unless a later one has been applied.
    async fn push(&self, kept: &RoomRow) -> Result<(), Failure> {
        let RoomRow { room, version, .. } = kept;
        let heard = self.heard(room.event);
        let serving = if heard.epoch == room.epoch {
            heard.serving.max(room.serving).min(room.tail)
        } else {
            room.serving
        };
        let args = [
            Arg::from(signed(*version)),
            Arg::from(signed(room.epoch)),
            Arg::from(room.opened_at.as_micros()),
            Arg::from(i64::from(room.active)),
            Arg::from(i64::from(room.paused)),
            Arg::from(i64::from(room.rate)),
            Arg::from(i64::from(room.fail_open)),
            // Positions up to here may have been given.
            Arg::from(signed(room.tail)),
            Arg::from(signed(serving)),
        ];
        self.kv.run(&SET, &[key(room.event)], &args).await?;
        Ok(())
    }
}

fn key(event: EventId) -> String {
    format!("{{{event}}}:vwr")
}

/// Parses a script's reply. `None` if Redis does not have the room.
fn parse_reply(event: EventId, reply: &Reply) -> Result<Option<ScriptReply>, Failure> {
    let numbers = reply.list()?.iter().map(Reply::int).collect::<Result<Vec<_>, _>>()?;
    if numbers == [UNKNOWN] {
        return Ok(None);
    }
    let [number, epoch, opened, active, paused, rate, open, tail, serving, version] = numbers[..] else {
        return Err(urr_kv::Error::Reply("no room".to_owned()).into());
    };
    let room = Room {
        event,
        epoch: unsigned(epoch),
        opened_at: Timestamp::from_micros(opened),
        active: active == 1,
        paused: paused == 1,
        rate: u32::try_from(rate).unwrap_or(0),
        fail_open: open == 1,
        tail: unsigned(tail),
        serving: unsigned(serving),
    };
    Ok(Some(ScriptReply { number, room, version: unsigned(version) }))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
