//! Holding seats for a buyer, and releasing them.
//!
//! Lock order, the same in every transaction: the buyer, an existing reservation, seats by event
//! and id, and last the idempotency key of a new reservation.

pub(crate) mod claims;
pub(crate) mod give_back;
pub(crate) mod replays;
pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use urr_contracts::{
    catalog,
    tickets::{
        CancelReason, Error, HoldSeats, ListReservations, MAX_RESERVATIONS_PER_PAGE, ReleaseHold,
        Reservation, ReservationFact, ReservationOf, ReservationStatus, Reservations,
    },
};
use urr_db::{JsonText, PostgresConfig, Tx, outbox, transaction};
use urr_jobs::BatchError;
use urr_kernel::{ReservationId, SeatId, UserId};
use urr_rpc::Ctx;
use uuid::Uuid;

use crate::{
    Failure,
    gate::{Entry, Owner},
    service::Service,
};
use claims::Claim;

/// Deadline of a hold. A claim queued for longer is not started. For a rejected hold it limits the
/// calls to the catalog (except the first read of a hall) and the lookup of its idempotency key
/// together. During a PostgreSQL outage we promise an answer within two seconds; the rest is slack.
const PATIENCE: Duration = Duration::from_millis(1_950);

/// Minimum time for the lookup of the key, however late it starts. A healthy database answers in a
/// hundredth of it.
const ONE_LOOK: Duration = Duration::from_millis(150);

/// Timeout for the sale rules: at least as long as the catalog's database takes to report an
/// outage.
const RULES: Duration = PATIENCE.saturating_sub(ONE_LOOK);
const _: () = assert!(
    PostgresConfig::NO_ANSWER.as_millis() <= RULES.as_millis(),
    "a hold must be answered within two seconds, even during a PostgreSQL outage"
);

/// Holds all of the requested seats for the calling user, or none of them.
///
/// A retry with an already used idempotency key gets the reservation made with that key, in its
/// current state, whatever would reject it now. Few requests are retries, so the key is looked up
/// only after a rejection; the insert itself rejects a used key.
pub(crate) async fn hold(service: &Service, ctx: &Ctx, request: &HoldSeats) -> Result<Reservation, Failure> {
    let user = ctx.user()?;
    rules::check_request(request)?;
    let began = service.clock.ticks();
    let mut marks = None;
    let held = match plan(service, ctx, user, request).await {
        Ok(claim) => enter(service, Arc::new(claim), &mut marks).await,
        Err(failure) => Err(failure),
    };
    let answer = match held {
        Err(failure) if may_be_a_retry(&failure) => {
            let left = PATIENCE.saturating_sub(service.clock.ticks().saturating_sub(began)).max(ONE_LOOK);
            let known = timeout(left, replay(service, user, request)).await;
            // If the lookup timed out, the hold may have succeeded earlier and own these marks.
            // Leave them to expire.
            marks = marks.filter(|_| known.is_ok());
            known
                .unwrap_or(Err(Failure::unavailable(BatchError::Late)))
                .and_then(|known| known.ok_or(failure))
        }
        held => held,
    };
    let holds = answer.as_ref().is_ok_and(|found| found.status == ReservationStatus::Pending);
    if let (false, Some((seats, owner))) = (holds, marks) {
        // Remove the marks: they would block seats that this buyer did not get or no longer has.
        service.gate.release(request.event, &seats, owner).await;
    }
    answer
}

/// Whether the failed request may be a retry of an earlier one, whose answer is in our own rows.
/// The catalog may be down meanwhile.
fn may_be_a_retry(failure: &Failure) -> bool {
    matches!(failure, Failure::Refused(_)) || failure.cause::<catalog::Error>().is_some()
}

/// Builds the claim for a request, if the rules of the sale allow it.
async fn plan(service: &Service, ctx: &Ctx, user: UserId, request: &HoldSeats) -> Result<Claim, Failure> {
    let briefly = ctx.within(RULES);
    let sale = service.sales.rules(&briefly, request.event).await?;
    let now = service.clock.now();
    rules::check_open(&sale, now)?;
    rules::check_count(request, &sale)?;
    // Not limited by `briefly`: all waiting requests share one read of the hall, and aborting it
    // would make the next one start over.
    let hall = service.sales.hall(ctx, &sale).await?;
    let plan = match rules::plan(request, &hall) {
        Err(Error::SeatsNotFound { seats }) => {
            return Err(not_in_this_hall(service, &briefly, request, seats).await?);
        }
        plan => plan?,
    };
    let (id, key) = (service.ids.next(), request.idempotency_key.clone());
    let reservation = Reservation {
        id,
        number: rules::number(id, now),
        user,
        event: request.event,
        card: sale.card.clone(),
        status: ReservationStatus::Pending,
        total: plan.total,
        expires_at: now.after(service.settings.hold),
        created_at: now,
        seats: Vec::new(),
    };
    let owner = rules::gate_owner(user, key.as_deref(), id);
    let (max_seats_per_user, sale_end_at) = (sale.max_seats_per_user, sale.sale_end_at);
    let news = outbox::Message::new(service.ids.next(), created(&reservation, plan.seat_count()), now);
    let card = JsonText::of(&reservation.card);
    Ok(Claim { reservation, card, plan, owner, max_seats_per_user, sale_end_at, key, news })
}

