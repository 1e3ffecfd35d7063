//! An event and its seats are created in one transaction.

use std::time::Duration;

use urr_contracts::catalog::Error;
use urr_db::{Tx, statements};
use urr_kernel::CommonError;

use crate::world::World;

statements! {
    /// Row counts of the tables that creating an event fills.
    ROWS = "
        select (select count(*) from events), (select count(*) from event_places), (select count(*) from seats),
               (select count(*) from ticket_types)";

    /// Makes the insert of seat 40,000 fail. SQLite cannot add a constraint to an existing table,
    /// so it gets a trigger.
    TRIP = sqlite "
        create trigger trip before insert on seats when new.ordinal = 40000 begin select raise(abort, 'tripped'); end"
        postgres "alter table seats add constraint trip check (ordinal <> 40000)";

    /// Removes the failure again.
    UNTRIP = sqlite "drop trigger trip" postgres "alter table seats drop constraint trip";
}

async fn rows(world: &World) -> [i64; 4] {
    let read: Result<_, urr_db::Error> = world
        .db
        .read("test.rows", async |tx: &mut Tx<'_>| {
            tx.one(&ROWS, &[], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])).await
        })
        .await;
    read.unwrap()
}

async fn run(world: &World, sql: &'static urr_db::Sql) {
    let done: Result<_, urr_db::Error> =
        world.db.write("test.run", async |tx: &mut Tx<'_>| tx.execute(sql, &[]).await).await;
    done.unwrap();
}

pub(crate) async fn a_failed_creation_is_rolled_back(world: &World) {
    let request = world.seated("만조", "grand_stadium").await;
    run(world, &TRIP).await;
    let failed = world.catalog.create_event(&world.admin(), request.clone()).await;
    assert_eq!(failed, Err(Error::Common(CommonError::Internal)));
    assert_eq!(rows(world).await, [0, 0, 0, 0]);

    run(world, &UNTRIP).await;
    world.create(request).await;
    assert_eq!(rows(world).await, [1, 1, 50_000, 0], "without the constraint the same request succeeds");
}

pub(crate) async fn a_creation_abandoned_by_its_caller_is_complete_or_absent(world: &World) {
    const SEATS: i64 = 4_900;
    let request = world.seated("만조", "sports_stadium").await;
    let (mut patience, mut gave_up) = (Duration::from_micros(500), 0);
    // The timeout doubles from 0.5 ms, so the caller gives up at every stage until a creation
    // completes.
    loop {
        let admin = world.admin();
        let creation = world.catalog.create_event(&admin, request.clone());
        if tokio::time::timeout(patience, creation).await.is_ok() {
            break;
        }
        gave_up += 1;
        patience *= 2;
    }
    assert!(gave_up > 0, "0.5 ms is too short to store 4,900 seats");
    let [events, places, seats, _] = rows(world).await;
    assert!((1..=gave_up + 1).contains(&events));
    assert_eq!((places, seats), (events, events * SEATS));
}
