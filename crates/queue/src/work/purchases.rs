//! A completed purchase frees its buyer's slot.
//!
//! The message becomes a row in the same transaction that remembers the message; the worker turns rows into free slots. A room
//! is no part of a transaction, and leaving one twice is as good as once. A message may be late: only a slot from before the purchase is
//! freed, never a later one or a place in line.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use urr_bus::{Consumer, Failure, Message};
use urr_contracts::tickets::RESERVATION_EVENTS;
use urr_db::{Db, Error, Row, Tx, statements, transaction};
use urr_kernel::{EventId, Timestamp, UserId};

use crate::{service::Service, trouble::Trouble};

/// The type of the message that tells of a purchase.
const CONFIRMED: &str = "RESERVATION_CONFIRMED";

/// Purchases handled by one run: far more than a sale completes in a second.
const BATCH: i64 = 1_000;

/// The clock of the sale and that of the room may differ by so much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

statements! {
    /// Notes a purchase.
    NOTE = "
        insert into purchases (event_id, user_id, at) values ($1, $2, $3)
        on conflict (event_id, user_id) do update set at = excluded.at where purchases.at < excluded.at";

    /// The oldest purchases.
    OLDEST = "select event_id, user_id, at from purchases order by at limit $1";

    /// Its slot is free. A later purchase of the same user has a later time and stays.
    FREED = "delete from purchases where event_id = $1 and user_id = $2 and at = $3";
}

/// The consumer.
pub(crate) struct Purchases {
    pub(crate) db: Db,
}

/// What we want to know of a purchase.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Purchase {
    user_id: UserId,
    /// Left out by some older messages, which free nothing before its time.
    event_id: Option<EventId>,
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
        message.kind == CONFIRMED
    }

    async fn apply(&self, tx: &mut Tx<'_>, message: &Message) -> Result<(), Failure> {
        let purchase: Purchase =
            serde_json::from_str(&message.payload).map_err(|error| Failure::Poison(error.into()))?;
        if let Some(event) = purchase.event_id {
            tx.execute(&NOTE, &[&event, &purchase.user_id, &message.at]).await?;
        }
        Ok(())
    }
}

/// Frees the slots of those who have bought. Answers with how many rows that were.
pub(crate) async fn free(service: &Service) -> Result<usize, Trouble> {
    let purchase =
        |row: &Row<'_>| Ok::<(EventId, UserId, Timestamp), Error>((row.get(0)?, row.get(1)?, row.get(2)?));
    let noted = service
        .db
        .read("queue.purchases", async |tx: &mut Tx<'_>| {
            Ok::<_, Trouble>(tx.all(&OLDEST, &[&BATCH], purchase).await?)
        })
        .await?;
    if noted.is_empty() {
        return Ok(0);
    }
    for (event, user, at) in &noted {
        service.rooms()?.bought(*event, *user, at.after(CLOCKS_DIFFER)).await?;
    }
    transaction!(service.db, "queue.freed", async |tx: &mut Tx<'_>| {
        for (event, user, at) in &noted {
            tx.execute(&FREED, &[event, user, at]).await?;
        }
        Ok::<_, Trouble>(())
    })?;
    Ok(noted.len())
}
