//! 200 buyers compete for ten seats. Exactly ten may win, on every engine that allows concurrent
//! writes.
//!
//! The negative control replaces the conditional claim with check-then-act and must sell a seat
//! twice. This proves that the test can detect the fault it guards against.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use urr_contracts::tickets::{Error, ReleaseHold, Reservation};
use urr_db::{Kind, Tx, statements};
use urr_kernel::{CommonError, EventId, SeatId, UserId, limits::HOLD};

use crate::holds::claims::store::Wanted;
use crate::suite::{DbKind, GateKind, Transport, World, hold_request};

const BUYERS: usize = 200;
const SEATS: usize = 10;

statements! {
    /// The check of check-then-act.
    LOOK = "select fence from seats where event_id = $1 and seat_id = $2 and state <> 'available'";
    /// Seat count of a buyer.
    COUNTED = "select live_seats from buyers where event_id = $1 and user_id = $2";
    /// Adds to the count without a condition.
    COUNT = "
        insert into buyers (event_id, user_id, live_seats) values ($1, $2, $3)
        on conflict (event_id, user_id) do update set live_seats = buyers.live_seats + excluded.live_seats";
    /// The act of check-then-act: no condition.
    TAKE = "
        insert into seats (event_id, seat_id, state, reservation_id, fence, expires_at)
        values ($1, $2, 'held', $3, 1, $4)
        on conflict (event_id, seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
        returning fence";
}

/// Negative control of the claim.
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

/// Negative control of the seat count.
pub(crate) async fn look_then_count(
    tx: &mut Tx<'_>,
    event: EventId,
    buyers: &[(UserId, u32)],
    max: u32,
) -> Result<HashSet<UserId>, urr_db::Error> {
    let mut counted = HashSet::new();
    for (user, seats) in buyers {
        let held: Option<i64> = tx.optional(&COUNTED, &[&event, user], |row| row.get(0)).await?;
        if held.unwrap_or(0) + i64::from(*seats) <= i64::from(max) {
            tx.execute(&COUNT, &[&event, user, seats]).await?;
            counted.insert(*user);
        }
    }
    Ok(counted)
}

/// Each of 200 buyers claims one of ten seats, through four services: claims within one service are
/// batched and rarely race.
pub(crate) async fn race(world: &World) -> (Vec<Reservation>, Vec<Error>) {
    let (event, seats) = world.event(SEATS);
    let start = Arc::new(tokio::sync::Barrier::new(BUYERS));
    let mut buyers = tokio::task::JoinSet::new();
    for buyer in 0..BUYERS {
        let (tickets, ctx, start) = (world.anywhere(buyer), world.buyer(), Arc::clone(&start));
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

/// The largest number of winners of a single seat.
fn most_winners(won: &[Reservation]) -> usize {
    let mut winners: HashMap<SeatId, usize> = HashMap::new();
    for reservation in won {
        for seat in &reservation.seats {
            *winners.entry(seat.id).or_default() += 1;
        }
    }
    winners.into_values().max().unwrap_or(0)
}

/// Exactly one winner per seat; all others get `SeatsTaken`.
pub(crate) async fn exactly_one_buyer_wins_each_seat(world: &World) {
    let (won, lost) = race(world).await;
    assert_eq!((won.len(), most_winners(&won)), (SEATS, 1));
    for error in lost {
        assert!(matches!(error, Error::SeatsTaken { .. }), "unexpected error: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_gate_exactly_one_buyer_wins_each_seat() {
    let Some(world) = World::new(DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local).await else {
        return;
    };
    exactly_one_buyer_wins_each_seat(&world).await;
    world.check_invariants().await;
    assert_eq!(world.deadlocks().await, 0, "claims deadlocked");
}

/// Control of the deadlock counter: locking seats in different orders must be counted.
#[tokio::test(flavor = "multi_thread")]
async fn locking_in_different_orders_deadlocks_and_is_counted() {
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
async fn the_race_test_detects_check_then_act_claims() {
    let Some(world) = World::careless(DbKind::Postgres, GateKind::AlwaysOpen).await else { return };
    let (won, _) = race(&world).await;
    assert!(most_winners(&won) > 1, "the control sold no seat twice, so the race test proves nothing");
}

/// One buyer requests twenty seats from twenty devices. Returns how many succeeded, and the errors
/// of the others.
async fn on_many_devices(world: &World) -> (usize, Vec<Error>) {
    const DEVICES: usize = 20;
    let (event, seats) = world.event(DEVICES);
    let (buyer, start) = (world.buyer(), Arc::new(tokio::sync::Barrier::new(DEVICES)));
    let mut devices = tokio::task::JoinSet::new();
    for (device, seat) in seats.into_iter().enumerate() {
        let (tickets, buyer, start) = (world.anywhere(device), buyer.clone(), Arc::clone(&start));
        devices.spawn(async move {
            start.wait().await;
            tickets.hold(&buyer, hold_request(event, &[seat])).await
        });
    }
    let (won, lost): (Vec<_>, Vec<_>) = devices.join_all().await.into_iter().partition(Result::is_ok);
    (won.len(), lost.into_iter().filter_map(Result::err).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seat_limit_holds_across_processes() {
    let Some(world) = World::new(DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local).await else {
        return;
    };
    let (won, lost) = on_many_devices(&world).await;
    assert_eq!(won, 4);
    for error in lost {
        assert!(matches!(error, Error::UserLimit { max: 4, .. }), "unexpected error: {error:?}");
    }
    world.check_invariants().await;
    assert_eq!(world.deadlocks().await, 0, "claims deadlocked");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_race_test_detects_a_check_then_act_seat_limit() {
    let Some(world) = World::careless(DbKind::Postgres, GateKind::AlwaysOpen).await else { return };
    let mut most = 0;
    // On a loaded machine the devices may run in sequence by chance.
    for _ in 0..20 {
        most = most.max(on_many_devices(&world).await.0);
        if most > 4 {
            return;
        }
    }
    panic!("the control stayed within the limit ({most} seats), so the race test proves nothing");
}

/// Holds expire, are released and swept by every process while their seats are claimed again, also
/// by the same buyers.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_release_expiry_and_hold_keep_all_counts_correct() {
    const CROWD: usize = 90;
    let Some(world) = World::new(DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local).await else {
        return;
    };
    let (event, seats) = world.event(CROWD * 3);
    let buyers: Vec<_> = (0..CROWD).map(|_| world.buyer()).collect();
    let (mut got, mut to_give_back): (usize, Vec<Reservation>) = (0, Vec::new());
    for round in 0..30 {
        let mut at_once = tokio::task::JoinSet::new();
        for (at, reservation) in to_give_back.drain(..).enumerate() {
            let (tickets, owner) = (world.anywhere(at), world.as_user(reservation.user));
            at_once.spawn(async move {
                match tickets.release(&owner, ReleaseHold { reservation: reservation.id }).await {
                    Ok(_) | Err(Error::Common(CommonError::Unavailable)) => None,
                    Err(other) => panic!("unexpected error for an owner: {other:?}"),
                }
            });
        }
        for (at, buyer) in buyers.iter().enumerate() {
            // Three of the four allowed seats, so that old holds must end first; other neighbours
            // in each round.
            let from = (at * 3 + round * 7) % (seats.len() - 2);
            let (tickets, buyer, wanted) =
                (world.anywhere(at + round), buyer.clone(), seats[from..from + 3].to_vec());
            at_once.spawn(async move { told(tickets.hold(&buyer, hold_request(event, &wanted)).await) });
        }
        for service in world.elsewhere.iter().chain([&world.service]) {
            let service = Arc::clone(service);
            at_once.spawn(async move { service.expire_lapsed().await.ok().and(None) });
        }
        let held: Vec<Reservation> = at_once.join_all().await.into_iter().flatten().collect();
        world.check_invariants().await;
        got += held.len();
        // Every other hold is released in the next round, before or after its expiry.
        to_give_back.extend(held.into_iter().step_by(2));
        if round % 3 > 0 {
            world.clock.advance(HOLD);
        }
    }
    assert!(got > 2 * CROWD, "only {got} seats were claimed, so hardly any twice");
    assert_eq!(world.deadlocks().await, 0, "claims deadlocked");
}

/// The reservation, or `None` after an expected rejection. A loaded machine is an accepted cause.
fn told(answer: Result<Reservation, Error>) -> Option<Reservation> {
    match answer {
        Ok(reservation) => Some(reservation),
        Err(Error::SeatsTaken { .. } | Error::UserLimit { .. } | Error::Common(CommonError::Unavailable)) => {
            None
        }
        Err(other) => panic!("unexpected error for a buyer: {other:?}"),
    }
}