/// Acquires the gate and claims the seats. Sets `marks` to the marks left in the gate, also on
/// failure.
async fn enter(
    service: &Service,
    mut claim: Arc<Claim>,
    marks: &mut Option<(Vec<SeatId>, Owner)>,
) -> Result<Reservation, Failure> {
    let (event, user, seats) = (claim.reservation.event, claim.reservation.user, claim.plan.seat_ids());
    if let Entry::Busy(seats) = service.gate.acquire(event, &seats, claim.owner).await {
        return Err(Error::SeatsTaken { seats }.into());
    }
    *marks = Some((seats, claim.owner));
    let mut held = service.claim(&claim).await;
    if held.as_ref().is_err_and(|failure| failure.cause().is_some_and(urr_db::Error::is_unique_violation)) {
        // Reservation numbers end in eight hex digits of an id, so two of the same millisecond can
        // collide. Retry with a new one.
        let number = rules::number(service.ids.next(), claim.reservation.created_at);
        Arc::make_mut(&mut claim).reservation.number = number;
        held = service.claim(&claim).await;
    }
    if !matches!(held, Err(Failure::Refused(Error::UserLimit { .. }))) {
        return held;
    }
    // The buyer's own expired holds may still count towards the limit if the sweep has not reached
    // them. Expire them and retry. Retried in any case: the sweep may have expired them a moment
    // ago.
    service.expire_lapsed_of(event, user).await?;
    service.claim(&claim).await
}

/// Releases the seats of a pending reservation. Idempotent.
pub(crate) async fn release(
    service: &Service,
    ctx: &Ctx,
    request: ReleaseHold,
) -> Result<Reservation, Failure> {
    let user = ctx.user()?;
    let now = service.clock.now();
    let (stored, freed) = transaction!(service.db, "tickets.release", async |tx: &mut Tx<'_>| {
        let mut stored = own(tx, user, request.reservation).await?;
        let reason =
            if stored.reservation.expires_at <= now { CancelReason::Expired } else { CancelReason::User };
        let freed = !give_back::in_tx(service, tx, &[&stored], reason, now).await?.is_empty();
        stored = own(tx, user, request.reservation).await?;
        Ok::<_, Failure>((stored, freed))
    })?;
    if freed {
        service.forget_marks(&stored).await;
    }
    match stored.reservation.status {
        ReservationStatus::Cancelled | ReservationStatus::Expired => Ok(stored.reservation),
        current => Err(Error::NotPending { current }.into()),
    }
}

/// Returns one reservation of the calling user.
pub(crate) async fn reservation(
    service: &Service,
    ctx: &Ctx,
    request: ReservationOf,
) -> Result<Reservation, Failure> {
    let user = ctx.user()?;
    let found = service
        .db
        .read("tickets.reservation", async |tx: &mut Tx<'_>| own(tx, user, request.reservation).await);
    Ok(found.await?.reservation)
}

/// Returns the reservations of the calling user, newest first.
pub(crate) async fn reservations(
    service: &Service,
    ctx: &Ctx,
    request: ListReservations,
) -> Result<Reservations, Failure> {
    let user = ctx.user()?;
    if !(1..=MAX_RESERVATIONS_PER_PAGE).contains(&request.limit) {
        return Err(Error::BadPage { max: MAX_RESERVATIONS_PER_PAGE }.into());
    }
    let before = request.before.unwrap_or(ReservationId::from_uuid(Uuid::max()));
    let page = service.db.read("tickets.reservations", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::of_user(tx, user, before, request.limit).await?)
    });
    Ok(Reservations { reservations: page.await?.into_iter().map(|stored| stored.reservation).collect() })
}

/// Returns the reservation made with the request's key, in its current state, if there is one.
async fn replay(
    service: &Service,
    user: UserId,
    request: &HoldSeats,
) -> Result<Option<Reservation>, Failure> {
    let Some(key) = request.idempotency_key.as_deref() else { return Ok(None) };
    match service.of_key(user, key).await? {
        Some(known) if rules::answers(&known, request) => Ok(Some(known)),
        Some(_) => Err(Error::IdempotencyKeyReused.into()),
        None => Ok(None),
    }
}

/// Returns the error for seats that are not in this hall: they belong to another event, or do not
/// exist.
async fn not_in_this_hall(
    service: &Service,
    ctx: &Ctx,
    request: &HoldSeats,
    seats: Vec<SeatId>,
) -> Result<Failure, Failure> {
    let elsewhere = service.sales.elsewhere(ctx, request.event, &seats).await?;
    Ok(if elsewhere.is_empty() {
        Error::SeatsNotFound { seats }
    } else {
        Error::SeatsOfAnotherEvent { seats: elsewhere }
    }
    .into())
}

/// Returns a reservation of this user. Reservations of other users are reported as not found.
async fn own(tx: &mut Tx<'_>, user: UserId, id: ReservationId) -> Result<store::Stored, Failure> {
    let stored = store::get(tx, id).await?.filter(|stored| stored.reservation.user == user);
    stored.ok_or_else(|| Error::ReservationNotFound.into())
}

fn created(new: &Reservation, seat_count: u32) -> ReservationFact {
    ReservationFact::Created {
        reservation_id: new.id,
        user_id: new.user,
        event_id: new.event,
        total_amount: new.total,
        seat_count,
        expires_at: new.expires_at,
    }
}
