//! Writes that share a commit: one that fails does not affect the others.

use std::{future::pending, os::unix::process::ExitStatusExt as _, process::Command, time::Duration};

use tokio::{sync::oneshot, task::JoinSet};
use urr_db::{Db, Error, Kind, SqliteOptions, Tx, statements};
use urr_testkit::{fresh_sqlite, until, within};

use crate::fresh::{DOMAIN, LIMIT, SEATS, SIT, WHO, count, sit, who};

statements! {
    /// Limits the number of pages, to simulate a full disk.
    FILL = sqlite "pragma max_page_count = 40";
    ROOM = sqlite "pragma max_page_count = 1000000";
    PARENT = sqlite "create table parents (id integer primary key) strict";
    CHILD = sqlite "create table children (id integer references parents deferrable initially deferred) strict";
    ORPHAN = sqlite "insert into children (id) values (1)";
}

/// Holds the write lock until the sender fires, so that other writes queue behind it.
async fn hold_the_lock(db: &Db, tasks: &mut JoinSet<Result<(), Error>>) -> oneshot::Sender<()> {
    let (inside, is_inside) = oneshot::channel();
    let (go_on, may_go_on) = oneshot::channel::<()>();
    let db = db.clone();
    tasks.spawn(async move {
        db.write("test.first", async |tx: &mut Tx<'_>| {
            inside.send(()).unwrap();
            let _ = may_go_on.await;
            sit(tx, 0, "first").await
        })
        .await
    });
    is_inside.await.unwrap();
    go_on
}

fn spawn_sit(db: &Db, tasks: &mut JoinSet<Result<(), Error>>, seat: i64, holder: &'static str) {
    let db = db.clone();
    tasks.spawn(
        async move { db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, seat, holder).await).await },
    );
}

#[tokio::test]
async fn failing_bodies_do_not_affect_their_batch() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, async {
        let mut tasks = JoinSet::new();
        let go_on = hold_the_lock(&db, &mut tasks).await;
        for seat in 1..=30 {
            // One third violates a constraint, one third panics.
            match seat % 3 {
                0 => spawn_sit(&db, &mut tasks, seat, ""),
                1 => spawn_sit(&db, &mut tasks, seat, "ann"),
                _ => {
                    let db = db.clone();
                    tasks.spawn(async move {
                        db.write("test.panic", async |tx: &mut Tx<'_>| {
                            sit(tx, seat, "ann").await?;
                            panic!("a bug in a body")
                        })
                        .await
                    });
                }
            }
        }
        tokio::task::yield_now().await;
        go_on.send(()).unwrap();
        let (mut kept, mut refused, mut panicked) = (0, 0, 0);
        while let Some(done) = tasks.join_next().await {
            match done {
                Ok(Ok(())) => kept += 1,
                Ok(Err(error)) => {
                    assert_eq!(error.kind(), Kind::Constraint);
                    refused += 1;
                }
                Err(_) => panicked += 1,
            }
        }
        assert_eq!((kept, refused, panicked), (11, 10, 10));
        assert_eq!(count(&db).await, 11);
    })
    .await;
}

#[tokio::test]
async fn bodies_dropped_at_any_stage_do_not_affect_their_batch() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, async {
        let mut tasks = JoinSet::new();
        let go_on = hold_the_lock(&db, &mut tasks).await;
        let mut dropped = JoinSet::new();
        for seat in 1..=20 {
            spawn_sit(&db, &mut tasks, seat, "ann");
            let db = db.clone();
            dropped.spawn(async move {
                db.write("test.drop", async |tx: &mut Tx<'_>| -> Result<(), Error> {
                    sit(tx, 100 + seat, "ann").await?;
                    // Half of them are in their body when dropped, the others wait for the lock.
                    tokio::time::timeout(Duration::from_millis(1), pending::<()>()).await.unwrap_err();
                    pending().await
                })
                .await
            });
        }
        tokio::task::yield_now().await;
        go_on.send(()).unwrap();
        while !dropped.is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
            dropped.abort_all();
            dropped.join_next().await;
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap().unwrap();
        }
        let seats =
            db.read("test.seats", async |tx: &mut Tx<'_>| tx.all(&SEATS, &[], |row| row.get::<i64>(0)).await);
        assert_eq!(seats.await.unwrap(), (0..=20).collect::<Vec<i64>>());
    })
    .await;
}

#[tokio::test]
async fn write_dropped_during_commit_is_kept() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, async {
        let mut write = Box::pin(db.write("test.leave", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await));
        // The first poll runs the body; what remains is the wait for the commit.
        let polled = tokio::time::timeout(Duration::ZERO, &mut write).await;
        drop(write);
        drop(polled);
        until(LIMIT, async || who(&db, 1).await.is_some()).await;
    })
    .await;
}

#[derive(Debug, PartialEq)]
enum Answer {
    Taken,
    Db(Kind),
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        Self::Db(error.kind())
    }
}

