//! Batches of claims while other transactions keep rows locked.

use std::time::Duration;

use urr_contracts::tickets::Error;
use urr_db::{Tx, statements};
use urr_jobs::Work as _;
use urr_kernel::{Clock, CommonError, EventId, ReservationId, SeatId};

use super::{
    World,
    batches::{claim, claiming},
    hold_request,
};
use crate::{
    Failure,
    holds::claims::{
        Claiming,
        store::{SeatStates, Wanted, claim as claim_seats},
    },
};

statements! {
    /// Number of transactions waiting for a row that this one has locked.
    WAIT_FOR_US = postgres "
        select count(*) from pg_locks where not granted and transactionid = pg_current_xact_id()::xid";
}

/// Runs `body` in a transaction that is rolled back at the end, and returns its result.
async fn meanwhile<T>(world: &World, body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, Failure>) -> T {
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
    Ok(claim_seats(tx, event, &[wanted], &SeatStates::default(), now).await?.len())
}

/// The other claims of the batch succeed if the deadline allows.
pub(super) async fn a_locked_row_does_not_fail_other_claims_of_the_batch(world: &World) {
    let (day, today) = (Duration::from_hours(24), Clock::system());
    for (clock, in_time) in [(world.clock.clone(), true), (today.clone(), false)] {
        // On sale by both clocks.
        let (earlier, later) = (world.clock.now().min(today.now()), world.clock.now().max(today.now()));
        let (event, seats) = world.event_on_sale(2, (earlier.before(day), later.after(day)));
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
