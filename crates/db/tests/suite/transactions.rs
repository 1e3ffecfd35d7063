//! Transactions: commit, rollback, isolation and error kinds.

use std::{future::pending, sync::atomic::Ordering, time::Duration};

use tokio::{sync::oneshot, task::JoinSet};
use urr_db::{Db, Error, Kind, Tx, statements, transaction};
use urr_kernel::Scalar;

use crate::fresh::{MOVE, SEATS, SIT, WHO, count, counter, on_both_engines, sit, who};

on_both_engines! {
    a_write_is_seen_by_the_next_read,
    a_write_sees_its_own_changes,
    an_error_in_the_body_changes_nothing,
    error_of_the_body_keeps_its_type,
    a_panic_in_the_body_changes_nothing,
    dropped_body_changes_nothing_and_releases_its_locks,
    dropped_write_is_applied_entirely_or_not_at_all,
    execute_each_returns_the_row_count_of_each,
    execute_each_with_one_bad_row_changes_nothing,
    ignored_statement_error_fails_the_transaction,
    constraint_violations_have_their_own_kind,
    read_transaction_rejects_writes,
    read_sees_one_snapshot,
    more_rows_than_requested_is_a_bug,
    a_missing_row_is_none_or_a_bug,
    a_wrong_number_of_parameters_is_a_bug,
    wrong_column_type_names_the_statement,
    a_body_that_succeeds_runs_once,
    concurrent_writers_lose_no_update,
    ping_succeeds,
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum Refusal {
    #[error("taken")]
    Taken(i64),
    #[error("db")]
    Db(Kind),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Db(error.kind())
    }
}

async fn a_write_is_seen_by_the_next_read(db: Db) {
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await).await.unwrap();
    assert_eq!(who(&db, 1).await.as_deref(), Some("ann"));
    assert_eq!(who(&db, 2).await, None);
}

async fn execute_each_returns_the_row_count_of_each(db: Db) {
    let changed = db.write("test.sit", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "ann").await?;
        sit(tx, 3, "cat").await?;
        assert_eq!(tx.execute_each::<2>(&MOVE, &[]).await?, [0_u64; 0]);
        tx.execute_each(&MOVE, &[[&1_i64, &"bob"], [&2_i64, &"bob"], [&3_i64, &"dan"]]).await
    });
    assert_eq!(changed.await.unwrap(), [1, 0, 1]);
    assert_eq!((who(&db, 1).await.as_deref(), who(&db, 3).await.as_deref()), (Some("bob"), Some("dan")));
}

async fn execute_each_with_one_bad_row_changes_nothing(db: Db) {
    let swallowed = db.write("test.sit", async |tx: &mut Tx<'_>| {
        let rows: [[&dyn Scalar; 2]; 3] = [[&1_i64, &"ann"], [&1_i64, &"bob"], [&2_i64, &"cat"]];
        let failed = tx.execute_each(&SIT, &rows).await.unwrap_err();
        assert_eq!(failed.kind(), Kind::Constraint);
        assert!(sit(tx, 5, "eve").await.is_err(), "the transaction is aborted");
        Ok::<_, Error>(())
    });
    assert!(swallowed.await.is_err());
    assert_eq!((who(&db, 1).await, who(&db, 2).await, who(&db, 5).await), (None, None, None));
}

async fn a_write_sees_its_own_changes(db: Db) {
    let seen = db.write("test.sit", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "ann").await?;
        assert_eq!(tx.execute(&MOVE, &[&1_i64, &"bob"]).await?, 1);
        assert_eq!(tx.execute(&MOVE, &[&2_i64, &"bob"]).await?, 0);
        tx.one(&WHO, &[&1_i64], |row| row.get::<String>(0)).await
    });
    assert_eq!(seen.await.unwrap(), "bob");
}

