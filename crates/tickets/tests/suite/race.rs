//! 200 buyers compete for ten seats. Exactly ten may win, on every engine that allows concurrent
//! writes. `src/holds/tests/race.rs` has the negative controls: check-then-act statements sell a
//! seat twice.

use std::{collections::HashMap, sync::Arc};

use urr_contracts::tickets::{Error, ReleaseHold, Reservation};
use urr_db::{Kind, Tx, statements};
use urr_kernel::{CommonError, ReservationId, SeatId, limits::HOLD};

use crate::world::{World, hold_request};

const BUYERS: usize = 200;
const SEATS: usize = 10;

statements! {
    /// Locks a seat without a condition.
    TAKE = "
        insert into seats (event_id, seat_id, state, reservation_id, fence) values ($1, $2, 'held', $3, 1)
        on conflict (event_id, seat_id) do update set reservation_id = excluded.reservation_id";
}

/// Each of 200 buyers claims one of ten seats, through four services: claims within one service are
/// batched and rarely race.
async fn race(world: &World) -> (Vec<Reservation>, Vec<Error>) {
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

/// Control of the deadlock counter: locking seats in different orders must be counted.
pub(crate) async fn locking_in_different_orders_deadlocks_and_is_counted(world: &World) {
    let (event, seats) = world.event(2);
    let both_have_one = tokio::sync::Barrier::new(2);
    let take = async |first: SeatId, second: SeatId| -> Result<(), urr_db::Error> {
        let (one, other): (ReservationId, ReservationId) = (world.ids.next(), world.ids.next());
        let taken = world.db.write("test.in_order", async |tx: &mut Tx<'_>| {
            tx.execute(&TAKE, &[&event, &first, &one]).await?;
            both_have_one.wait().await;
            tx.execute(&TAKE, &[&event, &second, &other]).await.map(|_| ())
        });
        taken.await
    };
    let (one, other) = tokio::join!(take(seats[0], seats[1]), take(seats[1], seats[0]));
    let failed: Vec<_> = [one, other].into_iter().filter_map(Result::err).collect();
    assert!(matches!(&failed[..], [error] if error.kind() == Kind::Retry), "{failed:?}");
    assert_eq!(world.deadlocks().await, 1);
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

pub(crate) async fn the_seat_limit_holds_across_processes(world: &World) {
    let (won, lost) = on_many_devices(world).await;
    assert_eq!(won, 4);
    for error in lost {
        assert!(matches!(error, Error::UserLimit { max: 4, .. }), "unexpected error: {error:?}");
    }
}

/// Holds expire, are released and swept by every process while their seats are claimed again, also
/// by the same buyers.
pub(crate) async fn concurrent_release_expiry_and_hold_keep_all_counts_correct(world: &World) {
    const CROWD: usize = 90;
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
            for sweep in urr_tickets::reconcilers(service) {
                at_once.spawn(async move { sweep.run().await.ok().and(None) });
            }
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
