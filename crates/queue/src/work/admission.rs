//! The admission worker: each second and for each event, ends expired slots, then admits from the
//! front.
//!
//! Each room decides atomically, so any number of workers may run. A worker that stalls in between
//! loses the admission lock, because what it read about the sale may be outdated.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use urr_contracts::catalog::EventStatus;
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::EventId;
use urr_rpc::Ctx;

use super::purchases;
use crate::{
    room::{Admissions, Closed, Order, Room},
    service::Service,
};

/// Rooms processed concurrently: each costs Redis a script or two.
const AT_ONCE: usize = 16;

pub(crate) struct Admission(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Admission {
    fn name(&self) -> &'static str {
        "queue.admission"
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let Ok(room) = self.0.rooms() else { return Ok(Outcome::done(0)) };
        // If this fails, slots still end by their timeout, so admissions go on.
        if let Err(error) = purchases::free(&self.0).await {
            tracing::warn!(
                error = urr_telemetry::chain(&error),
                "could not free the slots of completed purchases; retried each second, until then they end by their timeout"
            );
        }
        let events = room.events().await?;
        // Every room in use can be watched.
        for event in &events {
            self.0.watched.live.open(*event);
        }
        let admitted =
            stream::iter(events).map(|event| admit(&self.0, room, event)).buffer_unordered(AT_ONCE);
        let (done, failed) = admitted
            .fold((0, 0_u32), async |(done, failed), admitted| match admitted {
                Ok(admitted) => (done + admitted, failed),
                Err(Closed) => (done, failed + 1),
            })
            .await;
        if failed > 0 {
            tracing::warn!(
                failed,
                "some waiting rooms could not be processed: no admissions there; retried each second"
            );
        }
        Ok(Outcome::done(done))
    }
}

async fn admit(service: &Service, room: &Room, event: EventId) -> Result<u64, Closed> {
    let turn = room.turn(event).await?;
    let admissions = admissions(service, event).await;
    let admitted = u64::try_from(room.work(event, &turn, admissions).await?).unwrap_or(u64::MAX);
    if admitted > 0 {
        metrics::counter!("urr_queue_admitted").increment(admitted);
    }
    let totals = room.order(event, Order::Look).await?;
    let label = event.to_string();
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    metrics::gauge!("urr_queue_waiting", "event" => label.clone()).set(number(totals.waiting));
    metrics::gauge!("urr_queue_active", "event" => label).set(number(totals.active));
    Ok(admitted)
}

/// Whether the sale is on. If the catalog is unreachable, admissions wait until it answers.
async fn admissions(service: &Service, event: EventId) -> Admissions {
    let ctx = Ctx::system(&service.ids, &service.clock);
    match service.events.get(&ctx, event).await {
        Ok(Some(known)) if known.status == EventStatus::OnSale => Admissions::Open,
        _ => Admissions::Closed,
    }
}