async fn an_error_in_the_body_changes_nothing(db: Db) {
    let refused: Result<(), Refusal> = db
        .write("test.sit", async |tx: &mut Tx<'_>| {
            sit(tx, 1, "ann").await?;
            Err(Refusal::Taken(1))
        })
        .await;
    assert_eq!(refused, Err(Refusal::Taken(1)));
    assert_eq!(count(&db).await, 0);
}

async fn error_of_the_body_keeps_its_type(db: Db) {
    let runs = counter();
    let refused: Result<(), Refusal> = transaction!(db, "test.refuse", async |_: &mut Tx<'_>| {
        runs.fetch_add(1, Ordering::Relaxed);
        Err(Refusal::Taken(7))
    });
    assert_eq!(refused, Err(Refusal::Taken(7)));
    assert_eq!(runs.load(Ordering::Relaxed), 1, "a body's own error is not retried");
}

async fn a_panic_in_the_body_changes_nothing(db: Db) {
    let task = {
        let db = db.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            db.write("test.panic", async |tx: &mut Tx<'_>| -> Result<(), Error> {
                sit(tx, 1, "ann").await?;
                panic!("a bug in a body");
            })
            .await
        });
        tasks.join_next().await.unwrap()
    };
    assert!(task.unwrap_err().is_panic());
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 2, "bob").await).await.unwrap();
    assert_eq!((who(&db, 1).await, count(&db).await), (None, 1));
}

async fn dropped_body_changes_nothing_and_releases_its_locks(db: Db) {
    let (inside, is_inside) = oneshot::channel();
    let write = db.write("test.drop", async |tx: &mut Tx<'_>| -> Result<(), Error> {
        sit(tx, 1, "ann").await?;
        inside.send(()).unwrap();
        pending().await
    });
    tokio::select! {
        _ = write => unreachable!("the body never completes"),
        inside = is_inside => inside.unwrap(),
    }
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "bob").await).await.unwrap();
    assert_eq!((who(&db, 1).await.as_deref(), count(&db).await), (Some("bob"), 1));
}

async fn dropped_write_is_applied_entirely_or_not_at_all(db: Db) {
    drop(db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await));
    // Polled once and dropped: SQLite has run the body and awaits the commit; PostgreSQL awaits a
    // connection.
    let mut write = Box::pin(db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 2, "ann").await));
    let _ = tokio::time::timeout(Duration::ZERO, &mut write).await;
    drop(write);
    // It is applied as a whole or not at all, and the next write succeeds.
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 3, "bob").await).await.unwrap();
    assert_eq!(who(&db, 1).await, None);
    assert_eq!(who(&db, 3).await.as_deref(), Some("bob"));
}

async fn ignored_statement_error_fails_the_transaction(db: Db) {
    let went_on = db.write("test.swallow", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "ann").await?;
        assert_eq!(sit(tx, 1, "bob").await.unwrap_err().kind(), Kind::Constraint);
        let later = sit(tx, 2, "bob").await.unwrap_err();
        assert!(later.to_string().contains("was called after a failed statement"), "{later}");
        Ok::<_, Error>(())
    });
    let error = went_on.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Bug);
    assert_eq!(
        error.to_string(),
        "test.swallow returned Ok although one of its statements failed or was dropped"
    );
    assert_eq!(count(&db).await, 0);
}

async fn constraint_violations_have_their_own_kind(db: Db) {
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await).await.unwrap();
    let again = db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "bob").await).await.unwrap_err();
    assert!(again.kind() == Kind::Constraint && again.is_unique_violation() && !again.is_unavailable());
    let nobody = db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 2, "").await).await.unwrap_err();
    assert!(nobody.kind() == Kind::Constraint && !nobody.is_unique_violation());
}

async fn read_transaction_rejects_writes(db: Db) {
    let refused = db.read("test.read", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await).await;
    assert_eq!(refused.unwrap_err().kind(), Kind::Bug);
    assert_eq!(count(&db).await, 0);
}

