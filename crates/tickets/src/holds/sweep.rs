//! Expires holds whose time ran out.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use urr_contracts::tickets::CancelReason;
use urr_db::{Tx, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::{EventId, Timestamp, UserId};

use super::{
    give_back,
    store::{self, Lapsed, Stored},
};
use crate::{service::Service, trouble::Trouble};

/// Holds one run expires, in one transaction. At four seats each it locks at most 600 rows; a full batch means that the
/// next run follows at once.
pub(crate) const BATCH: u32 = 100;

/// Batches one run looks at when they are full of holds that cannot be ended. These must not hide what lies behind them, so the next run
/// goes on there.
pub(crate) const MAX_LOOKS: u32 = 20;

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
    /// Expires holds that have run out, oldest first, from where the last run stopped. Answers with how many did.
    pub(crate) async fn expire_lapsed(&self) -> Result<usize, Trouble> {
        let now = self.clock.now();
        let mut expired = 0;
        for _ in 0..MAX_LOOKS {
            let after = self.lapsed.at();
            let found = self.db.read("tickets.lapsed", async |tx: &mut Tx<'_>| {
                Ok::<_, Trouble>(store::lapsed(tx, now, after, BATCH).await?)
            });
            let found = found.await?;
            let last = found.last().map(|last| last.at).filter(|_| found.len() >= BATCH as usize);
            expired += self.expire(self.readable(found), now).await?;
            match &last {
                Some(last) => self.lapsed.pass(last),
                None => self.lapsed.begin_anew(),
            }
            if last.is_none() || expired >= BATCH as usize {
                break;
            }
        }
        Ok(expired)
    }

    /// Expires one buyer's holds of one event that have run out.
    pub(crate) async fn expire_lapsed_of(&self, event: EventId, user: UserId) -> Result<usize, Trouble> {
        let now = self.clock.now();
        let found = self.db.read("tickets.lapsed_of_buyer", async |tx: &mut Tx<'_>| {
            Ok::<_, Trouble>(store::lapsed_of_buyer(tx, event, user, now, BATCH).await?)
        });
        let holds = self.readable(found.await?);
        match self.expire_together(&holds, now).await {
            // Somebody waits: a row that is locked is waited for once.
            Err(Trouble::Db(error)) if !error.is_unavailable() => {
                let mut expired = 0;
                for hold in &holds {
                    expired += self.expire_alone(hold, now).await?;
                }
                Ok(expired)
            }
            outcome => outcome,
        }
    }

    /// Those of them that can be read. The others are left as they are.
    fn readable(&self, found: Vec<Lapsed>) -> Vec<Stored> {
        let mut holds = Vec::with_capacity(found.len());
        for Lapsed { at: (_, id), hold } in found {
            match hold {
                Ok(hold) => holds.push(hold),
                Err(error) => self.lapsed.leave(id.as_uuid(), &error),
            }
        }
        holds
    }

    /// Ends them together; if one of them cannot be ended, ends the others without it.
    async fn expire(&self, holds: Vec<Stored>, now: Timestamp) -> Result<usize, Trouble> {
        match self.expire_together(&holds, now).await {
            Err(Trouble::Db(error)) if is_of_one(&error) => {
                let mut expired = 0;
                for hold in &holds {
                    // Before it is tried: locks that take longer than a run may take are passed, too.
                    self.lapsed.pass(&(hold.reservation.expires_at, hold.reservation.id));
                    expired += self.expire_alone(hold, now).await?;
                }
                Ok(expired)
            }
            outcome => outcome,
        }
    }

    /// Ends one, or leaves it as it is if it cannot be ended.
    async fn expire_alone(&self, hold: &Stored, now: Timestamp) -> Result<usize, Trouble> {
        match self.expire_together(std::slice::from_ref(hold), now).await {
            Err(Trouble::Db(error)) if is_of_one(&error) => {
                self.lapsed.leave(hold.reservation.id.as_uuid(), &*error);
                Ok(0)
            }
            outcome => outcome,
        }
    }

    async fn expire_together(&self, holds: &[Stored], now: Timestamp) -> Result<usize, Trouble> {
        if holds.is_empty() {
            return Ok(0);
        }
        let holds: Vec<&Stored> = holds.iter().collect();
        let ended = transaction!(self.db, "tickets.expire", async |tx: &mut Tx<'_>| {
            give_back::in_tx(self, tx, &holds, CancelReason::Expired, now).await
        })?;
        join_all(ended.iter().map(|hold| self.forget_marks(hold))).await;
        Ok(ended.len())
    }
}

/// Whether the reason can be a single hold: it is damaged, or somebody keeps a row of it locked.
fn is_of_one(error: &urr_db::Error) -> bool {
    error.is_blocked() || !error.is_unavailable()
}
