//! Behaviour of holds and reservations.

use std::{collections::HashSet, sync::Arc, time::Duration};

use urr_contracts::tickets::{
    Error, HoldSeats, ListReservations, ReleaseHold, Reservation, ReservationOf, ReservationStatus,
    SeatStatus,
};
use urr_kernel::{CommonError, EventId, ReservationId, SeatId, limits::HOLD};

use crate::world::{World, hold_request};

pub(crate) async fn a_hold_keeps_its_seats_prices_and_time(world: &World) {
    let (event, seats) = world.event(6);
    let before = world.map(event).await;
    let held = world.hold(&world.buyer(), event, &[seats[3], seats[1]]).await.unwrap();
    assert_eq!(held.status, ReservationStatus::Pending);
    assert_eq!(held.total.won(), 200_000);
    assert_eq!(held.expires_at, world.clock.now().after(HOLD));
    assert_eq!(ids(&held), sorted(&[seats[1], seats[3]]));
    assert!(held.seats.iter().all(|seat| seat.fence == 1 && seat.price.won() == 100_000));
    let after = world.map(event).await;
    assert_ne!(before.version, after.version);
    let locked: HashSet<SeatId> =
        after.seats.iter().filter(|seat| seat.status == SeatStatus::Locked).map(|seat| seat.id).collect();
    assert_eq!(locked, HashSet::from([seats[1], seats[3]]));
}

pub(crate) async fn all_seats_or_none(world: &World) {
    let (event, seats) = world.event(3);
    world.hold(&world.buyer(), event, &[seats[1]]).await.unwrap();
    let refused = world.hold(&world.buyer(), event, &seats).await;
    assert_eq!(refused, Err(Error::SeatsTaken { seats: vec![seats[1]] }));
    world.hold(&world.buyer(), event, &[seats[0], seats[2]]).await.unwrap();
}

pub(crate) async fn a_buyer_holds_at_most_four_seats_on_all_devices(world: &World) {
    let (event, seats) = world.event(30);
    let buyer = world.buyer();
    let mut devices = tokio::task::JoinSet::new();
    for (device, seat) in seats[..20].iter().copied().enumerate() {
        let (tickets, buyer) = (world.anywhere(device), buyer.clone());
        devices.spawn(async move { tickets.hold(&buyer, hold_request(event, &[seat])).await });
    }
    let (mut won, mut refused) = (0, 0);
    while let Some(outcome) = devices.join_next().await {
        match outcome.unwrap() {
            Ok(_) => won += 1,
            Err(Error::UserLimit { max: 4, .. }) => refused += 1,
            Err(other) => panic!("unexpected error: {other:?}"),
        }
    }
    assert_eq!((won, refused), (4, 16));
    let one_more = world.hold(&buyer, event, &[seats[25]]).await;
    assert_eq!(one_more, Err(Error::UserLimit { max: 4, held: 4 }));
    let (elsewhere, other_seats) = world.event(1);
    world.hold(&buyer, elsewhere, &other_seats).await.unwrap();
}

pub(crate) async fn invalid_requests_have_their_own_errors_and_change_nothing(world: &World) {
    let (event, seats) = world.event(6);
    let (_, foreign) = world.event(1);
    let standing = world.standing_event();
    let stranger: SeatId = world.ids.next();
    let unknown: EventId = world.ids.next();
    let before = world.map(event).await;
    let ask = |event, seats: &[SeatId]| hold_request(event, seats);
    let key = |text: &str| HoldSeats { idempotency_key: Some(text.to_owned()), ..ask(event, &seats[..1]) };
    for (request, expected) in [
        (ask(event, &[]), Error::NoSeats),
        (ask(event, &seats[..5]), Error::TooManySeats { max: 4 }),
        (ask(event, &[seats[0], seats[0]]), Error::DuplicateSeats { seats: vec![seats[0]] }),
        (ask(event, &[seats[0], stranger]), Error::SeatsNotFound { seats: vec![stranger] }),
        (ask(event, &[seats[0], foreign[0]]), Error::SeatsOfAnotherEvent { seats: foreign.clone() }),
        (ask(unknown, &seats[..1]), Error::EventNotFound),
        (ask(standing, &seats[..1]), Error::NoSeatMap),
        (key(""), Error::BadIdempotencyKey),
        (key(&"k".repeat(65)), Error::BadIdempotencyKey),
    ] {
        assert_eq!(world.tickets.hold(&world.buyer(), request).await, Err(expected));
    }
    let anonymous = world.tickets.hold(&world.anonymous(), ask(event, &seats[..1])).await;
    assert_eq!(anonymous, Err(Error::Common(CommonError::SignInRequired)));
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.map(event).await, before);
}

