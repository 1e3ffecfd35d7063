//! Batched claims: each is atomic, whatever happens to the others in its batch.

use std::sync::Arc;

use urr_contracts::tickets::{Error, HoldSeats, ReleaseHold, Reservation, Tickets as _};
use urr_db::{Tx, statements};
use urr_jobs::Work as _;
use urr_kernel::{CommonError, EventId, SeatId};
use urr_rpc::Ctx;

use super::{World, hold_request, ids, keyed, sorted};
use crate::{
    Failure,
    holds::{
        claims::{Claim, Claiming},
        replays::Replaying,
    },
};

statements! {
    /// Makes a reservation impossible to decode.
    UNREADABLE = "update reservations set event_card = '[]' where id = $1";

    /// Removes the expiry of a hold, as during payment.
    ENDLESS = "update seats set expires_at = null where event_id = $1 and seat_id = $2 and state = 'held'";
}

pub(super) async fn claim(world: &World, buyer: &Ctx, request: &HoldSeats) -> Arc<Claim> {
    Arc::new(world.claim(buyer, request).await)
}

pub(super) fn claiming(world: &World) -> Claiming {
    Claiming { db: world.service.db.clone(), clock: world.clock.clone() }
}

async fn make(world: &World, event: EventId, claims: Vec<Arc<Claim>>) -> Vec<Result<Reservation, Error>> {
    let refused = |failure| match failure {
        Failure::Refused(error) => error,
        failed @ Failure::Failed { .. } => panic!("{failed:?}"),
    };
    let made = claiming(world).run(event, claims).await;
    made.into_iter().map(|answer| answer.map_err(refused)).collect()
}

/// A rejected claim leaves nothing behind: no seat, no count, no message.
pub(super) async fn rejected_claims_leave_nothing_and_others_in_the_batch_succeed(world: &World) {
    let (event, seats) = world.event(12);
    let (full, repeater) = (world.buyer(), world.buyer());
    world.hold(&full, hold_request(event, &seats[..4])).await;
    world.hold(&repeater, keyed(event, &seats[4..5], "again")).await;
    // One seat was held and released before, so that its fence is not the first.
    let earlier = world.buyer();
    let had = world.hold(&earlier, hold_request(event, &seats[10..11])).await;
    world.service.release(&earlier, ReleaseHold { reservation: had.id }).await.unwrap();

    let claims = vec![
        claim(world, &world.buyer(), &hold_request(event, &seats[5..7])).await,
        claim(world, &world.buyer(), &hold_request(event, &[seats[7], seats[0], seats[8]])).await,
        claim(world, &full, &hold_request(event, &seats[9..10])).await,
        claim(world, &repeater, &keyed(event, &seats[10..11], "again")).await,
        claim(world, &world.buyer(), &hold_request(event, &seats[11..])).await,
    ];
    let answers = make(world, event, claims).await;
    assert_eq!(answers[0].as_ref().map(ids), Ok(sorted(&seats[5..7])));
    assert_eq!(answers[1], Err(Error::SeatsTaken { seats: vec![seats[0]] }));
    assert_eq!(answers[2], Err(Error::UserLimit { max: 4, held: 4 }));
    assert_eq!(
        answers[3],
        Err(Error::Common(CommonError::Unavailable)),
        "the key is used: the replay returns the answer"
    );
    assert_eq!(answers[4].as_ref().map(ids), Ok(sorted(&seats[11..])));
    // Including two about the earlier hold.
    world.published(6).await;
    world.check_invariants().await;

    let rest =
        claim(world, &world.buyer(), &hold_request(event, &[seats[7], seats[8], seats[9], seats[10]])).await;
    let rest = make(world, event, vec![rest]).await.remove(0).expect("the seats of rejected claims are free");
    let fences: Vec<i64> = seats[7..11].iter().map(|seat| fence_of(&rest, *seat)).collect();
    assert_eq!(fences, [1, 1, 1, 3], "a rejected claim that got the seat has raised its fence");
    world.check_invariants().await;
}

fn fence_of(reservation: &Reservation, seat: SeatId) -> i64 {
    reservation.seats.iter().find(|held| held.id == seat).expect("the seat belongs to the reservation").fence
}

/// Rejected holds look up their keys in one batch, and each gets its own answer.
pub(super) async fn batched_key_lookups_each_get_their_own_answer(world: &World) {
    let (event, seats) = world.event(2);
    let (first, other) = (world.buyer(), world.buyer());
    let held = world.hold(&first, keyed(event, &seats[..1], "a")).await;
    let user = |ctx: &Ctx| ctx.actor.user().unwrap();
    let asked = vec![
        (user(&other), "a".to_owned()),
        (user(&first), "a".to_owned()),
        (user(&first), "b".to_owned()),
        (user(&first), "a".to_owned()),
        (user(&first), "a' or '' = '\\\"".to_owned()),
    ];
    let known = Replaying(world.service.db.clone()).run((), asked).await;
    let known: Vec<_> = known.into_iter().map(|known| known.unwrap().map(|it| it.reservation.id)).collect();
    assert_eq!(known, [None, Some(held.id), None, Some(held.id), None]);
}

