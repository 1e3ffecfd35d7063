//! The set of events whose rooms are in use, which the workers process.

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
    journal::store,
    room::{Closed, Order},
    room_model::Totals,
};

static REMEMBER: Script = Script::new("queue.remember", "return redis.call('SADD', KEYS[1], ARGV[1])");
static FORGET: Script = Script::new("queue.forget", "return redis.call('SREM', KEYS[1], ARGV[1])");
static EVENTS: Script = Script::new("queue.events", "return redis.call('SMEMBERS', KEYS[1])");

/// Events with a room in use. Small: an event is removed when its room is empty.
const ACTIVE_EVENTS: &str = "queue:active-events";

/// How often one process adds the same event again, and for how many events it remembers when it
/// did.
const REMEMBER_EVERY: Duration = Duration::from_secs(1);
const MAX_REMEMBERED: usize = 10_000;

/// Rooms read from the database per page.
const ROOMS_PAGE: i64 = 1_000;

impl Redis {
    /// Adds the event to the set if its room is in use. The first user of a room always adds it.
    /// Later ones repeat that once per second, in case the first process crashed before it could.
    pub(super) async fn keep_in_mind(&self, event: EventId, totals: &Totals) -> Result<(), Closed> {
        let (people, now) = (totals.waiting + totals.active, self.clock.ticks());
        let said = |at: &Duration| now.saturating_sub(*at) < REMEMBER_EVERY;
        if people == 0 || (people > 1 && self.remembered().get(&event).is_some_and(said)) {
            return Ok(());
        }
        self.remember(event).await
    }

    /// Adds the event to the set, so that workers process its room.
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

    /// Removes the event from the set if its room is empty. A user who joins concurrently is in the
    /// room before their event is added to the set, so the second look finds them.
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

    /// Events whose rooms may be in use.
    pub(in crate::room) async fn events(&self) -> Result<Vec<EventId>, Closed> {
        let reply = self.kv.run(&EVENTS, &[ACTIVE_EVENTS.to_owned()], &[]).await.map_err(closed)?;
        let events = reply.list().map_err(closed)?;
        let mut events: HashSet<EventId> =
            events.iter().map(|event| parse(event).map_err(closed)).collect::<Result<_, _>>()?;
        // Another installation may share this Redis. Its rooms are not in our database, and their
        // steps do not belong there.
        let (mut ours, mut last) = (Vec::new(), EventId::from_uuid(Uuid::nil()));
        while !events.is_empty() {
            let page: Result<Vec<store::Life>, urr_db::Error> = self
                .db
                .read("queue.rooms", async |tx: &mut Tx<'_>| store::generations(tx, last, ROOMS_PAGE).await)
                .await;
            let page = page.map_err(|error| {
                tracing::error!(
                    error = urr_telemetry::chain(&error),
                    "cannot list waiting rooms: the database failed; admissions stop until it answers"
                );
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
