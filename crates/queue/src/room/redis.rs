//! Rooms in Redis, shared by many processes. Decisions are Lua scripts that use Redis's clock; all
//! keys of an event are in one cluster slot.
//!
//! The database has what must not be lost: each slot, before its owner learns of it, and the
//! operators' decisions. All other steps follow within a second. After a loss, slots are restored
//! from the database and positions from the tickets that users carry.

mod away;
mod generations;
mod known;
mod lines;
mod replies;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Mutex, time::Duration};

use urr_db::{Db, Tx, transaction};
use urr_kernel::{Clock, EventId, Ids, Timestamp, UserId};
use urr_kv::{Arg, Error, Kv, Reply, Script};
use uuid::Uuid;

use self::replies::{admitted, answer, arrival, is_unsure, steps, turn};
use super::{AdmissionLock, Admissions, Answer, Closed, Order};
use crate::{
    journal::{
        Unwritten, Why,
        outage::{Outage, Outages},
        store,
    },
    room_model::{Totals, UserState},
    settings::Limits,
    token_position::Claim,
    used_positions::UserHistory,
};

macro_rules! script {
    ($name:literal, $file:literal) => {
        Script::new($name, concat!(include_str!("room.lua"), include_str!($file)))
    };
}

static CHECK: Script = script!("queue.check", "check.lua");
static STATUS: Script = script!("queue.status", "status.lua");
static LEAVE: Script = script!("queue.leave", "leave.lua");
static TURN: Script = script!("queue.turn", "turn.lua");
static ADMIT: Script = script!("queue.admit", "admit.lua");
static KNOW: Script = script!("queue.know", "know.lua");
static ORDER: Script = script!("queue.order", "order.lua");
static STEPS: Script = Script::new("queue.steps", include_str!("steps.lua"));

/// A worker that has not renewed its lock for this long has stopped, and its epoch ends. Workers
/// run every second.
const LOCK: Duration = Duration::from_secs(4);

/// Admissions stop for this long after Redis has lost a room. Users poll every few seconds, or
/// later if their turn cannot come sooner, so they have their position back before others could
/// pass them.
pub const GRACE: Duration = Duration::from_secs(65);

/// Most slots that one run ends, and most waiting users it checks for inactivity: about half a
/// millisecond of Redis per second. A line of 50,000 takes 50 seconds.
const ENDED: i64 = 1_000;

/// Steps copied to the database per batch.
const STEPS_BATCH: i64 = 2_000;

/// Most batches of one run: as many steps as a room may have, so that a run ends.
const MAX_BATCHES: usize = 2_500;

/// Rooms in Redis.
pub struct Redis {
    kv: Kv,
    db: Db,
    clock: Clock,
    ids: Ids,
    limits: Limits,
    grace: Duration,
    /// Unique id of this process's worker.
    worker: String,
    /// Serialises copying of steps: a waiter usually finds its own steps copied already.
    moving: tokio::sync::Mutex<()>,
    /// Rooms whose steps the database does not accept.
    outages: Outages,
    /// Whether Redis is unreachable for slot checks.
    away: Outage,
    /// When this process last added each event to the set of rooms in use.
    remembered: Mutex<HashMap<EventId, Duration>>,
}

impl Redis {
    pub(super) fn new(kv: Kv, db: Db, clock: Clock, ids: Ids, limits: Limits, grace: Duration) -> Self {
        let worker = Uuid::from_bytes(ids.bytes()).to_string();
        let (moving, remembered) = (tokio::sync::Mutex::new(()), Mutex::default());
        let (outages, away) = (Outages::default(), Outage::default());
        Self { kv, db, clock, ids, limits, grace, worker, moving, outages, away, remembered }
    }

    /// How long the database has not accepted steps, if it does not now.
    pub(super) fn outage(&self) -> Option<Duration> {
        self.outages.lasts(self.clock.ticks())
    }

    pub(super) async fn check(
        &self,
        event: EventId,
        user: UserId,
        claim: &Claim<'_>,
        admissions: Admissions,
    ) -> Result<Answer, Closed> {
        if !self.may_stand(event, user).await? {
            let found = self.status(event, user).await?;
            let absent = found.state == UserState::Absent;
            return Ok(if absent { Answer { state: UserState::Elsewhere, ..found } } else { found });
        }
        let mut reply = self.arrive(event, user, claim, admissions, "").await?;
        if is_unsure(&reply) {
            let told = |UserHistory { last, furthest }: UserHistory| {
                format!("{} {} {furthest}", last.order, last.at.as_micros())
            };
            let turns = self.turns(event, user).await?.map_or_else(|| "-".to_owned(), told);
            reply = self.arrive(event, user, claim, admissions, &turns).await?;
        }
        let (answer, flaws) = arrival(&reply, claim.promises).map_err(closed)?;
        let answer = self.told(event, user, answer).await?;
        Ok(Answer { flaws, ..answer })
    }

