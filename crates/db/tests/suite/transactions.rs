//! What a transaction keeps, what it leaves behind, and what its caller is told.

use std::{future::pending, sync::atomic::Ordering, time::Duration};

use tokio::{sync::oneshot, task::JoinSet};
use urr_db::{Db, Error, Kind, Tx, statements, transaction};
use urr_kernel::Scalar;

use crate::fresh::{MOVE, SEATS, SIT, WHO, count, counter, on_both_engines, sit, who};

on_both_engines! {
    a_write_is_seen_by_the_next_read,
    a_write_sees_its_own_changes,
    an_error_in_the_body_changes_nothing,
    a_refusal_keeps_its_own_type,
    a_panic_in_the_body_changes_nothing,
    a_dropped_body_changes_nothing_and_holds_nobody_up,
    a_write_dropped_before_it_began_changes_nothing,
    a_statement_for_many_rows_tells_of_each,
    one_bad_row_of_many_changes_nothing,
    a_failed_statement_cannot_be_swallowed,
    a_broken_constraint_is_told_apart,
    a_read_refuses_changes,
    a_read_sees_one_moment,
    a_second_row_where_one_was_asked_for_is_a_bug,
    a_missing_row_is_none_or_a_bug,
    a_wrong_number_of_parameters_is_a_bug,
    a_column_of_another_type_names_the_statement,
    a_body_that_succeeds_runs_once,
    many_writers_lose_no_update,
    a_ping_is_answered,
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

async fn a_statement_for_many_rows_tells_of_each(db: Db) {
    let changed = db.write("test.sit", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "ann").await?;
        sit(tx, 3, "cat").await?;
        assert_eq!(tx.execute_each::<2>(&MOVE, &[]).await?, [0_u64; 0]);
        tx.execute_each(&MOVE, &[[&1_i64, &"bob"], [&2_i64, &"bob"], [&3_i64, &"dan"]]).await
    });
    assert_eq!(changed.await.unwrap(), [1, 0, 1]);
    assert_eq!((who(&db, 1).await.as_deref(), who(&db, 3).await.as_deref()), (Some("bob"), Some("dan")));
}

async fn one_bad_row_of_many_changes_nothing(db: Db) {
    let swallowed = db.write("test.sit", async |tx: &mut Tx<'_>| {
        let rows: [[&dyn Scalar; 2]; 3] = [[&1_i64, &"ann"], [&1_i64, &"bob"], [&2_i64, &"cat"]];
        let failed = tx.execute_each(&SIT, &rows).await.unwrap_err();
        assert_eq!(failed.kind(), Kind::Constraint);
        assert!(sit(tx, 5, "eve").await.is_err(), "the transaction is over");
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

async fn a_refusal_keeps_its_own_type(db: Db) {
    let runs = counter();
    let refused: Result<(), Refusal> = transaction!(db, "test.refuse", async |_: &mut Tx<'_>| {
        runs.fetch_add(1, Ordering::Relaxed);
        Err(Refusal::Taken(7))
    });
    assert_eq!(refused, Err(Refusal::Taken(7)));
    assert_eq!(runs.load(Ordering::Relaxed), 1, "a refusal is an answer, not a reason to try again");
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

async fn a_dropped_body_changes_nothing_and_holds_nobody_up(db: Db) {
    let (inside, is_inside) = oneshot::channel();
    let write = db.write("test.drop", async |tx: &mut Tx<'_>| -> Result<(), Error> {
        sit(tx, 1, "ann").await?;
        inside.send(()).unwrap();
        pending().await
    });
    tokio::select! {
        _ = write => unreachable!("the body never ends"),
        inside = is_inside => inside.unwrap(),
    }
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "bob").await).await.unwrap();
    assert_eq!((who(&db, 1).await.as_deref(), count(&db).await), (Some("bob"), 1));
}

async fn a_write_dropped_before_it_began_changes_nothing(db: Db) {
    drop(db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await));
    // Polled once and dropped: on SQLite the body has run and the commit is awaited, on PostgreSQL the connection is.
    let mut write = Box::pin(db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 2, "ann").await));
    let _ = tokio::time::timeout(Duration::ZERO, &mut write).await;
    drop(write);
    // Whatever became of it, it became of the whole of it, and the next one gets through.
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 3, "bob").await).await.unwrap();
    assert_eq!(who(&db, 1).await, None);
    assert_eq!(who(&db, 3).await.as_deref(), Some("bob"));
}

async fn a_failed_statement_cannot_be_swallowed(db: Db) {
    let went_on = db.write("test.swallow", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "ann").await?;
        assert_eq!(sit(tx, 1, "bob").await.unwrap_err().kind(), Kind::Constraint);
        let later = sit(tx, 2, "bob").await.unwrap_err();
        assert!(later.to_string().contains("came after a failed statement"), "{later}");
        Ok::<_, Error>(())
    });
    let error = went_on.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Bug);
    assert_eq!(error.to_string(), "test.swallow went on after a statement of it had failed or been given up");
    assert_eq!(count(&db).await, 0);
}

async fn a_broken_constraint_is_told_apart(db: Db) {
    db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await).await.unwrap();
    let again = db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "bob").await).await.unwrap_err();
    assert!(again.kind() == Kind::Constraint && again.is_unique_violation() && !again.is_unavailable());
    let nobody = db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 2, "").await).await.unwrap_err();
    assert!(nobody.kind() == Kind::Constraint && !nobody.is_unique_violation());
}

async fn a_read_refuses_changes(db: Db) {
    let refused = db.read("test.read", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await).await;
    assert_eq!(refused.unwrap_err().kind(), Kind::Bug);
    assert_eq!(count(&db).await, 0);
}

async fn a_read_sees_one_moment(db: Db) {
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

async fn a_second_row_where_one_was_asked_for_is_a_bug(db: Db) {
    two_seats(&db).await;
    let two =
        db.read("test.one", async |tx: &mut Tx<'_>| tx.one(&SEATS, &[], |row| row.get::<i64>(0)).await).await;
    let error = two.unwrap_err();
    assert_eq!(error.kind(), Kind::Bug);
    assert!(error.to_string().ends_with("fresh::SEATS gave more than 1 rows"), "{error}");
}

async fn a_missing_row_is_none_or_a_bug(db: Db) {
    let found = db.read("test.none", async |tx: &mut Tx<'_>| {
        let none: Option<String> = tx.optional(&WHO, &[&1_i64], |row| row.get(0)).await?;
        let missing = tx.one(&WHO, &[&1_i64], |row| row.get::<String>(0)).await.unwrap_err();
        assert_eq!(missing.kind(), Kind::Bug);
        // No statement failed, so the transaction goes on.
        assert!(tx.all(&SEATS, &[], |row| row.get::<i64>(0)).await?.is_empty());
        Ok::<_, Error>(none)
    });
    assert_eq!(found.await.unwrap(), None);
}

async fn a_wrong_number_of_parameters_is_a_bug(db: Db) {
    let few = db.write("test.few", async |tx: &mut Tx<'_>| tx.execute(&SIT, &[&1_i64]).await).await;
    assert_eq!(few.unwrap_err().kind(), Kind::Bug);
}

async fn a_column_of_another_type_names_the_statement(db: Db) {
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
    /// Reads, adds, writes: correct only if the row is locked between.
    LOCKED = sqlite "select holder from seats where id = $1" postgres "select holder from seats where id = $1 for update";
}

async fn many_writers_lose_no_update(db: Db) {
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

async fn a_ping_is_answered(db: Db) {
    db.ping().await.unwrap();
}
