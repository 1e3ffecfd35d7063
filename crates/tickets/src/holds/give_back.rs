//! Frees the seats of pending reservations, on release or expiry. No other code does this.

use std::collections::{BTreeMap, BTreeSet};

use urr_contracts::tickets::{CancelReason, Reservation, ReservationFact, ReservationStatus};
use urr_db::{Tx, outbox};
use urr_kernel::Timestamp;

use super::{
    rules,
    store::{self, Held, Stored},
};
use crate::service::Service;

/// Ends pending reservations (status `cancelled` or `expired` by `reason`) and frees their seats.
/// Locks buyers, then reservations, then all seats by event and id, to prevent deadlocks.
/// Reservations not in the result were no longer pending and are unchanged.
pub(crate) async fn in_tx<'r>(
    service: &Service,
    tx: &mut Tx<'_>,
    reservations: &[&'r Stored],
    reason: CancelReason,
    now: Timestamp,
) -> Result<Vec<&'r Stored>, urr_db::Error> {
    let status = match reason {
        CancelReason::Expired => ReservationStatus::Expired,
        CancelReason::User => ReservationStatus::Cancelled,
    };
    let buyer = |reservation: &Reservation| (reservation.event, reservation.user);
    let buyers: BTreeSet<_> = reservations.iter().map(|stored| buyer(&stored.reservation)).collect();
    store::lock_buyers(tx, &buyers).await?;
    let ids: Vec<_> = reservations.iter().map(|stored| stored.reservation.id).collect();
    let left = store::leave_pending(tx, &ids, status, now).await?;
    let ended: Vec<&Stored> =
        reservations.iter().copied().filter(|stored| left.contains(&stored.reservation.id)).collect();
    if ended.is_empty() {
        return Ok(ended);
    }
    let mut counts = BTreeMap::new();
    let (mut seats, mut told) = (Vec::new(), Vec::with_capacity(ended.len()));
    for Stored { reservation, .. } in &ended {
        *counts.entry(buyer(reservation)).or_default() += rules::seat_count(reservation);
        seats.extend(held(reservation));
        told.push(outbox::Message::new(service.ids.next(), cancelled(reservation, reason), now));
    }
    seats.sort_unstable();
    store::count_out_all(tx, &counts).await?;
    store::free_all(tx, &seats).await?;
    outbox::append_all(tx, told.iter()).await?;
    Ok(ended)
}

fn held(reservation: &Reservation) -> impl Iterator<Item = Held> {
    let Reservation { id, event, .. } = *reservation;
    let held = move |(seat, fence)| Held { event, seat, fence, reservation: id };
    reservation.seats.iter().map(|seat| (seat.id, seat.fence)).map(held)
}

fn cancelled(reservation: &Reservation, reason: CancelReason) -> ReservationFact {
    ReservationFact::Cancelled {
        reservation_id: reservation.id,
        user_id: reservation.user,
        event_id: reservation.event,
        seat_count: rules::seat_count(reservation),
        reason,
    }
}
