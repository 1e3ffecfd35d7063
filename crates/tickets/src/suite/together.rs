//! Claims that are made together: each whole or not at all, whatever becomes of its neighbours.

use std::{sync::Arc, time::Duration};

use urr_contracts::tickets::{Error, HoldSeats, ReleaseHold, Reservation};
use urr_db::{Tx, statements};
use urr_jobs::Work as _;
use urr_kernel::{Clock, EventId, ReservationId, SeatId};
use urr_rpc::Ctx;

use super::{
    World, hold_request,
    stories::{ids, sorted},
    sweep::damage,
};
use crate::{
    holds::{
        self,
        claims::{
            Claim, Claiming, Way,
            store::{Seen, Wanted, claim as claim_seats},
        },
        replays::Replaying,
    },
    trouble::Trouble,
};

statements! {
    /// How many wait for a row that this transaction has locked.
    WAIT_FOR_US = postgres "
        select count(*) from pg_locks where not granted and transactionid = pg_current_xact_id()::xid";

    /// A hold without an end.
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
        Trouble::Refused(error) => error,
        trouble => panic!("{trouble:?}"),
    };
    let made = claiming.run(event, claims).await;
    made.into_iter().map(|answer| answer.map_err(refused)).collect()
}

/// Of those who are refused nothing stays behind: neither a seat nor a count nor a message.
pub(super) async fn neighbours_get_their_seats_and_whoever_is_refused_leaves_nothing(world: &World) {
    let (event, seats) = world.event(12);
    let (full, repeater) = (world.buyer(), world.buyer());
    world.hold(&full, event, &seats[..4]).await.unwrap();
    let keyed =
        |seats: &[SeatId]| HoldSeats { idempotency_key: Some("again".into()), ..hold_request(event, seats) };
    world.tickets.hold(&repeater, keyed(&seats[4..5])).await.unwrap();
    // Somebody had a seat before which one of them gets and gives back, so that its fence is not the first.
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
    assert_eq!(answers[3], Err(Error::Unavailable), "the key is known: the replay answers");
    assert_eq!(answers[4].as_ref().map(ids), Ok(sorted(&seats[11..])));
    // PostgreSQL shows messages only once no older transaction of the whole server is open, and those of one transaction together.
    let mut told = 0;
    urr_testkit::until(Duration::from_secs(30), async || {
        told = world.facts_of(event).await.len();
        told >= 6
    })
    .await;
    assert_eq!(told, 6, "two of them about the one who had a seat before");
    world.check_invariants().await;

    let rest =
        claim(world, &world.buyer(), &hold_request(event, &[seats[7], seats[8], seats[9], seats[10]])).await;
    let rest = make(world, event, vec![rest]).await.remove(0).expect("what was refused is free");
    let fences: Vec<i64> = seats[7..11].iter().map(|seat| fence_of(&rest, *seat)).collect();
    assert_eq!(fences, [1, 1, 1, 3], "whoever gives a seat back has had it");
    world.check_invariants().await;
}

fn fence_of(reservation: &Reservation, seat: SeatId) -> i64 {
    reservation.seats.iter().find(|held| held.id == seat).expect("it is one of its seats").fence
}

/// Whoever is refused asks what their key was used for, and all of them get their own answer from one look.
pub(super) async fn those_who_ask_together_each_get_what_their_own_key_was_used_for(world: &World) {
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

    // Many losers of one seat, and among them the one who has it and asks again.
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

/// For a world of its own: it is left broken.
pub(super) async fn a_row_that_nobody_can_read_costs_others_no_answer(world: &World) {
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

/// A hold that is being paid for has no end; it is somebody's, and its neighbours are not concerned.
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

/// Rivals and repeats in one batch: whoever came first has it, and everybody is answered.
pub(super) async fn of_those_who_want_the_same_the_first_has_it(world: &World) {
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
    assert_eq!(answers[3].as_ref().map(ids), Ok(seats[2..3].to_vec()), "nobody has it in the end");
    assert_eq!(answers[4].as_ref().map(ids), Ok(sorted(&seats[3..6])));
    assert_eq!(answers[5], Err(Error::UserLimit { max: 4, held: 3 }));
    assert_eq!(answers[6].as_ref().map(ids), Ok(seats[8..].to_vec()));
    world.check_invariants().await;
}

/// A number that is taken fails the whole statement: the neighbours are made without it.
pub(super) async fn one_that_cannot_be_made_costs_its_neighbours_nothing(world: &World) {
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
        matches!(&answers[0], Err(Trouble::Db(error)) if error.is_unique_violation()),
        "{:?}",
        answers[0]
    );
    assert_eq!(answers[1].as_ref().map(ids).unwrap(), seats[2..]);
    world.check_invariants().await;
}

/// Everybody at once: those who find their seats free have them, and the sums are right.
pub(super) async fn a_crowd_is_served_in_batches(world: &World) {
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
    assert_eq!(held.len(), count, "a seat was given twice");
    assert!(count > 0);
    world.check_invariants().await;
}

/// A transaction of somebody else that is given up in the end, and what it did.
pub(super) async fn meanwhile<T>(
    world: &World,
    body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, Trouble>,
) -> T {
    let mut done = None;
    let given_up: Result<(), Trouble> = world
        .service
        .db
        .write("test.meanwhile", async |tx: &mut Tx<'_>| {
            done = Some(body(tx).await?);
            Err(Trouble::Refused(Error::Unavailable))
        })
        .await;
    assert!(matches!(given_up, Err(Trouble::Refused(_))), "{given_up:?}");
    done.unwrap()
}

/// Takes a seat as another process would.
async fn take(world: &World, tx: &mut Tx<'_>, event: EventId, seat: SeatId) -> Result<usize, urr_db::Error> {
    let (reservation, now) = (world.ids.next::<ReservationId>(), world.clock.now());
    let wanted = Wanted { seat, reservation, expires_at: now.after(Duration::from_mins(5)) };
    Ok(claim_seats(tx, event, &[wanted], &Seen::default(), now).await?.len())
}

/// Neighbours are made without it, as long as they can be expected to wait for that.
pub(super) async fn a_row_that_somebody_keeps_locked_costs_its_neighbours_nothing(world: &World) {
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
        assert!(matches!(&answers[0], Err(Trouble::Db(error)) if error.is_blocked()), "{:?}", answers[0]);
        // The round and the first one alone have waited for the lock by then, which takes longer than a buyer may wait.
        assert_eq!(answers[1].is_ok(), in_time, "{:?}", answers[1]);
        world.check_invariants().await;
    }
}

/// A buyer who asks twice keeps nothing locked while the second wish waits, or two processes could wait for each other.
pub(super) async fn whoever_asks_twice_waits_with_nothing_locked(world: &World) {
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
                answers = &mut run => panic!("not without the seat: {answers:?}"),
                waiting = tx.one(&WAIT_FOR_US, &[], |row| row.get::<i64>(0)) => if waiting? > 0 { break },
            }
        }
        Ok(take(world, tx, event, high).await?)
    })
    .await;
    assert_eq!(got, 0, "it is the buyer's already");
    assert!(run.await.iter().all(Result::is_ok), "and the second wish comes true once the other gives up");
    world.check_invariants().await;
}
