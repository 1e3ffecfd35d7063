//! Which rooms somebody is in: those that workers look at.

use std::{
    collections::{HashMap, HashSet},
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use urr_db::Tx;
use urr_kernel::EventId;
use urr_kv::{Arg, Script};
use uuid::Uuid;

use super::{Redis, closed, replies::parse};
use crate::{
    hall::Totals,
    journal::store,
    room::{Closed, Order},
};

static REMEMBER: Script = Script::new("queue.remember", "return redis.call('SADD', KEYS[1], ARGV[1])");
static FORGET: Script = Script::new("queue.forget", "return redis.call('SREM', KEYS[1], ARGV[1])");
static EVENTS: Script = Script::new("queue.events", "return redis.call('SMEMBERS', KEYS[1])");

/// The events that have a room. Small: an event leaves it when its room is empty.
const ACTIVE_EVENTS: &str = "queue:active-events";

/// How often it is said again that somebody is in a room, and of how many rooms one process knows when it last did.
const REMEMBER_EVERY: Duration = Duration::from_secs(1);
const MAX_REMEMBERED: usize = 10_000;

/// Rooms read from the database at a time.
const ROOMS_PAGE: i64 = 1_000;

impl Redis {
    /// Makes sure that workers look at a room that somebody is in. Whoever is the first in it always says so; where others are too,
    /// they have said so, and saying it again now and then makes up for one whose process died before it could.
    pub(super) async fn keep_in_mind(&self, event: EventId, totals: &Totals) -> Result<(), Closed> {
        let (people, now) = (totals.waiting + totals.active, self.clock.ticks());
        let said = |at: &Duration| now.saturating_sub(*at) < REMEMBER_EVERY;
        if people == 0 || (people > 1 && self.remembered().get(&event).is_some_and(said)) {
            return Ok(());
        }
        self.remember(event).await
    }

    /// Takes note that somebody may be in a room, so that workers look after it.
    pub(super) async fn remember(&self, event: EventId) -> Result<(), Closed> {
        let (set, text, now) = ([ACTIVE_EVENTS.to_owned()], event.to_string(), self.clock.ticks());
        self.kv.run(&REMEMBER, &set, &[Arg::from(text.as_str())]).await.map_err(closed)?;
        let mut remembered = self.remembered();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(event, now);
        Ok(())
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<EventId, Duration>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops working on a room that nobody is in. Whoever comes meanwhile is found by looking once more: they join first and are
    /// remembered then.
    pub(super) async fn forget_if_empty(&self, event: EventId) -> Result<(), Closed> {
        let is_empty = |totals: &Totals| totals.waiting == 0 && totals.active == 0;
        if !is_empty(&self.order(event, Order::Look).await?) {
            return Ok(());
        }
        let (set, event_text) = ([ACTIVE_EVENTS.to_owned()], event.to_string());
        self.kv.run(&FORGET, &set, &[Arg::from(event_text.as_str())]).await.map_err(closed)?;
        if !is_empty(&self.order(event, Order::Look).await?) {
            self.remember(event).await?;
        }
        Ok(())
    }

    /// The events that have a room in which somebody may be.
    pub(in crate::room) async fn events(&self) -> Result<Vec<EventId>, Closed> {
        let reply = self.kv.run(&EVENTS, &[ACTIVE_EVENTS.to_owned()], &[]).await.map_err(closed)?;
        let events = reply.list().map_err(closed)?;
        let mut events: HashSet<EventId> =
            events.iter().map(|event| parse(event).map_err(closed)).collect::<Result<_, _>>()?;
        // Another installation may use the same Redis. Its rooms are not in our database, and its steps do not belong there.
        let (mut ours, mut last) = (Vec::new(), EventId::from_uuid(Uuid::nil()));
        while !events.is_empty() {
            let page: Result<Vec<store::Life>, urr_db::Error> = self
                .db
                .read("queue.rooms", async |tx: &mut Tx<'_>| store::lives(tx, last, ROOMS_PAGE).await)
                .await;
            let page = page.map_err(|error| {
                tracing::error!(error = urr_telemetry::chain(&error), "nobody knows which rooms are ours");
                Closed
            })?;
            let Some(life) = page.last() else { break };
            last = life.event;
            ours.extend(page.iter().map(|life| life.event).filter(|event| events.remove(event)));
        }
        self.outages.forget_others(&ours);
        Ok(ours)
    }
}