/// A batch fails as a whole and every write in it returns the same error: the first, although its
/// own part succeeded, and the second, whose refusal depends on what the first wrote.
#[tokio::test]
async fn full_disk_fails_every_write_of_the_batch() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, async {
        db.write("test.fill", async |tx: &mut Tx<'_>| tx.all(&FILL, &[], |_| Ok(())).await).await.unwrap();
        let long = "x".repeat(400_000);
        let (go_on, may_go_on) = oneshot::channel::<()>();
        let first = db.write("test.first", async |tx: &mut Tx<'_>| {
            may_go_on.await.unwrap();
            sit(tx, 1, "ann").await.map_err(Answer::from)
        });
        let second = db.write("test.second", async |tx: &mut Tx<'_>| {
            let taken: Option<String> = tx.optional(&WHO, &[&1_i64], |row| row.get(0)).await?;
            assert_eq!(taken.as_deref(), Some("ann"), "a write sees earlier writes of its batch");
            Err::<(), _>(Answer::Taken)
        });
        let large = db.write("test.large", async |tx: &mut Tx<'_>| tx.execute(&SIT, &[&2_i64, &long]).await);
        // `join!` polls in this order, so the writes queue in this order.
        let (first, second, large, ()) =
            tokio::join!(first, second, large, async { go_on.send(()).unwrap() });
        assert_eq!(first, Err(Answer::Db(Kind::Unavailable)));
        assert_eq!(second, Err(Answer::Db(Kind::Unavailable)));
        assert_eq!(large.unwrap_err().kind(), Kind::Unavailable);
        assert_eq!(count(&db).await, 0);

        db.write("test.room", async |tx: &mut Tx<'_>| tx.all(&ROOM, &[], |_| Ok(())).await).await.unwrap();
        db.write("test.large", async |tx: &mut Tx<'_>| tx.execute(&SIT, &[&2_i64, &long]).await)
            .await
            .unwrap();
        assert_eq!(count(&db).await, 1, "it recovers without a restart");
    })
    .await;
}

#[tokio::test]
async fn writes_are_kept_without_group_commit() {
    let dir = tempfile::tempdir().unwrap();
    let one_by_one = SqliteOptions { group_commit: false, ..SqliteOptions::default() };
    let db = Db::sqlite(dir.path(), &DOMAIN, one_by_one).unwrap();
    db.migrate().await.unwrap();
    within(LIMIT, async {
        let mut tasks = JoinSet::new();
        for seat in 0..20 {
            spawn_sit(&db, &mut tasks, seat, if seat % 4 == 0 { "" } else { "ann" });
        }
        let mut kept = 0;
        while let Some(done) = tasks.join_next().await {
            kept += i64::from(done.unwrap().is_ok());
        }
        assert_eq!((kept, count(&db).await), (15, 15));
    })
    .await;
    drop(db);
    let again = Db::sqlite(dir.path(), &DOMAIN, SqliteOptions::default()).unwrap();
    assert_eq!(count(&again).await, 15);
}

#[test]
fn writes_survive_the_end_of_their_runtime() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::sqlite(dir.path(), &DOMAIN, SqliteOptions::default()).unwrap();
    for (seat, threads) in [(1, 1), (2, 2), (3, 1)] {
        let mut builder = if threads == 1 {
            tokio::runtime::Builder::new_current_thread()
        } else {
            tokio::runtime::Builder::new_multi_thread()
        };
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(within(LIMIT, async {
            db.migrate().await.unwrap();
            db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, seat, "ann").await).await.unwrap();
            assert_eq!(count(&db).await, seat);
        }));
    }
}

/// After a failed COMMIT the process must abort. The test runs itself in a child process to see
/// that.
#[test]
fn failed_commit_aborts_the_process() {
    const CHILD_PLEASE: &str = "URR_DB_TEST_FAILED_COMMIT";
    #[expect(clippy::disallowed_methods, reason = "marks the child process")]
    let is_child = std::env::var(CHILD_PLEASE).is_ok();
    if is_child {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::sqlite(dir.path(), &DOMAIN, SqliteOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Migrations may not defer constraints; a body that does makes COMMIT itself fail.
        let _ = runtime.block_on(db.write("test.orphan", async |tx: &mut Tx<'_>| {
            tx.execute(&PARENT, &[]).await?;
            tx.execute(&CHILD, &[]).await?;
            tx.execute(&ORPHAN, &[]).await
        }));
        panic!("the process should have stopped");
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["group_commit::failed_commit_aborts_the_process", "--exact", "--nocapture"])
        .env(CHILD_PLEASE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(6), "aborted: {said}");
    assert!(said.contains("urr: COMMIT failed: FOREIGN KEY constraint failed: stopping"), "{said}");
}

#[tokio::test]
async fn later_statements_of_a_lost_batch_are_rejected() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, async {
        db.write("test.fill", async |tx: &mut Tx<'_>| tx.all(&FILL, &[], |_| Ok(())).await).await.unwrap();
        let long = "x".repeat(400_000);
        let went_on = db.write("test.large", async |tx: &mut Tx<'_>| {
            tx.execute(&SIT, &[&1_i64, &long]).await.unwrap_err();
            // SQLite may have rolled back everything: a statement here would autocommit outside any
            // batch.
            tx.execute(&SIT, &[&2_i64, &"ann"]).await.unwrap_err();
            Ok::<_, Error>(())
        });
        went_on.await.unwrap_err();
        assert_eq!(count(&db).await, 0);
    })
    .await;
}

#[tokio::test]
async fn clean_close_checkpoints_the_wal_into_the_file() {
    let (dir, db) = fresh_sqlite(&DOMAIN).await;
    let sat: Result<(), Error> = db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 7, "ann").await).await;
    sat.unwrap();
    assert_eq!(who(&db, 7).await.as_deref(), Some("ann"), "opens a read connection too");
    drop(db);
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with("-wal")), "{left:?}");
}
