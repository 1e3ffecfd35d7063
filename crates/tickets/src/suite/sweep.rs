//! Expiry of holds, including holds that cannot be expired.

use std::time::Duration;

use urr_contracts::tickets::{
    CancelReason, Error, ReleaseHold, Reservation, ReservationOf, ReservationStatus,
};
use urr_db::{Tx, statements, transaction};
use urr_kernel::{ReservationId, limits::HOLD};
use urr_rpc::Ctx;

use super::{World, hold_request, together::meanwhile};
use crate::holds::{
    give_back,
    store::{self, Stored, lock_buyer},
    sweep::{BATCH, MAX_LOOKS},
};

statements! {
    /// Makes a reservation impossible to decode.
    UNREADABLE = "update reservations set event_card = '[]' where id = $1";

    /// Inserts copies of a reservation.
    COPIES = sqlite "
        with recursive copy (n) as (select 1 union all select n + 1 from copy where n < $2)
        insert into reservations (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                  expires_at, created_at, updated_at)
        select randomblob(16), number || n, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
               expires_at, created_at, updated_at from reservations, copy where id = $1"
        postgres "
        insert into reservations (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                  expires_at, created_at, updated_at)
        select gen_random_uuid(), number || n, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
               expires_at, created_at, updated_at from reservations, generate_series(1, $2::bigint) n where id = $1";
}

async fn status(world: &World, buyer: &Ctx, held: &Reservation) -> ReservationStatus {
    let read = world.tickets.reservation(buyer, ReservationOf { reservation: held.id }).await;
    read.unwrap().status
}

/// Makes a reservation impossible to decode.
pub(super) async fn damage(world: &World, held: &Reservation) {
    let broken: Result<u64, urr_db::Error> = world
        .service
        .db
        .write("test.unreadable", async |tx: &mut Tx<'_>| tx.execute(&UNREADABLE, &[&held.id]).await)
        .await;
    assert_eq!(broken.unwrap(), 1);
}

/// Covers one buyer with several holds, and several events. A seat claimed again by now stays with
/// its new holder, and reservations that already ended stay unchanged.
pub(super) async fn holds_expired_in_a_batch_end_as_if_expired_alone(world: &World) {
    let ((event, seats), (other, elsewhere)) = (world.event(5), world.event(1));
    let (twice, gone, rival) = (world.buyer(), world.buyer(), world.buyer());
    let mut held = Vec::new();
    for (buyer, event, seats) in [
        (&twice, event, &seats[..2]),
        (&gone, event, &seats[3..]),
        (&twice, event, &seats[2..3]),
        (&twice, other, &elsewhere[..]),
    ] {
        held.push(world.hold(buyer, event, seats).await.unwrap());
    }
    let mut seen: Vec<Stored> = Vec::new();
    for Reservation { id, .. } in &held {
        let read: Result<_, urr_db::Error> =
            world.service.db.read("test.seen", async |tx: &mut Tx<'_>| store::get(tx, *id).await).await;
        seen.push(read.unwrap().expect("it was held"));
    }
    world.tickets.release(&gone, ReleaseHold { reservation: held[1].id }).await.unwrap();
    world.pass(HOLD).await;
    let next = world.hold(&rival, event, &seats[..1]).await.unwrap();

    let (seen, now) = (seen.iter().collect::<Vec<_>>(), world.clock.now());
    let ended: Result<_, urr_db::Error> =
        transaction!(world.service.db, "test.together", async |tx: &mut Tx<'_>| {
            give_back::in_tx(&world.service, tx, &seen, CancelReason::Expired, now).await
        });
    let ended: Vec<ReservationId> = ended.unwrap().into_iter().map(|hold| hold.reservation.id).collect();
    assert_eq!(ended, [held[0].id, held[2].id, held[3].id]);
    assert_eq!(status(world, &gone, &held[1]).await, ReservationStatus::Cancelled);
    assert_eq!(status(world, &rival, &next).await, ReservationStatus::Pending);
    let taken = world.hold(&world.buyer(), event, &seats[..2]).await;
    assert_eq!(taken, Err(Error::SeatsTaken { seats: vec![seats[0]] }));
    world.hold(&twice, event, &seats[1..]).await.expect("the seats are free and the count is reset");
    // PostgreSQL exposes a message only when no older transaction is open on the server.
    let mut told = Vec::new();
    urr_testkit::until(Duration::from_secs(30), async || {
        told = world.facts_of(event).await;
        told.len() >= 8
    })
    .await;
    assert_eq!(told.len(), 8, "five created and three cancelled");
    world.check_invariants().await;
}

/// Unreadable rows must not block the others, even if there are more than one run reads. Needs its
/// own world, which it leaves broken.
pub(super) async fn unreadable_rows_do_not_stop_the_sweep(world: &World) {
    let (event, seats) = world.event(2);
    let (first, second) = (world.buyer(), world.buyer());
    let spoilt = world.tickets.hold(&first, hold_request(event, &seats[..1])).await.unwrap();
    damage(world, &spoilt).await;
    let copied: Result<u64, urr_db::Error> = world
        .service
        .db
        .write("test.copies", async |tx: &mut Tx<'_>| {
            tx.execute(&COPIES, &[&spoilt.id, &i64::from(BATCH * MAX_LOOKS)]).await
        })
        .await;
    assert_eq!(copied.unwrap(), u64::from(BATCH * MAX_LOOKS));
    world.clock.advance(Duration::from_secs(1));
    let sound = world.hold(&second, event, &seats[1..]).await.unwrap();
    world.pass(HOLD).await;
    assert_eq!(world.service.expire_lapsed().await.unwrap(), 0, "the first run reads only unreadable rows");
    assert_eq!(world.service.expire_lapsed().await.unwrap(), 1, "the next run continues after them");
    assert_eq!(status(world, &second, &sound).await, ReservationStatus::Expired);
    let later = world.hold(&second, event, &seats[1..]).await.unwrap();
    world.pass(HOLD).await;
    world.service.expire_lapsed().await.unwrap();
    assert_eq!(world.service.expire_lapsed().await.unwrap(), 1, "they are tried and skipped again");
    assert_eq!(status(world, &second, &later).await, ReservationStatus::Expired);
}