pub(super) async fn an_unreadable_row_does_not_fail_other_lookups(world: &World) {
    let (event, seats) = world.event(2);
    let (first, other) = (world.buyer(), world.buyer());
    let spoilt = world.hold(&first, keyed(event, &seats[..1], "a")).await;
    let sound = world.hold(&other, keyed(event, &seats[1..], "a")).await;
    let damaged: Result<u64, urr_db::Error> = world
        .service
        .db
        .write("test.unreadable", async |tx: &mut Tx<'_>| tx.execute(&UNREADABLE, &[&spoilt.id]).await)
        .await;
    assert_eq!(damaged.unwrap(), 1);
    let user = |ctx: &Ctx| ctx.actor.user().unwrap();
    let asked =
        vec![(user(&first), "a".to_owned()), (user(&other), "a".to_owned()), (user(&other), "b".to_owned())];
    let known = Replaying(world.service.db.clone()).run((), asked).await;
    let known: Vec<_> =
        known.into_iter().map(|it| it.map(|it| it.map(|it| it.reservation.id)).ok()).collect();
    assert_eq!(known, [None, Some(Some(sound.id)), Some(None)]);
}

/// A hold that is being paid for has no expiry. It is taken; other claims in the batch are not
/// affected.
pub(super) async fn a_seat_that_is_being_paid_for_is_taken(world: &World) {
    let (event, seats) = world.event(2);
    world.hold(&world.buyer(), hold_request(event, &seats[..1])).await;
    let endless: Result<u64, urr_db::Error> = world
        .service
        .db
        .write("test.endless", async |tx: &mut Tx<'_>| tx.execute(&ENDLESS, &[&event, &seats[0]]).await)
        .await;
    assert_eq!(endless.unwrap(), 1);
    let claims = vec![
        claim(world, &world.buyer(), &hold_request(event, &seats[..1])).await,
        claim(world, &world.buyer(), &hold_request(event, &seats[1..])).await,
    ];
    let answers = make(world, event, claims).await;
    assert_eq!(answers[0], Err(Error::SeatsTaken { seats: vec![seats[0]] }));
    assert!(answers[1].is_ok(), "{:?}", answers[1]);
}

/// Conflicting claims and retries in one batch: the first wins, and all get an answer.
pub(super) async fn of_conflicting_claims_the_first_wins(world: &World) {
    let (event, seats) = world.event(9);
    let twice = world.buyer();
    let claims = vec![
        claim(world, &world.buyer(), &hold_request(event, &seats[..2])).await,
        claim(world, &world.buyer(), &hold_request(event, &seats[1..3])).await,
        claim(world, &world.buyer(), &hold_request(event, &seats[1..2])).await,
        claim(world, &world.buyer(), &hold_request(event, &seats[2..3])).await,
        claim(world, &twice, &hold_request(event, &seats[3..6])).await,
        claim(world, &twice, &hold_request(event, &seats[6..8])).await,
        claim(world, &twice, &hold_request(event, &seats[8..])).await,
    ];
    let answers = make(world, event, claims).await;
    let taken = |seat: SeatId| Err(Error::SeatsTaken { seats: vec![seat] });
    assert_eq!(answers[0].as_ref().map(ids), Ok(sorted(&seats[..2])));
    assert_eq!((&answers[1], &answers[2]), (&taken(seats[1]), &taken(seats[1])));
    assert_eq!(
        answers[3].as_ref().map(ids),
        Ok(seats[2..3].to_vec()),
        "the seat is free after the rejected claim"
    );
    assert_eq!(answers[4].as_ref().map(ids), Ok(sorted(&seats[3..6])));
    assert_eq!(answers[5], Err(Error::UserLimit { max: 4, held: 3 }));
    assert_eq!(answers[6].as_ref().map(ids), Ok(seats[8..].to_vec()));
    world.check_invariants().await;
}

/// A colliding number fails the whole statement; the other claims succeed without it.
pub(super) async fn a_failing_claim_does_not_fail_its_batch(world: &World) {
    let (event, seats) = world.event(3);
    let first = world.hold(&world.buyer(), hold_request(event, &seats[..1])).await;
    let (mut bad, good) = (
        world.claim(&world.buyer(), &hold_request(event, &seats[1..2])).await,
        claim(world, &world.buyer(), &hold_request(event, &seats[2..])).await,
    );
    bad.reservation.number = first.number;
    let answers = claiming(world).run(event, vec![Arc::new(bad), good]).await;
    assert!(
        matches!(&answers[0], Err(failure) if failure.cause().is_some_and(urr_db::Error::is_unique_violation)),
        "{:?}",
        answers[0]
    );
    assert_eq!(answers[1].as_ref().map(ids).unwrap(), seats[2..]);
    world.check_invariants().await;
}
