//! Listens to tickets and counts how many places of each event are reserved, for display.

pub(crate) mod rules;
pub(crate) mod store;

use async_trait::async_trait;
use urr_bus::{Consumer, Failure, Message};
use urr_contracts::tickets::RESERVATION_EVENTS;
use urr_db::{Db, Tx};

use rules::{Change, Counted};

/// The consumer. The bus remembers each message in the same transaction, so every message counts once.
pub(crate) struct Places {
    db: Db,
}

impl Places {
    pub(crate) fn new(db: Db) -> Self {
        Self { db }
    }
}

#[async_trait]
impl Consumer for Places {
    fn group(&self) -> &'static str {
        "catalog-service-group"
    }

    fn topics(&self) -> &'static [&'static str] {
        &[RESERVATION_EVENTS]
    }

    fn db(&self) -> &Db {
        &self.db
    }

    async fn apply(&self, tx: &mut Tx<'_>, message: &Message) -> Result<(), Failure> {
        let change =
            rules::change(&message.kind, &message.payload).map_err(|error| Failure::Poison(error.into()))?;
        let known = match change {
            Some(Change::Add(Counted { event_id, seat_count })) => {
                store::add(tx, event_id, seat_count).await?
            }
            Some(Change::Remove(Counted { event_id, seat_count })) => {
                store::remove(tx, event_id, seat_count).await?
            }
            None => {
                tracing::debug!(kind = %message.kind, message = %message.id, "a message of no interest here");
                return Ok(());
            }
        };
        if !known {
            // A catalog restored from an older backup lacks the newest events; their counts are for display only.
            tracing::warn!(message = %message.id, "a reservation for an event the catalog does not have");
        }
        Ok(())
    }
}
