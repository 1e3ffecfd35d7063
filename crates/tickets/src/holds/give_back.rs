//! The one way seats of a pending reservation become free again: on request or because the time ran out.

use urr_contracts::tickets::{CancelReason, Reservation, ReservationFact, ReservationStatus};
use urr_db::{Tx, outbox};
use urr_kernel::Timestamp;

use super::{message, rules, store};
use crate::{service::Service, trouble::Trouble};

/// Ends a pending reservation and frees its seats. `false`: it was not pending any more, and nothing changed.
pub(crate) async fn in_tx(
    service: &Service,
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    reason: CancelReason,
    now: Timestamp,
) -> Result<bool, Trouble> {
    if !end(service, tx, reservation, reason, now).await? {
        return Ok(false);
    }
    for seat in &reservation.seats {
        store::free(tx, reservation.event, seat.id, seat.fence, reservation.id).await?;
    }
    Ok(true)
}

/// Ends many at once: buyers, then reservations, then all seats by event and id, so that no deadlock can form.
pub(crate) async fn many_in_tx<'r>(
    service: &Service,
    tx: &mut Tx<'_>,
    reservations: &'r [store::Stored],
    now: Timestamp,
) -> Result<Vec<&'r store::Stored>, Trouble> {
    let mut order: Vec<&store::Stored> = reservations.iter().collect();
    order.sort_unstable_by_key(|stored| {
        (stored.reservation.event, stored.reservation.user, stored.reservation.id)
    });
    let mut ended = Vec::with_capacity(order.len());
    for stored in order {
        if end(service, tx, &stored.reservation, CancelReason::Expired, now).await? {
            ended.push(stored);
        }
    }
    let mut seats: Vec<_> = ended
        .iter()
        .flat_map(|stored| {
            let Reservation { id, event, seats, .. } = &stored.reservation;
            seats.iter().map(|seat| (*event, seat.id, seat.fence, *id))
        })
        .collect();
    seats.sort_unstable();
    for (event, seat, fence, reservation) in seats {
        // A stale fence means the seat was claimed again after the hold ran out: it stays with its new holder.
        store::free(tx, event, seat, fence, reservation).await?;
    }
    Ok(ended)
}

async fn end(
    service: &Service,
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    reason: CancelReason,
    now: Timestamp,
) -> Result<bool, Trouble> {
    let status = match reason {
        CancelReason::Expired => ReservationStatus::Expired,
        CancelReason::User => ReservationStatus::Cancelled,
    };
    store::lock_buyer(tx, reservation.event, reservation.user).await?;
    if !store::leave_pending(tx, reservation.id, status, now).await? {
        return Ok(false);
    }
    let seat_count = rules::seat_count(reservation);
    store::count_out(tx, reservation.event, reservation.user, seat_count).await?;
    let fact = ReservationFact::ReservationCancelled {
        reservation_id: reservation.id,
        user_id: reservation.user,
        event_id: reservation.event,
        seat_count,
        reason,
    };
    outbox::append(tx, &message(service, fact, now)).await?;
    Ok(true)
}
