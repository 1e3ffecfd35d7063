//! Consumer of reservation messages: counts the reserved places of each event, for display.

pub(crate) mod rules;
pub(crate) mod store;

use std::collections::BTreeMap;

use async_trait::async_trait;
use urr_bus::{Consumer, Failure, Message};
use urr_contracts::tickets::{RESERVATION_EVENTS, ReservationFact};
use urr_db::{Db, Tx};

/// The bus records each message id in the same transaction, so a redelivery is not counted twice.
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
        self.apply_all(tx, &[message]).await
    }

    /// During a rush most messages concern one event: summing them first updates its row once
    /// instead of hundreds of times.
    async fn apply_all(&self, tx: &mut Tx<'_>, messages: &[&Message]) -> Result<(), Failure> {
        let mut changes = BTreeMap::new();
        for message in messages {
            let fact = message.fact::<ReservationFact>()?;
            if let Some(change) = fact.as_ref().and_then(rules::change) {
                *changes.entry(change.event).or_default() += change.places;
            }
        }
        for (event, places) in changes {
            if !store::change(tx, event, places).await? {
                // A catalog restored from an older backup lacks the newest events. Skipping is
                // safe: the counts are for display only.
                tracing::warn!(
                    %event,
                    "unknown event: its reserved count is not updated; was the catalog restored from a backup?"
                );
            }
        }
        Ok(())
    }
}
