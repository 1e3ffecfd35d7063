//! Batched claims: each is atomic, whatever happens to the others in its batch.

use std::{sync::Arc, time::Duration};

use urr_contracts::tickets::{Error, HoldSeats, ReleaseHold, Reservation};
use urr_db::{Tx, statements};
use urr_jobs::Work as _;
use urr_kernel::{Clock, CommonError, EventId, ReservationId, SeatId};
use urr_rpc::Ctx;

use super::{
    World, hold_request,
    stories::{ids, sorted},
    sweep::damage,
};
use crate::{
    Failure,
    holds::{
        self,
        claims::{
            Claim, Claiming, Way,
            store::{Seen, Wanted, claim as claim_seats},
        },
        replays::Replaying,
    },
};

statements! {
    /// Number of transactions waiting for a row that this one has locked.
    WAIT_FOR_US = postgres "
        select count(*) from pg_locks where not granted and transactionid = pg_current_xact_id()::xid";

    /// Removes the expiry of a hold, as during payment.
    ENDLESS = "update seats set expires_at = null where event_id = $1 and seat_id = $2 and state = 'held'";
}

async fn claim(world: &World, buyer: &Ctx, request: &HoldSeats) -> Arc<Claim> {
    Arc::new(holds::planned(&world.service, buyer, request).await.unwrap())
}

fn claiming(world: &World) -> Claiming {
    Claiming { db: world.service.db.clone(), clock: world.clock.clone(), way: Way::Conditional }
}

async fn make(world: &World, event: EventId, claims: Vec<Arc<Claim>>) -> Vec<Result<Reservation, Error>> {
    let claiming = claiming(world);
    let refused = |trouble| match trouble {
        Failure::Refused(error) => error,
        failed @ Failure::Failed { .. } => panic!("{failed:?}"),
    };
    let made = claiming.run(event, claims).await;
    made.into_iter().map(|answer| answer.map_err(refused)).collect()
}

/// A rejected claim leaves nothing behind: no seat, no count, no message.
pub(super) async fn rejected_claims_leave_nothing_and_others_in_the_batch_succeed(world: &World) {
    let (event, seats) = world.event(12);
    let (full, repeater) = (world.buyer(), world.buyer());
    world.hold(&full, event, &seats[..4]).await.unwrap();
    let keyed =
        |seats: &[SeatId]| HoldSeats { idempotency_key: Some("again".into()), ..hold_request(event, seats) };
    world.tickets.hold(&repeater, keyed(&seats[4..5])).await.unwrap();
    // One seat was held and released before, so that its fence is not the first.
    let earlier = world.buyer();
    let had = world.hold(&earlier, event, &seats[10..11]).await.unwrap();
    world.tickets.release(&earlier, ReleaseHold { reservation: had.id }).await.unwrap();

    let claims = vec![
        claim(world, &world.buyer(), &hold_request(event, &seats[5..7])).await,
        claim(world, &world.buyer(), &hold_request(event, &[seats[7], seats[0], seats[8]])).await,
        claim(world, &full, &hold_request(event, &seats[9..10])).await,
        claim(world, &repeater, &keyed(&seats[10..11])).await,
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
    // PostgreSQL exposes messages only when no older transaction is open on the server, and those
    // of one transaction at the same time.
    let mut told = 0;
    urr_testkit::until(Duration::from_secs(30), async || {
        told = world.facts_of(event).await.len();
        told >= 6
    })
    .await;
    assert_eq!(told, 6, "including two about the earlier hold");
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
    let keyed =
        |key: &str| HoldSeats { idempotency_key: Some(key.into()), ..hold_request(event, &seats[..1]) };
    let (first, other) = (world.buyer(), world.buyer());
    let held = world.tickets.hold(&first, keyed("a")).await.unwrap();
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

    // Many rejected claims of one seat, and among them a retry by its holder.
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (tickets, buyer, request) = (Arc::clone(&world.tickets), world.buyer(), keyed("a"));
        crowd.spawn(async move { tickets.hold(&buyer, request).await });
    }
    let again = world.tickets.hold(&first, keyed("a")).await;
    assert_eq!(again.map(|again| again.id), Ok(held.id));
    let taken = Error::SeatsTaken { seats: vec![seats[0]] };
    for lost in crowd.join_all().await {
        assert_eq!(lost.map(|got| got.id), Err(taken.clone()));
    }
}

