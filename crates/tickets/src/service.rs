//! The service and its implementation of [`Tickets`]. Each method delegates to a slice.

use std::sync::Arc;

use async_trait::async_trait;
use urr_contracts::{
    catalog::Catalog,
    tickets::{
        Error, HoldSeats, ListReservations, ReleaseHold, Reservation, ReservationOf, Reservations, SeatMap,
        SeatMapOf, Tickets,
    },
};
use urr_db::Db;
use urr_jobs::{BatchError, Batcher, Scan, Tasks};
use urr_kernel::{Clock, CommonError, Ids, ReservationId, SeatId, Timestamp, UserId};
use urr_rpc::Ctx;

use crate::{
    Failure,
    gate::SeatGate,
    holds::{
        self,
        claims::{Claim, Claiming},
        replays::Replaying,
        store,
    },
    map::{self, Maps},
    sales::Sales,
    settings::Settings,
};

/// Dependencies of the service.
pub struct Parts {
    /// Database of tickets; no other domain uses it.
    pub db: Db,
    /// Gate that rejects contending claims before they reach the database.
    pub gate: SeatGate,
    /// Source of events and seats, in this process or remote.
    pub catalog: Arc<dyn Catalog>,
    /// The clock.
    pub clock: Clock,
    /// Generator of new ids.
    pub ids: Ids,
    /// The section `[sale]`.
    pub settings: Settings,
    /// Task set in which batches of claims run.
    pub tasks: Tasks,
}

/// The tickets service running in this process.
pub struct Service {
    pub(crate) db: Db,
    claims: Batcher<Claiming>,
    replays: Batcher<Replaying>,
    pub(crate) gate: SeatGate,
    pub(crate) sales: Sales,
    pub(crate) maps: Maps,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) settings: Settings,
    /// Cursor of the sweep over expired holds.
    pub(crate) lapsed: Scan<(Timestamp, ReservationId)>,
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            claims: Batcher::new(
                Claiming { db: parts.db.clone(), clock: parts.clock.clone() },
                parts.tasks.clone(),
            ),
            replays: Batcher::new(Replaying(parts.db.clone()), parts.tasks),
            sales: Sales::new(parts.catalog, parts.clock.clone()),
            maps: map::maps(parts.clock.clone()),
            db: parts.db,
            gate: parts.gate,
            clock: parts.clock,
            ids: parts.ids,
            settings: parts.settings,
            lapsed: Scan::new("expire"),
        }
    }

    /// Claims seats, batched with concurrent claims of the same event.
    pub(crate) async fn claim(&self, claim: &Arc<Claim>) -> Result<Reservation, Failure> {
        self.claims
            .ask(claim.reservation.event, Arc::clone(claim))
            .await
            .map_err(Failure::unavailable)
            .flatten()
    }

    /// Looks up the reservation made with a buyer's idempotency key, batched with concurrent
    /// lookups.
    pub(crate) async fn of_key(&self, user: UserId, key: &str) -> Result<Option<Reservation>, Failure> {
        let known =
            self.replays.ask((), (user, key.to_owned())).await.map_err(Failure::unavailable).flatten()?;
        Ok(known.map(|stored| stored.reservation))
    }

    /// Removes the marks of a former holder from the gate, so that the next buyer need not wait
    /// until they expire.
    pub(crate) async fn forget_marks(&self, stored: &store::Stored) {
        let seats: Vec<SeatId> = stored.reservation.seats.iter().map(|seat| seat.id).collect();
        self.gate.release(stored.reservation.event, &seats, stored.gate_owner).await;
    }
}

#[async_trait]
impl Tickets for Service {
    async fn hold(&self, ctx: &Ctx, request: HoldSeats) -> Result<Reservation, Error> {
        holds::hold(self, ctx, &request).await.map_err(|failure| match failure.cause() {
            // A rush produces thousands of these per second, so they are counted instead of logged.
            Some(BatchError::Full | BatchError::Late) => {
                metrics::counter!("urr_tickets_holds_shed_total").increment(1);
                CommonError::Unavailable.into()
            }
            _ => ctx.reveal("hold", failure),
        })
    }

    async fn release(&self, ctx: &Ctx, request: ReleaseHold) -> Result<Reservation, Error> {
        ctx.answer("release", holds::release(self, ctx, request).await)
    }

    async fn reservation(&self, ctx: &Ctx, request: ReservationOf) -> Result<Reservation, Error> {
        ctx.answer("reservation", holds::reservation(self, ctx, request).await)
    }

    async fn reservations(&self, ctx: &Ctx, request: ListReservations) -> Result<Reservations, Error> {
        ctx.answer("reservations", holds::reservations(self, ctx, request).await)
    }

    async fn seat_map(&self, ctx: &Ctx, request: SeatMapOf) -> Result<SeatMap, Error> {
        map::seat_map(self, ctx, request.event).await.map(|drawn| drawn.map.clone())
    }
}