pub(crate) async fn holds_outside_the_sale_window_are_rejected(world: &World) {
    let now = world.clock.now();
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    let (early, seats) = world.event_on_sale(1, now.after(minute), now.after(hour));
    let refused = world.hold(&world.buyer(), early, &seats).await;
    assert_eq!(refused, Err(Error::SaleNotOpen { opens_at: now.after(minute) }));
    world.pass(minute).await;
    world.hold(&world.buyer(), early, &seats).await.unwrap();

    let (late, seats) = world.event_on_sale(1, now.before(hour), now);
    assert_eq!(world.hold(&world.buyer(), late, &seats).await, Err(Error::SaleEnded { ended_at: now }));

    let (called_off, seats) = world.event(1);
    world.catalog.cancel(called_off);
    assert_eq!(world.hold(&world.buyer(), called_off, &seats).await, Err(Error::EventCancelled));
}

pub(crate) async fn the_same_key_gets_the_same_answer(world: &World) {
    let (event, seats) = world.event(4);
    let (buyer, rival) = (world.buyer(), world.buyer());
    let keyed =
        |seats: &[SeatId]| HoldSeats { idempotency_key: Some("k-1".into()), ..hold_request(event, seats) };
    let first = world.tickets.hold(&buyer, keyed(&seats[..2])).await.unwrap();
    let again = world.tickets.hold(&buyer, keyed(&[seats[1], seats[0]])).await.unwrap();
    assert_eq!(first, again);
    let other_body = world.tickets.hold(&buyer, keyed(&seats[2..])).await;
    assert_eq!(other_body, Err(Error::IdempotencyKeyReused));
    let other_user = world.tickets.hold(&rival, keyed(&seats[2..])).await.unwrap();
    assert_ne!(other_user.id, first.id);
    let released = world.release(&buyer, first.id).await.unwrap();
    assert_eq!(world.tickets.hold(&buyer, keyed(&seats[..2])).await.unwrap(), released);
    assert!(world.hold(&rival, event, &seats[..2]).await.is_ok(), "a retry claims nothing");
}

pub(crate) async fn a_retry_after_the_sale_gets_the_original_answer(world: &World) {
    let (now, minute) = (world.clock.now(), Duration::from_mins(1));
    let (event, seats) = world.event_on_sale(2, now, now.after(minute));
    let buyer = world.buyer();
    let keyed = |key: &str| HoldSeats { idempotency_key: Some(key.into()), ..hold_request(event, &seats) };
    let first = world.tickets.hold(&buyer, keyed("k")).await.unwrap();
    world.pass(minute).await;
    assert_eq!(world.tickets.hold(&buyer, keyed("k")).await.unwrap().id, first.id);
    let new = world.tickets.hold(&buyer, keyed("another")).await;
    assert_eq!(new, Err(Error::SaleEnded { ended_at: now.after(minute) }));
}

pub(crate) async fn a_retry_is_answered_while_the_catalog_is_down(world: &World) {
    let (event, seats) = world.event(2);
    let buyer = world.buyer();
    let keyed = |key: &str| HoldSeats { idempotency_key: Some(key.into()), ..hold_request(event, &seats) };
    let first = world.tickets.hold(&buyer, keyed("k")).await.unwrap();
    world.catalog.set_down(true);
    // Long enough for the cached sale to expire.
    world.pass(Duration::from_mins(1)).await;
    let (again, new) =
        (world.tickets.hold(&buyer, keyed("k")).await, world.tickets.hold(&buyer, keyed("another")).await);
    world.catalog.set_down(false);
    assert_eq!(again.unwrap().id, first.id);
    assert_eq!(new, Err(Error::Common(CommonError::Unavailable)));
    let time_left = world.catalog.time_left();
    assert!(time_left <= Duration::from_secs(2), "a hold waits {time_left:?} for a catalog that hangs");
}