/// Needs its own world, which it leaves broken.
pub(super) async fn an_unreadable_row_does_not_fail_other_lookups(world: &World) {
    let (event, seats) = world.event(2);
    let keyed =
        |seats: &[SeatId]| HoldSeats { idempotency_key: Some("a".into()), ..hold_request(event, seats) };
    let (first, other) = (world.buyer(), world.buyer());
    let spoilt = world.tickets.hold(&first, keyed(&seats[..1])).await.unwrap();
    let sound = world.tickets.hold(&other, keyed(&seats[1..])).await.unwrap();
    damage(world, &spoilt).await;
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
    world.hold(&world.buyer(), event, &seats[..1]).await.unwrap();
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
    let first = world.hold(&world.buyer(), event, &seats[..1]).await.unwrap();
    let (mut bad, good) = (
        holds::planned(&world.service, &world.buyer(), &hold_request(event, &seats[1..2])).await.unwrap(),
        claim(world, &world.buyer(), &hold_request(event, &seats[2..])).await,
    );
    bad.reservation.number = first.number;
    let claiming = claiming(world);
    let answers = claiming.run(event, vec![Arc::new(bad), good]).await;
    assert!(
        matches!(&answers[0], Err(failure) if failure.cause().is_some_and(urr_db::Error::is_unique_violation)),
        "{:?}",
        answers[0]
    );
    assert_eq!(answers[1].as_ref().map(ids).unwrap(), seats[2..]);
    world.check_invariants().await;
}

/// Claims that find their seats free succeed, and all totals are correct.
pub(super) async fn concurrent_claims_are_batched(world: &World) {
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
    world.check_invariants().await;
}

/// Runs `body` in a transaction that is rolled back at the end, and returns its result.
pub(super) async fn meanwhile<T>(
    world: &World,
    body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, Failure>,
) -> T {
    let mut done = None;
    let given_up: Result<(), Failure> = world
        .service
        .db
        .write("test.meanwhile", async |tx: &mut Tx<'_>| {
            done = Some(body(tx).await?);
            Err(Failure::Refused(Error::Common(CommonError::Unavailable)))
        })
        .await;
    assert!(matches!(given_up, Err(Failure::Refused(_))), "{given_up:?}");
    done.unwrap()
}

/// Claims a seat as another process would.
async fn take(world: &World, tx: &mut Tx<'_>, event: EventId, seat: SeatId) -> Result<usize, urr_db::Error> {
    let (reservation, now) = (world.ids.next::<ReservationId>(), world.clock.now());
    let wanted = Wanted { seat, reservation, expires_at: now.after(Duration::from_mins(5)) };
    Ok(claim_seats(tx, event, &[wanted], &Seen::default(), now).await?.len())
}

/// The other claims of the batch succeed if the deadline allows.
pub(super) async fn a_locked_row_does_not_fail_other_claims_of_the_batch(world: &World) {
    let (day, today) = (Duration::from_hours(24), Clock::system());
    for (clock, in_time) in [(world.clock.clone(), true), (today.clone(), false)] {
        // On sale by both clocks.
        let (earlier, later) = (world.clock.now().min(today.now()), world.clock.now().max(today.now()));
        let (event, seats) = world.event_on_sale(2, earlier.before(day), later.after(day));
        let mut claims = Vec::new();
        for seat in seats.chunks(1) {
            claims.push(claim(world, &world.buyer(), &hold_request(event, seat)).await);
        }
        let answers = meanwhile(world, async |tx: &mut Tx<'_>| {
            assert_eq!(take(world, tx, event, seats[0]).await?, 1);
            Ok(Claiming { clock, ..claiming(world) }.run(event, claims).await)
        })
        .await;
        assert!(
            matches!(&answers[0], Err(failure) if failure.cause().is_some_and(urr_db::Error::is_blocked)),
            "{:?}",
            answers[0]
        );
        // By then the batch and the first claim alone have waited for the lock, longer than the
        // deadline allows.
        assert_eq!(answers[1].is_ok(), in_time, "{:?}", answers[1]);
        world.check_invariants().await;
    }
}

/// A buyer's second claim must wait without locks; otherwise two processes could deadlock.
pub(super) async fn a_second_claim_of_a_buyer_waits_without_locks(world: &World) {
    let (event, mut seats) = world.event(2);
    seats.sort_unstable();
    let [low, high] = seats[..] else { unreachable!("two seats") };
    let twice = world.buyer();
    let claims = vec![
        claim(world, &twice, &hold_request(event, &[high])).await,
        claim(world, &twice, &hold_request(event, &[low])).await,
    ];
    let making = claiming(world);
    let mut run = Box::pin(making.run(event, claims));
    let got = meanwhile(world, async |tx: &mut Tx<'_>| {
        assert_eq!(take(world, tx, event, low).await?, 1);
        loop {
            tokio::select! {
                answers = &mut run => panic!("finished although the seat is locked: {answers:?}"),
                waiting = tx.one(&WAIT_FOR_US, &[], |row| row.get::<i64>(0)) => if waiting? > 0 { break },
            }
        }
        Ok(take(world, tx, event, high).await?)
    })
    .await;
    assert_eq!(got, 0, "the buyer already holds it");
    assert!(
        run.await.iter().all(Result::is_ok),
        "the second claim succeeds after the other transaction rolls back"
    );
    world.check_invariants().await;
}
