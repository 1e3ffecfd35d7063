//! An event and its seats are made together or not at all.

use std::time::Duration;

use urr_contracts::catalog::Error;
use urr_db::{Tx, statements};

use crate::world::World;

statements! {
    /// Rows of every table that a creation fills. PostgreSQL's sum is numeric, so the counts are added as they are.
    ROWS = "
        select (select count(*) from events), (select count(*) from event_places), (select count(*) from seats),
               (select count(*) from ticket_types)";

    /// Makes the insertion of one late seat fail. SQLite cannot add a constraint to a table, PostgreSQL needs no trigger.
    TRIP = sqlite "
        create trigger trip before insert on seats when new.ordinal = 40000 begin select raise(abort, 'tripped'); end"
        postgres "alter table seats add constraint trip check (ordinal <> 40000)";

    /// Lets it pass again.
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

pub(crate) async fn a_creation_that_fails_half_way_leaves_nothing(world: &World) {
    let request = world.seated("만조", "grand_stadium").await;
    run(world, &TRIP).await;
    let failed = world.catalog.create_event(&world.admin(), request.clone()).await;
    assert_eq!(failed, Err(Error::Internal));
    assert_eq!(rows(world).await, [0, 0, 0, 0]);

    run(world, &UNTRIP).await;
    world.create(request).await;
    assert_eq!(rows(world).await, [1, 1, 50_000, 0], "so the trip was what stopped it");
}

pub(crate) async fn a_creation_whose_caller_goes_away_is_whole_or_absent(world: &World) {
    const SEATS: i64 = 4_900;
    let request = world.seated("만조", "sports_stadium").await;
    let (mut patience, mut gave_up) = (Duration::from_micros(500), 0);
    // Doubling from half a millisecond, the caller leaves at every stage until it stays for the end.
    loop {
        let admin = world.admin();
        let creation = world.catalog.create_event(&admin, request.clone());
        if tokio::time::timeout(patience, creation).await.is_ok() {
            break;
        }
        gave_up += 1;
        patience *= 2;
    }
    assert!(gave_up > 0, "a caller with half a millisecond leaves before 4,900 seats are on disk");
    let [events, places, seats, _] = rows(world).await;
    assert!((1..=gave_up + 1).contains(&events));
    assert_eq!((places, seats), (events, events * SEATS));
}
