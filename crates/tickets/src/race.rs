//! Two hundred buyers want ten seats. Exactly ten may win, on every engine that can race at all.
//!
//! The negative control replaces the conditional claim by check-then-act and must sell seats twice: it proves that the
//! test can see the fault it guards against.

use std::{collections::HashMap, sync::Arc};

use urr_contracts::tickets::{Error, Reservation, Tickets};
use urr_db::{Kind, Tx, statements};
use urr_kernel::{EventId, SeatId};

use crate::holds::claims::store::Wanted;
use crate::suite::{DbKind, GateKind, Transport, World, hold_request};

const BUYERS: usize = 200;
const SEATS: usize = 10;

statements! {
    /// The check of check-then-act.
    LOOK = "select fence from seats where event_id = $1 and seat_id = $2 and state <> 'available'";
    /// The act of check-then-act: no condition.
    TAKE = "
        insert into seats (event_id, seat_id, state, reservation_id, fence, expires_at)
        values ($1, $2, 'held', $3, 1, $4)
        on conflict (event_id, seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
        returning fence";
}

/// What the claim must never become.
pub(crate) async fn check_then_act(
    tx: &mut Tx<'_>,
    event: EventId,
    wanted: &[Wanted],
) -> Result<Vec<(SeatId, i64)>, urr_db::Error> {
    let mut claimed = Vec::new();
    for Wanted { seat, reservation, expires_at } in wanted {
        let taken: Option<i64> = tx.optional(&LOOK, &[&event, seat], |row| row.get(0)).await?;
        if taken.is_none() {
            let fence = tx.one(&TAKE, &[&event, seat, reservation, expires_at], |row| row.get(0)).await?;
            claimed.push((*seat, fence));
        }
    }
    Ok(claimed)
}

/// Lets everybody go for one seat each, twenty buyers a seat, in four processes: within one they rarely meet.
pub(crate) async fn race(world: &World) -> (Vec<Reservation>, Vec<Error>) {
    let (event, seats) = world.event(SEATS);
    let start = Arc::new(tokio::sync::Barrier::new(BUYERS));
    let mut buyers = tokio::task::JoinSet::new();
    for buyer in 0..BUYERS {
        let elsewhere = world.elsewhere.get(buyer % (world.elsewhere.len() + 1));
        let tickets = elsewhere
            .map_or_else(|| Arc::clone(&world.tickets), |other| Arc::clone(other) as Arc<dyn Tickets>);
        let (ctx, start) = (world.buyer(), Arc::clone(&start));
        let request = hold_request(event, &[seats[(buyer / 4) % SEATS]]);
        buyers.spawn(async move {
            start.wait().await;
            tickets.hold(&ctx, request).await
        });
    }
    let (mut won, mut lost) = (Vec::new(), Vec::new());
    while let Some(outcome) = buyers.join_next().await {
        match outcome.unwrap() {
            Ok(reservation) => won.push(reservation),
            Err(error) => lost.push(error),
        }
    }
    (won, lost)
}

/// The largest number of winners any one seat has.
fn most_winners(won: &[Reservation]) -> usize {
    let mut winners: HashMap<SeatId, usize> = HashMap::new();
    for reservation in won {
        for seat in &reservation.seats {
            *winners.entry(seat.id).or_default() += 1;
        }
    }
    winners.into_values().max().unwrap_or(0)
}

/// Exactly one winner per seat, and every loser is told that the seat is taken.
pub(crate) async fn exactly_one_buyer_wins_each_seat(world: &World) {
    let (won, lost) = race(world).await;
    assert_eq!((won.len(), most_winners(&won)), (SEATS, 1));
    for error in lost {
        assert!(matches!(error, Error::SeatsTaken { .. }), "a loser was told {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_gate_the_database_alone_lets_exactly_one_buyer_win_each_seat() {
    let Some(world) = World::new(DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local).await else {
        return;
    };
    exactly_one_buyer_wins_each_seat(&world).await;
    world.check_invariants().await;
    assert_eq!(world.deadlocks().await, 0, "buyers waited for each other");
}

/// The control of the count of deadlocks: what claims in one order never do.
#[tokio::test(flavor = "multi_thread")]
async fn seats_taken_in_two_orders_deadlock_and_the_count_sees_it() {
    let Some(world) = World::new(DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local).await else {
        return;
    };
    let (event, seats) = world.event(2);
    let both_have_one = tokio::sync::Barrier::new(2);
    let take = async |first: SeatId, second: SeatId| -> Result<(), urr_db::Error> {
        let wanted = |seat| Wanted { seat, reservation: world.ids.next(), expires_at: world.clock.now() };
        let taken = world.service.db.write("test.in_order", async |tx: &mut Tx<'_>| {
            check_then_act(tx, event, &[wanted(first)]).await?;
            both_have_one.wait().await;
            check_then_act(tx, event, &[wanted(second)]).await.map(|_| ())
        });
        taken.await
    };
    let (one, other) = tokio::join!(take(seats[0], seats[1]), take(seats[1], seats[0]));
    let failed: Vec<_> = [one, other].into_iter().filter_map(Result::err).collect();
    assert!(matches!(&failed[..], [error] if error.kind() == Kind::Retry), "{failed:?}");
    assert_eq!(world.deadlocks().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_then_act_sells_seats_twice_and_the_race_sees_it() {
    let Some(world) = World::careless(DbKind::Postgres, GateKind::AlwaysOpen).await else { return };
    let (won, _) = race(&world).await;
    assert!(most_winners(&won) > 1, "the control sold no seat twice, so the race proves nothing");
}
