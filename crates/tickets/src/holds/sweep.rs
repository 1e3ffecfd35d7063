//! Expires holds whose time has run out.

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
use crate::{Failure, service::Service};

/// Holds expired per run, in one transaction. At four seats each it locks at most 600 rows. After a
/// full batch the next run starts at once.
const BATCH: u32 = 100;

/// Batches read per run when they are full of holds that cannot be expired. The next run continues
/// after them, so that they cannot hide the holds behind them.
const MAX_LOOKS: u32 = 20;

/// Reconciler that expires holds.
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
            tracing::info!(expired, "expired unpaid holds; their seats are free again");
        }
        Ok(Outcome::batch(expired as u64, u64::from(BATCH)))
    }
}

impl Service {
    /// Expires holds, oldest first, from where the last run stopped. Returns how many were expired.
    pub(crate) async fn expire_lapsed(&self) -> Result<usize, Failure> {
        let now = self.clock.now();
        let mut expired = 0;
        for _ in 0..MAX_LOOKS {
            let after = self.lapsed.at();
            let found = self.db.read("tickets.lapsed", async |tx: &mut Tx<'_>| {
                Ok::<_, Failure>(store::lapsed(tx, now, after, BATCH).await?)
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

    /// Expires the overdue holds of one buyer for one event.
    pub(crate) async fn expire_lapsed_of(&self, event: EventId, user: UserId) -> Result<usize, Failure> {
        let now = self.clock.now();
        let found = self.db.read("tickets.lapsed_of_buyer", async |tx: &mut Tx<'_>| {
            Ok::<_, Failure>(store::lapsed_of_buyer(tx, event, user, now, BATCH).await?)
        });
        let holds = self.readable(found.await?);
        match self.expire_together(&holds, now).await {
            // A request is waiting: after a lock timeout, do not wait again for each single hold.
            Err(failure) if failure.cause().is_some_and(|error: &urr_db::Error| !error.is_unavailable()) => {
                let mut expired = 0;
                for hold in &holds {
                    expired += self.expire_alone(hold, now).await?;
                }
                Ok(expired)
            }
            outcome => outcome,
        }
    }

    /// Returns the holds whose rows can be decoded. The others are reported and left unchanged.
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

    /// Expires all holds in one transaction. If a single hold is the cause of a failure, expires
    /// them one by one and skips it.
    async fn expire(&self, holds: Vec<Stored>, now: Timestamp) -> Result<usize, Failure> {
        match self.expire_together(&holds, now).await {
            Err(failure) if failure.cause().is_some_and(is_of_one) => {
                let mut expired = 0;
                for hold in &holds {
                    // Advance before trying, so that a hold whose locks outlast the time limit of a
                    // run is skipped too.
                    self.lapsed.pass(&(hold.reservation.expires_at, hold.reservation.id));
                    expired += self.expire_alone(hold, now).await?;
                }
                Ok(expired)
            }
            outcome => outcome,
        }
    }

    /// Expires one hold, or reports it and leaves it unchanged.
    async fn expire_alone(&self, hold: &Stored, now: Timestamp) -> Result<usize, Failure> {
        match self.expire_together(std::slice::from_ref(hold), now).await {
            Err(failure) if failure.cause().is_some_and(is_of_one) => {
                self.lapsed.leave(hold.reservation.id.as_uuid(), &failure);
                Ok(0)
            }
            outcome => outcome,
        }
    }

    async fn expire_together(&self, holds: &[Stored], now: Timestamp) -> Result<usize, Failure> {
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

/// Whether a single hold may be the cause: its rows are damaged, or another transaction keeps one
/// of them locked.
fn is_of_one(error: &urr_db::Error) -> bool {
    error.is_blocked() || !error.is_unavailable()
}