    /// Runs `check.lua`. `turns`: the user's turns from the database, in the format of the script.
    pub(super) async fn arrive(
        &self,
        event: EventId,
        user: UserId,
        claim: &Claim<'_>,
        admissions: Admissions,
        turns: &str,
    ) -> Result<Reply, Closed> {
        let user_text = user.to_string();
        let slot = Uuid::from_bytes(self.ids.bytes()).to_string();
        let epoch = |epoch: Option<u64>| epoch.map_or_else(String::new, |epoch| epoch.to_string());
        let promises: Vec<[String; 3]> = claim
            .promises
            .iter()
            .map(|promise| {
                let since = promise.since.as_micros().to_string();
                [promise.order.to_string(), epoch(promise.epoch), since]
            })
            .collect();
        let (idle, total) = self.terms();
        let max_waiting = i64::try_from(self.limits.max_waiting).unwrap_or(i64::MAX);
        let mut args = vec![
            Arg::from(user_text.as_str()),
            Arg::from(slot.as_str()),
            Arg::from(idle),
            Arg::from(total),
            Arg::from(max_waiting),
            Arg::from(turns),
            Arg::from(i64::from(admissions == Admissions::Open)),
            Arg::from(i64::from(claim.may_be_new)),
        ];
        args.extend(promises.iter().flatten().map(|word| Arg::from(word.as_str())));
        self.in_room(event, &CHECK, &args).await
    }