async fn read_sees_one_snapshot(db: Db) {
    let write = |seat: i64| {
        let db = db.clone();
        async move { db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, seat, "ann").await).await.unwrap() }
    };
    write(1).await;
    let seen = db.read("test.snapshot", async |tx: &mut Tx<'_>| {
        let before = tx.all(&SEATS, &[], |row| row.get::<i64>(0)).await?;
        write(2).await;
        let after = tx.all(&SEATS, &[], |row| row.get::<i64>(0)).await?;
        Ok::<_, Error>((before, after))
    });
    assert_eq!(seen.await.unwrap(), (vec![1], vec![1]));
    assert_eq!(count(&db).await, 2);
}

async fn two_seats(db: &Db) {
    db.write("test.sit", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "ann").await?;
        sit(tx, 2, "bob").await
    })
    .await
    .unwrap();
}

async fn more_rows_than_requested_is_a_bug(db: Db) {
    two_seats(&db).await;
    let two =
        db.read("test.one", async |tx: &mut Tx<'_>| tx.one(&SEATS, &[], |row| row.get::<i64>(0)).await).await;
    let error = two.unwrap_err();
    assert_eq!(error.kind(), Kind::Bug);
    assert!(error.to_string().ends_with("fresh::SEATS returned more than 1 rows"), "{error}");
}

async fn a_missing_row_is_none_or_a_bug(db: Db) {
    let found = db.read("test.none", async |tx: &mut Tx<'_>| {
        let none: Option<String> = tx.optional(&WHO, &[&1_i64], |row| row.get(0)).await?;
        let missing = tx.one(&WHO, &[&1_i64], |row| row.get::<String>(0)).await.unwrap_err();
        assert_eq!(missing.kind(), Kind::Bug);
        // No statement failed, so the transaction continues.
        assert!(tx.all(&SEATS, &[], |row| row.get::<i64>(0)).await?.is_empty());
        Ok::<_, Error>(none)
    });
    assert_eq!(found.await.unwrap(), None);
}

async fn a_wrong_number_of_parameters_is_a_bug(db: Db) {
    let few = db.write("test.few", async |tx: &mut Tx<'_>| tx.execute(&SIT, &[&1_i64]).await).await;
    assert_eq!(few.unwrap_err().kind(), Kind::Bug);
}

async fn wrong_column_type_names_the_statement(db: Db) {
    two_seats(&db).await;
    let read =
        db.read("test.type", async |tx: &mut Tx<'_>| tx.one(&WHO, &[&1_i64], |row| row.get::<i64>(0)).await);
    let error = read.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Bug);
    assert!(error.to_string().ends_with("fresh::WHO: column 0 cannot be read"), "{error}");
}

async fn a_body_that_succeeds_runs_once(db: Db) {
    let runs = counter();
    let done: Result<u32, Error> = transaction!(db, "test.once", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "ann").await?;
        Ok(runs.fetch_add(1, Ordering::Relaxed))
    });
    assert_eq!((done.unwrap(), runs.load(Ordering::Relaxed)), (0, 1));
}

statements! {
    /// For read-modify-write, which is correct only if the row is locked in between.
    LOCKED = sqlite "select holder from seats where id = $1" postgres "select holder from seats where id = $1 for update";
}

async fn concurrent_writers_lose_no_update(db: Db) {
    const WRITERS: usize = 50;
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "0").await).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..WRITERS {
        let db = db.clone();
        tasks.spawn(async move {
            transaction!(db, "test.add", async |tx: &mut Tx<'_>| {
                let text: String = tx.one(&LOCKED, &[&1_i64], |row| row.get(0)).await?;
                let next = (text.parse::<u32>().unwrap() + 1).to_string();
                tx.execute(&MOVE, &[&1_i64, &next]).await
            })
        });
    }
    while let Some(done) = tasks.join_next().await {
        assert_eq!(done.unwrap().unwrap(), 1);
    }
    assert_eq!(who(&db, 1).await, Some(WRITERS.to_string()));
}

async fn ping_succeeds(db: Db) {
    db.ping().await.unwrap();
}
