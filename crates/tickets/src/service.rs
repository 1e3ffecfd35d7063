//! The service: what it is made of, and each method in one line.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_contracts::{
    catalog::Catalog,
    tickets::{
        Error, HoldSeats, ListReservations, ReleaseHold, Reservation, ReservationOf, Reservations, SeatMap,
        SeatMapOf, Tickets,
    },
};
use urr_db::{Db, Tx};
use urr_kernel::{Clock, EventId, Ids, ReservationId, SeatId, Timestamp};
use urr_rpc::Ctx;

use crate::{
    gate::SeatGate,
    holds::{self, store},
    map::{self, Maps},
    sales::Sales,
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
    /// How long an unpaid reservation keeps its seats.
    pub hold_for: Duration,
}

/// Tickets, in this process.
pub struct Service {
    pub(crate) db: Db,
    pub(crate) gate: SeatGate,
    pub(crate) sales: Sales,
    pub(crate) maps: Maps,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) hold_for: Duration,
    #[cfg(test)]
    pub(crate) check_then_act: bool,
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            sales: Sales::new(parts.catalog, parts.clock.clone()),
            maps: map::maps(parts.clock.clone()),
            db: parts.db,
            gate: parts.gate,
            clock: parts.clock,
            ids: parts.ids,
            hold_for: parts.hold_for,
            #[cfg(test)]
            check_then_act: false,
        }
    }

    /// Claims seats in the database. Answers with the fences of those that were free.
    pub(crate) async fn claim_seats(
        &self,
        tx: &mut Tx<'_>,
        event: EventId,
        seats: &[SeatId],
        reservation: ReservationId,
        times: (Timestamp, Timestamp),
    ) -> Result<Vec<(SeatId, i64)>, urr_db::Error> {
        #[cfg(test)]
        if self.check_then_act {
            return crate::race::check_then_act(tx, event, seats, reservation, times).await;
        }
        store::claim(tx, event, seats, reservation, times).await
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
