//! The service: what it is made of, and each method in one line.

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
use urr_jobs::{Round, Tasks, Together};
use urr_kernel::{Clock, Ids, ReservationId, SeatId, Timestamp, UserId};
use urr_rpc::Ctx;

use crate::{
    gate::SeatGate,
    holds::{
        self,
        claims::{Claim, Claiming, Way},
        replays::Replaying,
        store,
    },
    map::{self, Maps},
    sales::Sales,
    settings::Settings,
    trouble::Trouble,
};

/// What tickets is built from.
pub struct Parts {
    /// The domain's own database.
    pub db: Db,
    /// The contention shield.
    pub gate: SeatGate,
    /// Where events and seats come from, here or elsewhere.
    pub catalog: Arc<dyn Catalog>,
    /// The time.
    pub clock: Clock,
    /// New ids.
    pub ids: Ids,
    /// The section `[sale]`.
    pub settings: Settings,
    /// Where holds are made together.
    pub tasks: Tasks,
}

/// Tickets, in this process.
pub struct Service {
    pub(crate) db: Db,
    claims: Together<Claiming>,
    replays: Together<Replaying>,
    pub(crate) gate: SeatGate,
    pub(crate) sales: Sales,
    pub(crate) maps: Maps,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) settings: Settings,
    /// Holds to end, by when they ran out.
    pub(crate) lapsed: Round<(Timestamp, ReservationId)>,
}

impl Service {
    pub(crate) fn new(parts: Parts, way: Way) -> Self {
        Self {
            claims: Together::new(
                Claiming { db: parts.db.clone(), clock: parts.clock.clone(), way },
                parts.tasks.clone(),
            ),
            replays: Together::new(Replaying(parts.db.clone()), parts.tasks),
            sales: Sales::new(parts.catalog, parts.clock.clone()),
            maps: map::maps(parts.clock.clone()),
            db: parts.db,
            gate: parts.gate,
            clock: parts.clock,
            ids: parts.ids,
            settings: parts.settings,
            lapsed: Round::new("expire"),
        }
    }

    /// Claims seats, together with everybody who does so at the same time.
    pub(crate) async fn claim(&self, claim: &Arc<Claim>) -> Result<Reservation, Trouble> {
        self.claims.ask(claim.reservation.event, Arc::clone(claim)).await.map_err(Trouble::Claims).flatten()
    }

    /// What a buyer's key was used for, asked together with everybody who does so at the same time.
    pub(crate) async fn of_key(&self, user: UserId, key: &str) -> Result<Option<Reservation>, Trouble> {
        let known = self.replays.ask((), (user, key.to_owned())).await.map_err(Trouble::Claims).flatten()?;
        Ok(known.map(|stored| stored.reservation))
    }

    /// Removes a former holder's marks from the gate, so that the next buyer need not wait for them to fade.
    pub(crate) async fn forget_marks(&self, stored: &store::Stored) {
        let seats: Vec<SeatId> = stored.reservation.seats.iter().map(|seat| seat.id).collect();
        self.gate.release(stored.reservation.event, &seats, stored.gate_owner).await;
    }
}

#[async_trait]
impl Tickets for Service {
    async fn hold(&self, ctx: &Ctx, request: HoldSeats) -> Result<Reservation, Error> {
        holds::hold(self, ctx, &request).await.map_err(|trouble| trouble.reveal(ctx, "hold"))
    }

    async fn release(&self, ctx: &Ctx, request: ReleaseHold) -> Result<Reservation, Error> {
        holds::release(self, ctx, request).await.map_err(|trouble| trouble.reveal(ctx, "release"))
    }

    async fn reservation(&self, ctx: &Ctx, request: ReservationOf) -> Result<Reservation, Error> {
        holds::reservation(self, ctx, request).await.map_err(|trouble| trouble.reveal(ctx, "reservation"))
    }

    async fn reservations(&self, ctx: &Ctx, request: ListReservations) -> Result<Reservations, Error> {
        holds::reservations(self, ctx, request).await.map_err(|trouble| trouble.reveal(ctx, "reservations"))
    }

    async fn seat_map(&self, ctx: &Ctx, request: SeatMapOf) -> Result<SeatMap, Error> {
        map::seat_map(self, ctx, request.event).await.map(|drawn| drawn.map.clone())
    }
}
