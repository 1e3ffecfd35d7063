//! Expiry of holds, including holds that cannot be expired.

use std::time::Duration;

use urr_contracts::tickets::{Error, Reservation, ReservationOf, ReservationStatus};
use urr_db::{Tx, statements};
use urr_kernel::limits::HOLD;
use urr_rpc::Ctx;

use crate::world::{World, hold_request};

/// Holds that one run of the sweep expires in one transaction.
const BATCH: u32 = 100;

/// Batches that one run reads if they are full of holds that cannot be expired.
const MAX_LOOKS: u32 = 20;

statements! {
    /// Makes a reservation impossible to decode.
    UNREADABLE = "update reservations set event_card = '[]' where id = $1";

    /// Locks the row of a buyer.
    LOCK = postgres "select live_seats from buyers where event_id = $1 and user_id = $2 for update";

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
async fn damage(world: &World, held: &Reservation) {
    let broken: Result<u64, urr_db::Error> = world
        .db
        .write("test.unreadable", async |tx: &mut Tx<'_>| tx.execute(&UNREADABLE, &[&held.id]).await)
        .await;
    assert_eq!(broken.unwrap(), 1);
}

/// Unreadable rows must not block the others, even if there are more than one run reads.
pub(crate) async fn unreadable_rows_do_not_stop_the_sweep(world: &World) {
    let (event, seats) = world.event(2);
    let (first, second) = (world.buyer(), world.buyer());
    let spoilt = world.tickets.hold(&first, hold_request(event, &seats[..1])).await.unwrap();
    damage(world, &spoilt).await;
    let copied: Result<u64, urr_db::Error> = world
        .db
        .write("test.copies", async |tx: &mut Tx<'_>| {
            tx.execute(&COPIES, &[&spoilt.id, &i64::from(BATCH * MAX_LOOKS)]).await
        })
        .await;
    assert_eq!(copied.unwrap(), u64::from(BATCH * MAX_LOOKS));
    world.clock.advance(Duration::from_secs(1));
    let sound = world.hold(&second, event, &seats[1..]).await.unwrap();
    world.pass(HOLD).await;
    assert_eq!(world.sweep_once().await, 0, "the first run reads only unreadable rows");
    assert_eq!(world.sweep_once().await, 1, "the next run continues after them");
    assert_eq!(status(world, &second, &sound).await, ReservationStatus::Expired);
    let later = world.hold(&second, event, &seats[1..]).await.unwrap();
    world.pass(HOLD).await;
    world.sweep_once().await;
    assert_eq!(world.sweep_once().await, 1, "they are tried and skipped again");
    assert_eq!(status(world, &second, &later).await, ReservationStatus::Expired);
}

/// The unreadable hold still counts towards the limit; the rest of the limit is usable.
pub(crate) async fn a_buyer_with_an_unreadable_hold_can_still_buy(world: &World) {
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
pub(crate) async fn a_locked_row_does_not_stop_the_sweep(world: &World) {
    let (event, seats) = world.event(2);
    let (first, second) = (world.buyer(), world.buyer());
    let locked = world.hold(&first, event, &seats[..1]).await.unwrap();
    let free = world.hold(&second, event, &seats[1..]).await.unwrap();
    world.pass(HOLD).await;
    let swept: Result<u64, urr_db::Error> = world
        .db
        .write("test.locked", async |tx: &mut Tx<'_>| {
            tx.one(&LOCK, &[&event, &locked.user], |_| Ok(())).await?;
            Ok(world.sweep_once().await)
        })
        .await;
    assert_eq!(swept.unwrap(), 1);
    assert_eq!(status(world, &first, &locked).await, ReservationStatus::Pending);
    assert_eq!(status(world, &second, &free).await, ReservationStatus::Expired);
    world.sweep().await;
    assert_eq!(status(world, &first, &locked).await, ReservationStatus::Expired);
}

/// Rows that fail to expire must not block the others, even if they fill a whole batch.
pub(crate) async fn bad_rows_do_not_stop_the_sweep(world: &World) {
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