pub(crate) async fn concurrent_retries_make_one_reservation(world: &World) {
    let (event, seats) = world.event(4);
    let buyer = world.buyer();
    let mut copies = tokio::task::JoinSet::new();
    for copy in 0..10 {
        let (tickets, buyer) = (world.anywhere(copy), buyer.clone());
        let request = HoldSeats { idempotency_key: Some("copy".into()), ..hold_request(event, &seats[..2]) };
        copies.spawn(async move { tickets.hold(&buyer, request).await });
    }
    let mut answers: Vec<Reservation> = Vec::new();
    while let Some(answer) = copies.join_next().await {
        answers.push(answer.unwrap().expect("a retry must not be rejected because of its own seats"));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

pub(crate) async fn a_retry_among_rejected_holds_gets_its_reservation(world: &World) {
    let (event, seats) = world.event(1);
    let keyed = || HoldSeats { idempotency_key: Some("a".into()), ..hold_request(event, &seats) };
    let first = world.buyer();
    let held = world.tickets.hold(&first, keyed()).await.unwrap();
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (tickets, buyer, request) = (Arc::clone(&world.tickets), world.buyer(), keyed());
        crowd.spawn(async move { tickets.hold(&buyer, request).await });
    }
    let again = world.tickets.hold(&first, keyed()).await;
    assert_eq!(again.map(|again| again.id), Ok(held.id));
    let taken = Error::SeatsTaken { seats: vec![seats[0]] };
    for lost in crowd.join_all().await {
        assert_eq!(lost.map(|got| got.id), Err(taken.clone()));
    }
}

pub(crate) async fn released_seats_are_free_and_their_fence_grows(world: &World) {
    let (event, seats) = world.event(2);
    let (buyer, rival) = (world.buyer(), world.buyer());
    let held = world.hold(&buyer, event, &seats).await.unwrap();
    let released = world.release(&buyer, held.id).await.unwrap();
    assert_eq!(released.status, ReservationStatus::Cancelled);
    let next = world.hold(&rival, event, &seats).await.unwrap();
    assert!(next.seats.iter().all(|seat| seat.fence == 2));
    let again = world.release(&buyer, held.id).await.unwrap();
    assert_eq!(again.status, ReservationStatus::Cancelled);
    let still_taken = world.hold(&buyer, event, &seats).await;
    assert!(matches!(still_taken, Err(Error::SeatsTaken { .. })), "a second release freed the rival's seats");
}

pub(crate) async fn an_expired_hold_frees_its_seats(world: &World) {
    let (event, seats) = world.event(2);
    let buyer = world.buyer();
    let held = world.hold(&buyer, event, &seats).await.unwrap();
    world.pass(HOLD.saturating_sub(Duration::from_micros(1))).await;
    world.sweep().await;
    let early = world.tickets.reservation(&buyer, ReservationOf { reservation: held.id }).await.unwrap();
    assert_eq!(early.status, ReservationStatus::Pending, "a hold must not expire early");
    world.pass(Duration::from_micros(1)).await;
    world.sweep().await;
    let late = world.tickets.reservation(&buyer, ReservationOf { reservation: held.id }).await.unwrap();
    assert_eq!(late.status, ReservationStatus::Expired);
    assert_eq!(world.release(&buyer, held.id).await.unwrap().status, ReservationStatus::Expired);
    world.hold(&world.buyer(), event, &seats).await.unwrap();
}

pub(crate) async fn the_sweep_does_not_free_a_seat_claimed_after_expiry(world: &World) {
    let (event, seats) = world.event(2);
    world.hold(&world.buyer(), event, &seats).await.unwrap();
    world.pass(HOLD).await;
    let rival = world.buyer();
    let next = world.hold(&rival, event, &seats[..1]).await.unwrap();
    world.sweep().await;
    let kept = world.tickets.reservation(&rival, ReservationOf { reservation: next.id }).await.unwrap();
    assert_eq!((kept.status, kept.seats[0].fence), (ReservationStatus::Pending, 2));
    let taken = world.hold(&world.buyer(), event, &seats[..1]).await;
    assert_eq!(taken, Err(Error::SeatsTaken { seats: vec![seats[0]] }));
    world.hold(&world.buyer(), event, &seats[1..]).await.unwrap();
}

pub(crate) async fn a_buyers_expired_holds_do_not_count_towards_the_limit(world: &World) {
    let (event, seats) = world.event(8);
    let buyer = world.buyer();
    world.hold(&buyer, event, &seats[..4]).await.unwrap();
    world.pass(HOLD).await;
    world.hold(&buyer, event, &seats[4..]).await.unwrap();
}

pub(crate) async fn a_reservation_is_private_to_its_buyer(world: &World) {
    let (event, seats) = world.event(1);
    let (buyer, rival) = (world.buyer(), world.buyer());
    let held = world.hold(&buyer, event, &seats).await.unwrap();
    let seen = world.tickets.reservation(&rival, ReservationOf { reservation: held.id }).await;
    assert_eq!(seen, Err(Error::ReservationNotFound));
    assert_eq!(world.release(&rival, held.id).await, Err(Error::ReservationNotFound));
    let nobody = world.tickets.reservation(&world.anonymous(), ReservationOf { reservation: held.id }).await;
    assert_eq!(nobody, Err(Error::Common(CommonError::SignInRequired)));
    let page = ListReservations { before: None, limit: 10 };
    assert!(world.tickets.reservations(&rival, page).await.unwrap().reservations.is_empty());
}

pub(crate) async fn reservations_are_listed_newest_first_by_page(world: &World) {
    let (event, seats) = world.event(3);
    let buyer = world.buyer();
    let mut made: Vec<ReservationId> = Vec::new();
    for seat in &seats {
        world.pass(Duration::from_millis(1)).await;
        made.push(world.hold(&buyer, event, &[*seat]).await.unwrap().id);
    }
    made.reverse();
    let list = async |before, limit| {
        let page = world.tickets.reservations(&buyer, ListReservations { before, limit }).await.unwrap();
        page.reservations.into_iter().map(|reservation| reservation.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 2).await, made[..2]);
    assert_eq!(list(Some(made[1]), 2).await, made[2..]);
    let too_many = world.tickets.reservations(&buyer, ListReservations { before: None, limit: 101 }).await;
    assert_eq!(too_many, Err(Error::BadPage { max: 100 }));
}

pub(crate) async fn every_change_is_published_once_in_order(world: &World) {
    let (event, seats) = world.event(2);
    let buyer = world.buyer();
    let held = world.hold(&buyer, event, &seats).await.unwrap();
    let failed = world.hold(&world.buyer(), event, &seats).await;
    assert!(failed.is_err(), "a rejected hold publishes nothing");
    world.release(&buyer, held.id).await.unwrap();
    let told = world.facts_of(event).await;
    let kinds: Vec<&str> = told.iter().map(|(message, _)| &*message.kind).collect();
    assert_eq!(kinds, ["RESERVATION_CREATED", "RESERVATION_CANCELLED"]);
    assert!(told.iter().all(|(message, _)| message.key == held.id.to_string()));
    assert_eq!(told[0].0.at, held.created_at);
}

/// Claims that find their seats free succeed, and all totals are correct.
pub(crate) async fn concurrent_claims_are_batched(world: &World) {
    let (event, seats) = world.event(120);
    let mut crowd = tokio::task::JoinSet::new();
    for pair in seats.chunks(2).chain(seats.chunks(3)) {
        let (tickets, buyer, request) =
            (Arc::clone(&world.tickets), world.buyer(), hold_request(event, pair));
        crowd.spawn(async move { tickets.hold(&buyer, request).await });
    }
    let mut held: Vec<SeatId> = Vec::new();
    while let Some(answer) = crowd.join_next().await {
        match answer.unwrap() {
            Ok(reservation) => held.extend(ids(&reservation)),
            Err(error) => assert!(matches!(error, Error::SeatsTaken { .. }), "{error:?}"),
        }
    }
    let count = held.len();
    held.sort_unstable();
    held.dedup();
    assert_eq!(held.len(), count, "a seat was claimed twice");
    assert!(count > 0);
}

pub(crate) fn ids(reservation: &Reservation) -> Vec<SeatId> {
    reservation.seats.iter().map(|seat| seat.id).collect()
}

pub(crate) fn sorted(seats: &[SeatId]) -> Vec<SeatId> {
    let mut seats = seats.to_vec();
    seats.sort_unstable();
    seats
}

impl World {
    async fn release(&self, buyer: &urr_rpc::Ctx, reservation: ReservationId) -> Result<Reservation, Error> {
        self.tickets.release(buyer, ReleaseHold { reservation }).await
    }
}
