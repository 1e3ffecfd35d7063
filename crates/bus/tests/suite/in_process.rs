//! Tests of the in-process bus only: marking, purging, restored databases, SQL statements.

use std::time::Duration;

use urr_bus::{Bus, Error, Failure, Message, admin};
use urr_db::{
    Db, Tx,
    dead_letters::{self, DeadLetter},
    outbox::{self, KEEP_PUBLISHED, Position},
};
use urr_testkit::{fresh_postgres, fresh_sqlite, until, within};

use crate::{
    cases::backlog,
    rig::{self, Backend, LEDGER, LIMIT, Rig, SOON, quick},
};

async fn rows(rig: &Rig) -> usize {
    let read = async |tx: &mut Tx<'_>| outbox::read_after(tx, Position::START, 100).await;
    rig.shop().read("test.rows", read).await.unwrap_or_else(|error: urr_db::Error| panic!("{error:?}")).len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processed_rows_are_marked_and_purged_after_a_week() {
    within(LIMIT, async {
        let rig = Rig::new(Backend::InProcessSqlite).await.unwrap();
        let (quick, slow) = (rig.group(), rig.group());
        let tasks = rig.start(&[&quick]);
        rig.publish_many(1, 3).await;
        quick.has_effects(3).await;
        until(SOON, async || backlog(&rig).await == 0).await;
        tasks.shutdown(SOON).await.unwrap();

        // A new group reads what is still kept, and rows stay unmarked until it has.
        let tasks = rig.start(&[&quick, &slow]);
        slow.has_effects(3).await;
        rig.publish_one("a", "more").await;
        slow.has_effects(4).await;
        quick.has_effects(4).await;
        until(SOON, async || backlog(&rig).await == 0).await;
        assert_eq!(rows(&rig).await, 4, "published rows are kept");
        rig.clock.advance(KEEP_PUBLISHED + Duration::from_secs(1));
        until(SOON, async || rows(&rig).await == 0).await;
        rig.publish_one("a", "later").await;
        quick.has_effects(5).await;
        tasks.shutdown(SOON).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_is_not_marked_until_every_group_has_processed_it() {
    within(LIMIT, async {
        let mut rig = Rig::new(Backend::InProcessSqlite).await.unwrap();
        // The second group applies one row and retries the next for the rest of the test.
        rig.limits.retries = [LIMIT; 3];
        let quick = rig.group();
        let stuck = rig.group().that(|message, _| match () {
            () if message.payload.contains(r#""note":"0""#) => Ok(()),
            () => Err(Failure::Retry("always".into())),
        });
        rig.publish_many(1, 3).await;
        let tasks = rig.start(&[&quick, &stuck]);
        quick.has_effects(3).await;
        until(SOON, async || backlog(&rig).await == 2).await;
        let waiting = admin::backlog(&[rig.source()]).await.unwrap()[0].1;
        assert_eq!(waiting.oldest, Some(rig.clock.now()));
        tasks.shutdown(SOON).await.unwrap();
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
            // The higher sequence number commits first, and the bus is notified.
            rig.publish_one("c", "late number, early commit").await;
            tokio::time::sleep(rig.limits.poll).await;
            Ok::<(), urr_db::Error>(())
        })
        .await
        .unwrap();
        probe.has_effects(3).await;
        tasks.shutdown(SOON).await.unwrap();
        let mut notes = probe.notes().await;
        notes.sort();
        assert_eq!(notes, ["early number, late commit", "first", "late number, early commit"]);
    })
    .await;
}

urr_db::statements! {
    /// An offset as after a restore on another server, or of an older file.
    FAR_AHEAD = sqlite "update bus_offsets set seq = 1000000 where consumer_group = $1"
      postgres "update bus_offsets set xid = 4611686018427387904 where consumer_group = $1";
    /// All rows purged.
    FORGET_ROWS = "delete from outbox";
    /// Sequence numbers of a new file.
    FORGET_NUMBERS = sqlite "update sqlite_sequence set seq = 0 where name = 'outbox'";
    /// Rows restored from another server's dump.
    FROM_ELSEWHERE = postgres "update outbox set xid = '4611686018427387904'::xid8";
}

/// One group's offset is beyond the end of the log, another's is within it.
async fn a_restored_log_is_reread_without_duplicate_effects(backend: Backend) {
    let Some(rig) = Rig::new(backend).await else { return };
    within(LIMIT, async {
        let (ahead, behind) = (rig.group(), rig.group());
        let tasks = rig.start(&[&ahead, &behind]);
        rig.publish_many(1, 3).await;
        ahead.has_effects(3).await;
        behind.has_effects(3).await;
        tasks.shutdown(SOON).await.unwrap();

        let unread = rig.publish_one("key-0", "unread").await;
        let far = async |tx: &mut Tx<'_>| tx.execute(&FAR_AHEAD, &[&ahead.group]).await;
        assert_eq!(rig.ledger().write("test.far", far).await.unwrap(), 1);
        if backend == Backend::InProcessPostgres {
            rig.run_on_shop(&FROM_ELSEWHERE).await;
        }
        // Written on the new server before the bus starts.
        rig.publish_one("key-0", "early").await;
        let tasks = rig.start(&[&ahead, &behind]);
        rig.publish_one("key-0", "late").await;
        for group in [&ahead, &behind] {
            group.has_effects(6).await;
        }
        until(SOON, async || backlog(&rig).await == 0).await;
        tasks.shutdown(SOON).await.unwrap();
        for group in [&ahead, &behind] {
            assert_eq!(group.notes().await, ["0", "1", "2", "unread", "early", "late"]);
            assert_eq!(group.calls(&unread), 1);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_sqlite_file_is_reread_without_duplicate_effects() {
    a_restored_log_is_reread_without_duplicate_effects(Backend::InProcessSqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_on_another_server_is_reread_without_duplicate_effects() {
    a_restored_log_is_reread_without_duplicate_effects(Backend::InProcessPostgres).await;
}

/// All rows were purged, so only the offset reveals the restore.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_offset_is_detected_even_if_the_log_is_empty() {
    let Some(rig) = Rig::new(Backend::InProcessPostgres).await else { return };
    within(LIMIT, async {
        let probe = rig.group();
        let tasks = rig.start(&[&probe]);
        rig.publish_one("a", "before").await;
        probe.has_effects(1).await;
        tasks.shutdown(SOON).await.unwrap();
        rig.run_on_shop(&FORGET_ROWS).await;
        let far = async |tx: &mut Tx<'_>| tx.execute(&FAR_AHEAD, &[&probe.group]).await;
        assert_eq!(rig.ledger().write("test.far", far).await.unwrap(), 1);
        let tasks = rig.start(&[&probe]);
        rig.publish_one("a", "after").await;
        probe.has_effects(2).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["before", "after"]);
    })
    .await;
}

/// An idle lane rechecks its offset periodically.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_replaced_at_runtime_is_detected() {
    within(LIMIT, async {
        let rig = Rig::new(Backend::InProcessSqlite).await.unwrap();
        let probe = rig.group();
        let tasks = rig.start(&[&probe]);
        rig.publish_many(1, 3).await;
        probe.has_effects(3).await;
        rig.run_on_shop(&FORGET_ROWS).await;
        rig.run_on_shop(&FORGET_NUMBERS).await;
        rig.publish_one("a", "new").await;
        // Not read yet, so not marked either.
        assert_eq!(backlog(&rig).await, 1);
        rig.clock.advance(Duration::from_secs(10));
        probe.has_effects(4).await;
        until(SOON, async || backlog(&rig).await == 0).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["0", "1", "2", "new"]);
    })
    .await;
}

/// An unrelated transaction stays open; the rows behind it become readable when it ends.
#[tokio::test]
async fn rows_behind_an_open_transaction_are_detected() {
    let Some(rig) = Rig::new(Backend::InProcessPostgres).await else { return };
    within(LIMIT, async {
        let (shop, held) = (rig.shop(), rig.message("a", "held"));
        let waits = async || {
            let look = async |tx: &mut Tx<'_>| {
                let readable = outbox::read_after(tx, Position::START, 10).await?.len();
                Ok::<_, urr_db::Error>((readable, outbox::any_after(tx, Position::START).await?))
            };
            rig.shop().read("test.look", look).await.unwrap()
        };
        assert_eq!(waits().await, (0, false));
        shop.write("test.open", async |tx: &mut Tx<'_>| {
            outbox::append(tx, &held).await?;
            rig.publish_one("b", "behind").await;
            assert_eq!(waits().await, (0, true));
            Ok::<(), urr_db::Error>(())
        })
        .await
        .unwrap();
        until(SOON, async || waits().await == (2, true)).await;
    })
    .await;
}

/// More than one page of dead letters, inserted in reverse order, among those of another group.
async fn dead_letters_are_republished_in_the_order_written(backend: Backend) {
    const COUNT: u64 = admin::MAX_LISTED as u64 + 5;
    let Some(rig) = Rig::new(backend).await else { return };
    within(LIMIT, async {
        let (probe, other, now) = (rig.group(), rig.group(), rig.clock.now());
        let letter = |group: &str, number: u64| DeadLetter {
            group: group.to_owned(),
            message: Message {
                at: now.after(Duration::from_millis(number)),
                ..rig.message("a", &number.to_string())
            },
            attempts: 4,
            error: "a bug".to_owned(),
            dead_at: now.after(Duration::from_secs(COUNT - number)),
        };
        let insert = async |tx: &mut Tx<'_>| {
            for number in (0..COUNT).rev() {
                dead_letters::insert(tx, &letter(probe.group, number)).await?;
            }
            dead_letters::insert(tx, &letter(other.group, 0)).await
        };
        rig.ledger().write("test.insert", insert).await.unwrap();
        let again = admin::republish_all(&probe.as_consumer(), None, &rig.clock).await.unwrap();
        assert_eq!((u64::from(again.sent), again.failed.len(), again.is_cut), (COUNT, 0, false));
        let expected: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
        assert_eq!(probe.notes().await, expected);
        for (group, left) in [(&probe, 0), (&other, 1)] {
            assert_eq!(admin::count_dead_letters(group).await.unwrap(), left);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_republished_in_the_order_written_on_sqlite() {
    dead_letters_are_republished_in_the_order_written(Backend::InProcessSqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_republished_in_the_order_written_on_postgres() {
    dead_letters_are_republished_in_the_order_written(Backend::InProcessPostgres).await;
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
async fn every_statement_prepares_on_both_engines() {
    let (_dir, sqlite) = fresh_sqlite(&LEDGER).await;
    let postgres = fresh_postgres(&LEDGER).await;
    let databases: Vec<&Db> = std::iter::once(&sqlite).chain(&postgres).collect();
    urr_db::check_statements(&databases, urr_bus::statements()).await.unwrap();
    urr_db::check_statements(&databases, rig::STATEMENTS).await.unwrap();
}
