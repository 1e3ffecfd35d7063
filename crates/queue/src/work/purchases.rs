//! A completed purchase frees its buyer's slot.
//!
//! The consumer turns the message into a row, in the transaction that marks the message as
//! processed. The worker then frees the slots of these rows, which is idempotent. A message may be
//! late, so only a slot given before the purchase is freed, never a later one or a position in
//! line.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use urr_bus::{self as bus, Consumer, Message};
use urr_contracts::tickets::{RESERVATION_EVENTS, ReservationFact};
use urr_db::{Db, Error, Row, Tx, statements, transaction};
use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

use crate::{Failure, room::Room, service::Service};

/// Purchases per page: far more than a sale completes in a second.
const BATCH: i64 = 1_000;
/// Most pages per run. The pages after the first are for purchases queued behind those of failing
/// rooms.
const MAX_PAGES: usize = 20;

/// Rooms processed concurrently: a failing one takes until its timeout.
const AT_ONCE: usize = 16;

/// Largest difference between the clocks of the sale and the room.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

statements! {
    /// Inserts a purchase.
    NOTE = "
        insert into purchases (event_id, user_id, at) values ($1, $2, $3)
        on conflict (event_id, user_id) do update set at = excluded.at where purchases.at < excluded.at";

    /// Purchases after a given one, oldest first.
    OLDEST = "
        select event_id, user_id, at from purchases where (at, event_id, user_id) > ($1, $2, $3)
         order by at, event_id, user_id limit $4";

    /// A purchase whose slot is not freed yet.
    WAITING = "select at from purchases where event_id = $1 and user_id = $2";

    /// Deletes a purchase whose slot is freed. A later one of the same user has a later time and
    /// stays.
    FREED = "delete from purchases where event_id = $1 and user_id = $2 and at = $3";
}

pub(crate) struct Purchases {
    pub(crate) db: Db,
}

#[async_trait]
impl Consumer for Purchases {
    fn group(&self) -> &'static str {
        "queue-service-group"
    }

    fn topics(&self) -> &'static [&'static str] {
        &[RESERVATION_EVENTS]
    }

    fn db(&self) -> &Db {
        &self.db
    }

    fn wants(&self, message: &Message) -> bool {
        use ReservationFact::{Cancelled, Created};
        !matches!(message.fact(), Ok(None | Some(Created { .. } | Cancelled { .. })))
    }

    async fn apply(&self, tx: &mut Tx<'_>, message: &Message) -> Result<(), bus::Failure> {
        if let Some(ReservationFact::Confirmed { event_id, user_id, .. }) = message.fact()? {
            tx.execute(&NOTE, &[&event_id, &user_id, &message.at]).await?;
        }
        Ok(())
    }
}

/// A purchase whose slot is to be freed.
type Noted = (EventId, UserId, Timestamp);

/// Frees the slots of completed purchases. Returns the number of purchases.
///
/// A failing room keeps its purchases for the next run and does not delay others.
pub(crate) async fn free(service: &Service) -> Result<usize, Failure> {
    let room = service.rooms()?;
    let mut last =
        (EventId::from_uuid(Uuid::nil()), UserId::from_uuid(Uuid::nil()), Timestamp::from_micros(0));
    let (mut freed, mut failing) = (0, HashSet::new());
    for _ in 0..MAX_PAGES {
        let noted = after(service, last).await?;
        let Some(newest) = noted.last() else { break };
        last = *newest;
        let mut events: HashMap<EventId, Vec<Noted>> = HashMap::new();
        for purchase in noted.into_iter().filter(|(event, ..)| !failing.contains(event)) {
            events.entry(purchase.0).or_default().push(purchase);
        }
        let rooms =
            stream::iter(events).map(|(event, noted)| async move { (event, free_in(room, noted).await) });
        let rooms: Vec<_> = rooms.buffer_unordered(AT_ONCE).collect().await;
        let mut done = Vec::new();
        for (event, (some, is_whole)) in rooms {
            done.extend(some);
            if !is_whole {
                failing.insert(event);
            }
        }
        forget(service, &done).await?;
        freed += done.len();
    }
    if !failing.is_empty() {
        let rooms = failing.len();
        tracing::warn!(
            rooms,
            "could not free the slots of completed purchases in some waiting rooms; retried each second, until then they end by their timeout"
        );
    }
    Ok(freed)
}

/// Frees slots in one room, up to the first failure. Returns those freed, and whether these are
/// all.
async fn free_in(room: &Room, mut noted: Vec<Noted>) -> (Vec<Noted>, bool) {
    for (done, (event, user, at)) in noted.iter().enumerate() {
        if room.bought(*event, *user, freed_until(*at)).await.is_err() {
            noted.truncate(done);
            return (noted, false);
        }
    }
    (noted, true)
}

/// Whether a pending purchase will free a slot that the user was given at `given`.
pub(crate) async fn will_free(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
    given: Timestamp,
) -> Result<bool, Error> {
    let bought: Option<Timestamp> = tx.optional(&WAITING, &[&event, &user], |row| row.get(0)).await?;
    Ok(bought.is_some_and(|at| given <= freed_until(at)))
}

/// A purchase frees slots given until this time.
fn freed_until(bought: Timestamp) -> Timestamp {
    bought.after(CLOCKS_DIFFER)
}

/// A page of purchases after a given one.
async fn after(service: &Service, (event, user, at): Noted) -> Result<Vec<Noted>, Failure> {
    let purchase = |row: &Row<'_>| Ok::<Noted, Error>((row.get(0)?, row.get(1)?, row.get(2)?));
    service
        .db
        .read("queue.purchases", async |tx: &mut Tx<'_>| {
            Ok::<_, Failure>(tx.all(&OLDEST, &[&at, &event, &user, &BATCH], purchase).await?)
        })
        .await
}

/// Deletes purchases whose slots are freed.
async fn forget(service: &Service, freed: &[Noted]) -> Result<(), Failure> {
    if freed.is_empty() {
        return Ok(());
    }
    transaction!(service.db, "queue.freed", async |tx: &mut Tx<'_>| {
        for (event, user, at) in freed {
            tx.execute(&FREED, &[event, user, at]).await?;
        }
        Ok::<_, Failure>(())
    })
}
