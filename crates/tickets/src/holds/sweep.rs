//! Expires holds whose time ran out.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_db::{Tx, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::{EventId, Timestamp, UserId};

use super::{
    give_back,
    store::{self, Stored},
};
use crate::{service::Service, trouble::Trouble};

/// Holds one run expires, in one transaction. At four seats each it locks at most 600 rows; a full batch means that the
/// next run follows at once.
pub(crate) const BATCH: u32 = 100;

/// Batches one run looks at when they are full of holds that cannot be ended: these must not hide what lies behind them.
const MAX_LOOKS: usize = 20;

/// The reconciler behind hold expiry.
pub(crate) struct Sweep(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Sweep {
    fn name(&self) -> &'static str {
        "tickets.sweep"
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let expired = self.0.expire_lapsed().await?;
        if expired > 0 {
            tracing::info!(expired, "holds ran out and their seats are free again");
        }
        Ok(Outcome::batch(expired as u64, u64::from(BATCH)))
    }
}

impl Service {
    /// Expires holds that have run out, oldest first. Answers with how many did.
    pub(crate) async fn expire_lapsed(&self) -> Result<usize, Trouble> {
        let now = self.clock.now();
        let (mut expired, mut after) = (0, None);
        for _ in 0..MAX_LOOKS {
            let lapsed = self.db.read("tickets.lapsed", async |tx: &mut Tx<'_>| {
                Ok::<_, Trouble>(store::lapsed(tx, now, after, BATCH).await?)
            });
            let lapsed = lapsed.await?;
            expired += self.expire(&lapsed, now).await?;
            if lapsed.len() < BATCH as usize || expired >= BATCH as usize {
                break;
            }
            after = lapsed.last().map(|Stored { reservation, .. }| (reservation.expires_at, reservation.id));
        }
        Ok(expired)
    }

    /// Expires one buyer's holds of one event that have run out.
    pub(crate) async fn expire_lapsed_of(&self, event: EventId, user: UserId) -> Result<usize, Trouble> {
        let now = self.clock.now();
        let lapsed = self.db.read("tickets.lapsed_of_buyer", async |tx: &mut Tx<'_>| {
            Ok::<_, Trouble>(store::lapsed_of_buyer(tx, event, user, now, BATCH).await?)
        });
        self.expire(&lapsed.await?, now).await
    }

    /// Ends them together; if one of them cannot be ended, ends the others without it.
    async fn expire(&self, lapsed: &[Stored], now: Timestamp) -> Result<usize, Trouble> {
        if lapsed.is_empty() {
            return Ok(0);
        }
        match self.expire_together(lapsed, now).await {
            Err(Trouble::Db(error)) if !error.is_unavailable() => {
                let mut expired = 0;
                for one in lapsed {
                    match self.expire_together(std::slice::from_ref(one), now).await {
                        Ok(ended) => expired += ended,
                        Err(trouble) => {
                            let (reservation, error) = (one.reservation.id, urr_telemetry::chain(&trouble));
                            tracing::error!(%reservation, error, "a hold could not be ended; its seats stay held");
                        }
                    }
                }
                Ok(expired)
            }
            outcome => outcome,
        }
    }

    async fn expire_together(&self, lapsed: &[Stored], now: Timestamp) -> Result<usize, Trouble> {
        let ended = transaction!(self.db, "tickets.expire", async |tx: &mut Tx<'_>| {
            give_back::many_in_tx(self, tx, lapsed, now).await
        })?;
        for stored in &ended {
            self.forget_marks(stored).await;
        }
        Ok(ended.len())
    }
}
