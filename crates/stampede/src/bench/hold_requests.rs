//! Test data for holds: events with enough seats, buyers with tokens, and serialized requests.
//!
//! Requests are serialized before the run, so that generating the load costs little.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Context as _;
use serde_json::json;
use urr_contracts::{
    catalog::{Catalog, CreateEvent, ListLayouts, SeatsOf},
    tickets::HoldSeats,
};
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, LayoutId, Role, SeatId, Timestamp, UserId};
use urr_rpc::Ctx;

use super::{Bench, Installed, noop};
use crate::{http::Request, tokens::Tokens};

/// Seats of one hold.
const SEATS: usize = 2;

/// Maximum number of events. `tickets` caches the seats of this many of the largest hall, and a
/// benchmark that evicts them would measure loading: 7 × 50,000 seats are 175,000 holds, or 35,000
/// per second for 5 s.
const MAX_EVENTS: usize = 7;

/// One hold to request: a new buyer and two seats that no other buyer requests.
#[derive(Clone, Debug)]
pub(super) struct HoldRequest {
    /// The buyer.
    pub(super) user: UserId,
    /// The request.
    pub(super) hold: HoldSeats,
}

/// Creates events before they are served, with seats for `holds` holds or as many as fit.
pub(super) async fn hold_requests(
    bench: &Bench<'_>,
    installed: &Installed,
    holds: usize,
) -> anyhow::Result<Vec<HoldRequest>> {
    let Bench { clock, ids, .. } = bench;
    let domains = installed.app.open(&Tasks::new()).await?;
    let catalog = domains.catalog();
    let layouts = catalog.layouts(&Ctx::system(ids, clock), ListLayouts {}).await.context("layouts")?.layouts;
    let largest = layouts.into_iter().max_by_key(|layout| layout.total_seats);
    let largest = largest.context("the catalog has no seat layout")?;
    let events = (holds * SEATS).div_ceil(largest.total_seats as usize).clamp(1, MAX_EVENTS);
    let mut hold_requests = Vec::new();
    for event in create_events(&*catalog, largest.id, events, clock, ids).await? {
        let seats = seats(&*catalog, event, clock, ids).await.context("seats")?;
        hold_requests.extend(seats.chunks_exact(SEATS).map(|seats| HoldRequest {
            user: ids.next(),
            hold: HoldSeats { event, seats: seats.to_vec(), idempotency_key: None },
        }));
    }
    Ok(hold_requests)
}

/// Creates events on sale in the smallest hall, for rows that hold no seats.
pub(super) async fn events(
    catalog: &dyn Catalog,
    count: usize,
    clock: &Clock,
    ids: &Ids,
) -> anyhow::Result<Vec<EventId>> {
    let layouts = catalog.layouts(&Ctx::system(ids, clock), ListLayouts {}).await.context("layouts")?.layouts;
    let smallest = layouts.into_iter().min_by_key(|layout| layout.total_seats);
    create_events(catalog, smallest.context("the catalog has no seat layout")?.id, count, clock, ids).await
}

async fn create_events(
    catalog: &dyn Catalog,
    layout: LayoutId,
    count: usize,
    clock: &Clock,
    ids: &Ids,
) -> anyhow::Result<Vec<EventId>> {
    let mut events = Vec::with_capacity(count);
    for number in 0..count {
        let new = event(number, layout, clock.now());
        let made = catalog.create_event(&Ctx::system(ids, clock), new).await;
        events.push(made.context("could not create an event")?.event.id);
    }
    Ok(events)
}

fn event(number: usize, layout: LayoutId, now: Timestamp) -> CreateEvent {
    const HOUR: Duration = Duration::from_hours(1);
    CreateEvent {
        title: format!("Benchmark {number}"),
        description: None,
        venue: "Loopback".to_owned(),
        address: None,
        artist_name: None,
        event_at: now.after(HOUR * 48),
        sale_start_at: now.before(HOUR),
        sale_end_at: now.after(HOUR * 24),
        poster_image_url: None,
        layout: Some(layout),
        ticket_types: Vec::new(),
        max_seats_per_reservation: None,
        max_seats_per_user: None,
    }
}