/// The unreadable hold still counts towards the limit; the rest of the limit is usable. Needs its
/// own world, which it leaves broken.
pub(super) async fn a_buyer_with_an_unreadable_hold_can_still_buy(world: &World) {
    let (event, seats) = world.event(8);
    let buyer = world.buyer();
    let spoilt = world.tickets.hold(&buyer, hold_request(event, &seats[..1])).await.unwrap();
    damage(world, &spoilt).await;
    world.hold(&buyer, event, &seats[1..4]).await.unwrap();
    world.pass(HOLD).await;
    let too_many = world.hold(&buyer, event, &seats[4..]).await;
    assert_eq!(too_many, Err(Error::UserLimit { max: 4, held: 1 }));
    world.hold(&buyer, event, &seats[4..7]).await.unwrap();
}

/// A locked buyer row blocks the expiry of that buyer's holds only.
pub(super) async fn a_locked_row_does_not_stop_the_sweep(world: &World) {
    let (event, seats) = world.event(2);
    let (first, second) = (world.buyer(), world.buyer());
    let locked = world.hold(&first, event, &seats[..1]).await.unwrap();
    let free = world.hold(&second, event, &seats[1..]).await.unwrap();
    world.pass(HOLD).await;
    meanwhile(world, async |tx: &mut Tx<'_>| {
        lock_buyer(tx, event, locked.user).await?;
        world.service.expire_lapsed().await
    })
    .await;
    assert_eq!(status(world, &first, &locked).await, ReservationStatus::Pending);
    assert_eq!(status(world, &second, &free).await, ReservationStatus::Expired);
    world.sweep().await;
    assert_eq!(status(world, &first, &locked).await, ReservationStatus::Expired);
    world.check_invariants().await;
}

/// Rows that fail to expire must not block the others, even if they fill a whole batch. Needs its
/// own world, which it leaves broken.
pub(super) async fn bad_rows_do_not_stop_the_sweep(world: &World) {
    let bad = BATCH as usize;
    let (event, seats) = world.event(bad + 2);
    let (first, second) = (world.buyer(), world.buyer());
    let spoilt = world.hold(&first, event, &seats[..1]).await.unwrap();
    world.spoil(&spoilt).await;
    for seat in &seats[1..bad] {
        world.spoil(&world.hold(&world.buyer(), event, &[*seat]).await.unwrap()).await;
    }
    let sound = world.hold(&second, event, &seats[bad..]).await.unwrap();
    world.pass(HOLD).await;
    world.sweep().await;
    assert_eq!(status(world, &first, &spoilt).await, ReservationStatus::Pending);
    assert_eq!(status(world, &second, &sound).await, ReservationStatus::Expired);
}
