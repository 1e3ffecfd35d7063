//! What only the in-process bus does: it marks and purges the outbox itself, and its statements are its own.

use std::time::Duration;

use urr_bus::{Bus, Error, Failure, admin};
use urr_db::{
    Db, Tx,
    outbox::{self, KEEP_PUBLISHED, Position},
};
use urr_testkit::{fresh_postgres, fresh_sqlite, until, within};

use crate::{
    cases::backlog,
    rig::{Backend, LEDGER, LIMIT, Rig, STATEMENTS, quick},
};

async fn rows(rig: &Rig) -> usize {
    let read = async |tx: &mut Tx<'_>| outbox::read_after(tx, Position::START, 100).await;
    rig.shop().read("test.rows", read).await.unwrap_or_else(|error: urr_db::Error| panic!("{error:?}")).len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_every_group_has_passed_is_marked_and_a_week_later_purged() {
    within(LIMIT, async {
        let rig = Rig::new(Backend::InProcessSqlite).await.unwrap();
        let (quick, slow) = (rig.group(), rig.group());
        let tasks = rig.start(&[&quick]);
        rig.publish_many(1, 3).await;
        quick.has_effects(3).await;
        until(LIMIT, async || backlog(&rig).await == 0).await;
        tasks.shutdown(LIMIT).await.unwrap();

        // A group that joins later reads what is still there, and holds the mark back until it has.
        let tasks = rig.start(&[&quick, &slow]);
        slow.has_effects(3).await;
        rig.publish_one("a", "more").await;
        slow.has_effects(4).await;
        quick.has_effects(4).await;
        until(LIMIT, async || backlog(&rig).await == 0).await;
        assert_eq!(rows(&rig).await, 4, "published rows are kept");
        rig.clock.advance(KEEP_PUBLISHED + Duration::from_secs(1));
        until(LIMIT, async || rows(&rig).await == 0).await;
        rig.publish_one("a", "later").await;
        quick.has_effects(5).await;
        tasks.shutdown(LIMIT).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_one_group_has_not_passed_is_not_marked() {
    within(LIMIT, async {
        let mut rig = Rig::new(Backend::InProcessSqlite).await.unwrap();
        // The second group passes one row and does not give up on the next within the test.
        rig.limits.retries = [LIMIT; 3];
        let quick = rig.group();
        let stuck = rig.group().that(|message, _| match () {
            () if message.payload.contains(r#""note":"0""#) => Ok(()),
            () => Err(Failure::Retry("always".into())),
        });
        rig.publish_many(1, 3).await;
        let tasks = rig.start(&[&quick, &stuck]);
        quick.has_effects(3).await;
        until(LIMIT, async || backlog(&rig).await == 2).await;
        let waiting = admin::backlog(&[rig.source()]).await.unwrap()[0].1;
        assert_eq!(waiting.oldest, Some(rig.clock.now()));
        tasks.shutdown(LIMIT).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_commits_late_is_not_skipped() {
    let Some(rig) = Rig::new(Backend::InProcessPostgres).await else { return };
    within(LIMIT, async {
        let probe = rig.group();
        let tasks = rig.start(&[&probe]);
        rig.publish_one("a", "first").await;
        probe.has_effects(1).await;
        let (early, shop) = (rig.message("b", "early number, late commit"), rig.shop());
        shop.write("test.late", async |tx: &mut Tx<'_>| {
            outbox::append(tx, &early).await?;
            // The higher number commits first, and the bus hears of it.
            rig.publish_one("c", "late number, early commit").await;
            tokio::time::sleep(rig.limits.poll).await;
            Ok::<(), urr_db::Error>(())
        })
        .await
        .unwrap();
        probe.has_effects(3).await;
        tasks.shutdown(LIMIT).await.unwrap();
        let mut notes = probe.notes().await;
        notes.sort();
        assert_eq!(notes, ["early number, late commit", "first", "late number, early commit"]);
    })
    .await;
}

#[tokio::test]
async fn two_consumers_of_one_group_are_refused() {
    let rig = Rig::new(Backend::InProcessSqlite).await.unwrap();
    let probe = rig.group();
    let tasks = urr_jobs::Tasks::new();
    let both = [probe.as_consumer(), probe.as_consumer()];
    let refused = Bus::in_process(quick()).start(&[rig.source()], &both, &tasks, &rig.clock);
    assert!(matches!(refused, Err(Error::SameGroup(group)) if group == probe.group));
}

#[tokio::test]
async fn every_statement_is_good_on_both_engines() {
    let (_dir, sqlite) = fresh_sqlite(&LEDGER).await;
    let postgres = fresh_postgres(&LEDGER).await;
    let databases: Vec<&Db> = std::iter::once(&sqlite).chain(&postgres).collect();
    urr_db::check_statements(&databases, urr_bus::statements()).await.unwrap();
    urr_db::check_statements(&databases, STATEMENTS).await.unwrap();
}