async fn seats(
    catalog: &dyn Catalog,
    event: EventId,
    clock: &Clock,
    ids: &Ids,
) -> Result<Vec<SeatId>, urr_contracts::catalog::Error> {
    let (mut seats, mut from) = (Vec::new(), Some(0));
    while let Some(start) = from {
        let page = catalog.seats(&Ctx::system(ids, clock), SeatsOf { event, from: start }).await?;
        from = page.next;
        seats.extend(page.seats.into_iter().map(|seat| seat.id));
    }
    Ok(seats)
}

/// For every event, a hold of a seat that does not exist. Refusing it makes `tickets` load the
/// event's seats, so that the measured holds do not.
pub(super) fn strangers(hold_requests: &[HoldRequest], ids: &Ids) -> Vec<HoldRequest> {
    let events: BTreeSet<EventId> =
        hold_requests.iter().map(|hold_request| hold_request.hold.event).collect();
    let stranger = |event| HoldRequest {
        user: ids.next(),
        hold: HoldSeats { event, seats: vec![ids.next()], idempotency_key: None },
    };
    events.into_iter().map(stranger).collect()
}

/// Shuffles seats and buyers independently.
pub(super) fn scatter(hold_requests: &mut [HoldRequest], ids: &Ids) {
    let mut users: Vec<UserId> = hold_requests.iter().map(|hold_request| hold_request.user).collect();
    shuffle(&mut users, ids);
    shuffle(hold_requests, ids);
    for (hold_request, user) in hold_requests.iter_mut().zip(users) {
        hold_request.user = user;
    }
}

pub(super) fn shuffle<T>(items: &mut [T], ids: &Ids) {
    for last in (1..items.len()).rev() {
        let other = u64::from_le_bytes(ids.bytes()) % (last as u64 + 1);
        items.swap(last, usize::try_from(other).expect("at most `last`, which is a usize"));
    }
}

/// The holds as serialized HTTP requests.
pub(super) fn requests(hold_requests: &[HoldRequest], tokens: &Tokens) -> Vec<Vec<u8>> {
    let request = |hold_request: &HoldRequest| {
        let body = json!({
            "eventId": hold_request.hold.event,
            "seatIds": hold_request.hold.seats,
            "idempotencyKey": hold_request.user.to_string(),
        });
        Request::post(noop::PATH, &body).by(&tokens.of(hold_request.user, Role::User)).bytes("127.0.0.1")
    };
    hold_requests.iter().map(request).collect()
}

/// Holds of events and seats that do not exist, for the no-op handler.
pub(super) fn made_up(count: usize, tokens: &Tokens, ids: &Ids) -> Vec<Vec<u8>> {
    let hold_request = |_| HoldRequest {
        user: ids.next(),
        hold: HoldSeats { event: ids.next(), seats: vec![ids.next(), ids.next()], idempotency_key: None },
    };
    let hold_requests: Vec<HoldRequest> = (0..count).map(hold_request).collect();
    requests(&hold_requests, tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scatter_keeps_every_buyer_and_seat() {
        let ids = Ids::seeded(Clock::fixed(Timestamp::from_micros(0)), 1);
        let hold_request = |_| HoldRequest {
            user: ids.next(),
            hold: HoldSeats { event: ids.next(), seats: vec![ids.next()], idempotency_key: None },
        };
        let before: Vec<HoldRequest> = (0..100).map(hold_request).collect();
        let mut after = before.clone();
        scatter(&mut after, &ids);
        let users = |hold_requests: &[HoldRequest]| {
            hold_requests.iter().map(|hold_request| hold_request.user).collect::<BTreeSet<_>>()
        };
        let seats = |hold_requests: &[HoldRequest]| {
            hold_requests.iter().map(|hold_request| hold_request.hold.seats[0]).collect::<BTreeSet<_>>()
        };
        assert_eq!((users(&before), seats(&before)), (users(&after), seats(&after)));
        let moved = before.iter().zip(&after).filter(|(before, after)| before.hold.seats != after.hold.seats);
        assert!(moved.count() > 80);
    }
}
