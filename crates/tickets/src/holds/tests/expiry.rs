//! Expiry of several holds in one transaction.

use urr_contracts::tickets::{
    CancelReason, Error, ReleaseHold, Reservation, ReservationOf, ReservationStatus, Tickets as _,
};
use urr_db::{Tx, transaction};
use urr_kernel::{ReservationId, limits::HOLD};
use urr_rpc::Ctx;

use super::{World, hold_request};
use crate::holds::{
    give_back,
    store::{self, Stored},
};

async fn status(world: &World, buyer: &Ctx, held: &Reservation) -> ReservationStatus {
    world.service.reservation(buyer, ReservationOf { reservation: held.id }).await.unwrap().status
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
        held.push(world.hold(buyer, hold_request(event, seats)).await);
    }
    let mut seen: Vec<Stored> = Vec::new();
    for Reservation { id, .. } in &held {
        let read: Result<_, urr_db::Error> =
            world.service.db.read("test.seen", async |tx: &mut Tx<'_>| store::get(tx, *id).await).await;
        seen.push(read.unwrap().expect("it was held"));
    }
    world.service.release(&gone, ReleaseHold { reservation: held[1].id }).await.unwrap();
    world.clock.advance(HOLD);
    let next = world.hold(&rival, hold_request(event, &seats[..1])).await;

    let (seen, now) = (seen.iter().collect::<Vec<_>>(), world.clock.now());
    let ended: Result<_, urr_db::Error> =
        transaction!(world.service.db, "test.together", async |tx: &mut Tx<'_>| {
            give_back::in_tx(&world.service, tx, &seen, CancelReason::Expired, now).await
        });
    let ended: Vec<ReservationId> = ended.unwrap().into_iter().map(|hold| hold.reservation.id).collect();
    assert_eq!(ended, [held[0].id, held[2].id, held[3].id]);
    assert_eq!(status(world, &gone, &held[1]).await, ReservationStatus::Cancelled);
    assert_eq!(status(world, &rival, &next).await, ReservationStatus::Pending);
    let taken = world.service.hold(&world.buyer(), hold_request(event, &seats[..2])).await;
    assert_eq!(taken, Err(Error::SeatsTaken { seats: vec![seats[0]] }));
    // This succeeds only if the seats are free and the buyer's count is reset.
    world.hold(&twice, hold_request(event, &seats[1..])).await;
    // Six created and four cancelled.
    world.published(10).await;
    world.check_invariants().await;
}
