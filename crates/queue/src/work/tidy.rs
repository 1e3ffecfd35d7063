//! Closes rooms that have been empty for long, and deletes old journals and passes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_db::{Tx, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::{EventId, Timestamp};
use uuid::Uuid;

use crate::{
    Failure,
    journal::store::{self, Life},
    positions,
    room::Closed,
    service::Service,
};

/// Idle time after which a room is closed: longer than a ticket is valid.
const CLOSE_AFTER: Duration = Duration::from_hours(25);

/// Rooms per page.
const PAGE: i64 = 500;
/// Rows deleted per transaction: about 10 ms of the writer's time.
const BATCH: i64 = 2_000;
/// Most pages and batches per run.
const MAX_ROUNDS: usize = 200;

pub(crate) struct Tidy(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Tidy {
    fn name(&self) -> &'static str {
        "queue.tidy"
    }

    fn period(&self) -> Duration {
        Duration::from_hours(1)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let closed = close_idle(&self.0, CLOSE_AFTER).await?;
        let now = self.0.clock.now();
        let forgotten = forget_journals(&self.0, now.before(self.0.limits.journal_kept)).await?;
        // A pass is valid for ten minutes, and users who joined with one have a ticket since.
        let before = now.before(CLOSE_AFTER);
        for _ in 0..MAX_ROUNDS {
            let gone = transaction!(self.0.db, "queue.forget_passes", async |tx: &mut Tx<'_>| {
                Ok::<_, Failure>(positions::store::forget(tx, before, BATCH).await?)
            })?;
            if gone == 0 {
                break;
            }
        }
        if closed + forgotten > 0 {
            tracing::info!(closed, forgotten, "closed empty waiting rooms and deleted old journals");
        }
        Ok(Outcome::done(closed + forgotten))
    }
}

/// Closes rooms that have been empty for `idle`. Returns their number. Failures are retried at the
/// next run.
async fn close_idle(service: &Service, idle: Duration) -> Result<u64, Failure> {
    let Ok(room) = service.rooms() else { return Ok(0) };
    let (mut last, mut closed, mut failed) = (EventId::from_uuid(Uuid::nil()), 0, 0_u64);
    for _ in 0..MAX_ROUNDS {
        let page: Vec<Life> = service
            .db
            .read("queue.rooms", async |tx: &mut Tx<'_>| {
                Ok::<_, Failure>(store::generations(tx, last, PAGE).await?)
            })
            .await?;
        for life in &page {
            match room.close(life.event, life.generation, idle).await {
                Ok(is_closed) => closed += u64::from(is_closed),
                Err(Closed) => failed += 1,
            }
        }
        match page.last() {
            Some(life) => last = life.event,
            None => break,
        }
    }
    if failed > 0 {
        tracing::warn!(
            failed,
            "could not check whether some waiting rooms are empty; they stay open, retried in an hour"
        );
    }
    Ok(closed)
}

/// Deletes journals of rooms that were closed before `before`. Returns the number of rooms.
async fn forget_journals(service: &Service, before: Timestamp) -> Result<u64, Failure> {
    let mut forgotten = 0;
    let old = service
        .db
        .read("queue.old", async |tx: &mut Tx<'_>| Ok::<_, Failure>(store::old(tx, before, PAGE).await?))
        .await?;
    for event in old {
        for _ in 0..MAX_ROUNDS {
            let steps = transaction!(service.db, "queue.forget", async |tx: &mut Tx<'_>| {
                Ok::<_, Failure>(store::forget(tx, event, before, BATCH).await?)
            })?;
            if steps == 0 {
                forgotten += 1;
                break;
            }
        }
    }
    Ok(forgotten)
}