    /// The turns that the user had before Redis lost the room.
    async fn turns(&self, event: EventId, user: UserId) -> Result<Option<UserHistory>, Closed> {
        let turns: Result<Option<UserHistory>, urr_db::Error> =
            self.db.read("queue.used", async |tx: &mut Tx<'_>| store::turns(tx, event, user).await).await;
        turns.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot read which positions a user has used: the database failed; this user gets 503");
            Closed
        })
    }

    pub(super) async fn status(&self, event: EventId, user: UserId) -> Result<Answer, Closed> {
        let reply = self.status_script(event, user).await?;
        self.told(event, user, &reply).await
    }

    /// Runs `status.lua` alone.
    pub(super) async fn status_script(&self, event: EventId, user: UserId) -> Result<Reply, Closed> {
        self.in_room(event, &STATUS, &self.look(&user.to_string())).await
    }

    /// Arguments of `status.lua`.
    fn look<'a>(&self, user: &'a str) -> [Arg<'a>; 3] {
        let (idle, total) = self.terms();
        [Arg::from(user), Arg::from(idle), Arg::from(total)]
    }

    pub(super) async fn leave(&self, event: EventId, user: UserId, why: Why) -> Result<bool, Closed> {
        let was_here = self.go(event, user, why, "").await?;
        self.gone(event, user, Duration::ZERO).await?;
        Ok(was_here)
    }

    pub(super) async fn bought(&self, event: EventId, user: UserId, at: Timestamp) -> Result<bool, Closed> {
        let is_over = self.go(event, user, Why::Bought, &at.as_micros().to_string()).await?;
        if is_over {
            self.gone(event, user, Duration::ZERO).await?;
        }
        Ok(is_over)
    }

    async fn go(&self, event: EventId, user: UserId, why: Why, since: &str) -> Result<bool, Closed> {
        let user = user.to_string();
        let args = [Arg::from(user.as_str()), Arg::from(why.as_str()), Arg::from(since)];
        Ok(self.in_room(event, &LEAVE, &args).await? == Reply::List(vec![Reply::Int(1)]))
    }

    /// Acquires or renews the admission lock.
    pub(super) async fn turn(&self, event: EventId) -> Result<AdmissionLock, Closed> {
        // First, because this may take longer than the lock lasts. If the database does not accept
        // steps, or has more than Redis, admissions stop.
        self.take_over(event).await?;
        self.compare(event).await?;
        let args = [Arg::from(self.worker.as_str()), Arg::from(millis(LOCK))];
        turn(&self.in_room(event, &TURN, &args).await?).map_err(closed)
    }

    /// Ends expired slots and admits the next users. Returns the number of admissions; 0 if this
    /// worker has lost the lock.
    pub(super) async fn admit(
        &self,
        event: EventId,
        turn: &AdmissionLock,
        admissions: Admissions,
    ) -> Result<usize, Closed> {
        let AdmissionLock::Ours { epoch: Some(epoch) } = turn else {
            return self.forget_if_empty(event).await.map(|()| 0);
        };
        let batch = if admissions == Admissions::Open { self.limits.batch } else { 0 };
        let slots: Vec<String> = (0..batch).map(|_| Uuid::from_bytes(self.ids.bytes()).to_string()).collect();
        let mut args = vec![
            Arg::from(self.worker.as_str()),
            Arg::from(epoch.as_str()),
            Arg::from(self.terms().0),
            Arg::from(micros(self.limits.waiting_idle)),
            Arg::from(micros(self.limits.silence_per_person())),
            Arg::from(ENDED),
        ];
        args.extend(slots.iter().map(|slot| Arg::from(slot.as_str())));
        let reply = self.in_room(event, &ADMIT, &args).await?;
        let admitted = admitted(&reply).map_err(closed)?;
        if admitted.is_empty() {
            self.forget_if_empty(event).await?;
        } else {
            self.record(event, &admitted).await?;
        }
        Ok(admitted.len())
    }

    pub(super) async fn order(&self, event: EventId, order: Order) -> Result<Totals, Closed> {
        let (what, number) = match order {
            Order::Threshold(threshold) => ("threshold", i64::from(threshold)),
            Order::Pause => ("paused", 0),
            Order::Resume => ("resumed", 0),
            Order::Clear => ("cleared", 0),
            Order::Look => ("", 0),
        };
        let reply = self.in_room(event, &ORDER, &[Arg::from(what), Arg::from(number)]).await?;
        let (answer, _) = answer(&reply).map_err(closed)?;
        if order != Order::Look {
            // Operators' decisions must survive a loss of Redis, so they are written before the
            // answer.
            self.take_over(event).await?;
        }
        Ok(answer.totals)
    }

    /// Copies steps to the database. Returns their number.
    pub(super) async fn take_over(&self, event: EventId) -> Result<usize, Closed> {
        let _one_at_a_time = self.moving.lock().await;
        let (mut next, mut moved) = ("0-0".to_owned(), 0);
        for _ in 0..MAX_BATCHES {
            // Requesting the next batch deletes the previous one from Redis.
            let args = [Arg::from(next.as_str()), Arg::from(STEPS_BATCH)];
            let reply = self.kv.run(&STEPS, &[key(event, "journal")], &args).await.map_err(closed)?;
            let steps = steps(&reply).map_err(closed)?;
            let Some(last) = steps.last() else { break };
            next = format!("{}-{}", last.generation, last.seq + 1);
            moved += steps.len();
            let written: Result<(), Unwritten> =
                transaction!(self.db, "queue.journal", async |tx: &mut Tx<'_>| {
                    let mut ours = store::goes_on(tx, event, last.generation).await?;
                    for entry in &steps {
                        ours &= store::append(tx, event, entry).await?;
                    }
                    if ours { Ok(()) } else { Err(Unwritten::Foreign) }
                });
            match written {
                Ok(()) => {}
                Err(Unwritten::Foreign) => {
                    self.lose(event, last.generation).await?;
                    return Err(Closed);
                }
                Err(Unwritten::Db(error)) => {
                    self.outages.begin(event, self.clock.ticks());
                    tracing::error!(%event, error = urr_telemetry::chain(&error), "cannot write the waiting room's journal: the database failed; admissions for this event stop, steps are kept in redis and retried");
                    return Err(Closed);
                }
            }
        }
        // All steps of this room are written. Other rooms may still have an outage.
        self.outages.end(event);
        Ok(moved)
    }

    /// Makes sure that the database has the slots, or takes them back.
    async fn record(&self, event: EventId, slots: &[(String, String)]) -> Result<(), Closed> {
        let recorded = self.take_over(event).await;
        for (user, slot) in slots {
            self.know(event, user, slot, recorded.is_ok()).await?;
        }
        recorded.map(drop)
    }

    /// Marks a slot as recorded, or returns its owner to the line. Returns `false` if nothing
    /// changed.
    pub(super) async fn know(
        &self,
        event: EventId,
        user: &str,
        slot: &str,
        is_recorded: bool,
    ) -> Result<bool, Closed> {
        let args = [Arg::from(user), Arg::from(slot), Arg::from(i64::from(is_recorded))];
        Ok(self.in_room(event, &KNOW, &args).await? == Reply::List(vec![Reply::Int(1)]))
    }

    /// The answer for a user. A slot that the database does not have yet is written first, even if
    /// another process gave it. If that fails, its owner returns to the line.
    async fn told(&self, event: EventId, user: UserId, reply: &Reply) -> Result<Answer, Closed> {
        let (answer, known) = answer(reply).map_err(closed)?;
        self.keep_in_mind(event, &answer.totals).await?;
        let UserState::Active { slot, .. } = answer.state else { return Ok(answer) };
        if !known {
            self.record(event, &[(user.to_string(), slot.id.to_string())]).await?;
        }
        Ok(answer)
    }

    /// Idle timeout and lifetime of a slot, in microseconds.
    fn terms(&self) -> (i64, i64) {
        (micros(self.limits.slot_idle), micros(self.limits.slot_total))
    }
}

fn room_keys(event: EventId) -> Vec<String> {
    let mut keys: Vec<String> =
        ["queue", "active", "seen", "slots", "room", "journal"].map(|name| key(event, name)).into();
    keys.push(format!("admission:lock:{{{event}}}"));
    keys.extend(["spent", "spent-before"].map(|name| key(event, name)));
    keys
}

fn key(event: EventId, name: &str) -> String {
    format!("{{{event}}}:{name}")
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[expect(clippy::needless_pass_by_value, reason = "signature required by `map_err`")]
fn closed(error: Error) -> Closed {
    tracing::warn!(%error, "redis request of the waiting room failed: requests get 503, admissions stop, positions are kept");
    Closed
}
