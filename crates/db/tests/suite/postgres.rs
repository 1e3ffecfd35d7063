//! What only concurrent sessions can break: deadlocks, late commits, the pool.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::sync::{Barrier, oneshot};
use urr_db::{
    Db, Error, Kind, Position, Tx,
    outbox::{self, Message},
    statements, transaction,
};
use urr_testkit::until;

use crate::{
    fresh::{DOMAIN, LIMIT, MOVE, Server, count, counter, ids, now, on_postgres, sit, who, with_postgres},
    outbox::read_at_least,
};

async fn both_seats(db: &Db) {
    db.write("test.sit", async |tx: &mut Tx<'_>| {
        sit(tx, 1, "nobody").await?;
        sit(tx, 2, "nobody").await
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn deadlock_victim_is_retried() {
    on_postgres(async |db: Db| {
        both_seats(&db).await;
        let (barrier, runs) = (Barrier::new(2), counter());
        let move_both = async |name: &str, first: i64, second: i64| {
            let met = std::sync::atomic::AtomicBool::new(false);
            transaction!(db, "test.deadlock", async |tx: &mut Tx<'_>| {
                runs.fetch_add(1, Ordering::Relaxed);
                tx.execute(&MOVE, &[&first, &name]).await?;
                // In the first run each transaction locks one seat before it requests the other's.
                if !met.swap(true, Ordering::Relaxed) {
                    barrier.wait().await;
                }
                tx.execute(&MOVE, &[&second, &name]).await
            })
        };
        let (ann, bob) = tokio::join!(move_both("ann", 1, 2), move_both("bob", 2, 1));
        assert_eq!((ann.unwrap(), bob.unwrap()), (1, 1));
        assert_eq!(runs.load(Ordering::Relaxed), 3, "one of them was retried");
        assert_eq!(who(&db, 1).await, who(&db, 2).await, "the later one updated both");
    })
    .await;
}

#[tokio::test]
async fn deadlock_without_retries_has_kind_retry() {
    on_postgres(async |db: Db| {
        both_seats(&db).await;
        let barrier = Barrier::new(2);
        let move_both = async |name: &str, first: i64, second: i64| {
            db.write("test.deadlock", async |tx: &mut Tx<'_>| {
                tx.execute(&MOVE, &[&first, &name]).await?;
                barrier.wait().await;
                tx.execute(&MOVE, &[&second, &name]).await
            })
            .await
        };
        let (ann, bob) = tokio::join!(move_both("ann", 1, 2), move_both("bob", 2, 1));
        let lost = ann.err().or(bob.err()).expect("one of them is the deadlock victim");
        assert_eq!(lost.kind(), Kind::Retry);
        assert!(lost.is_unavailable());
    })
    .await;
}

#[tokio::test]
async fn lock_timeout_is_unavailable() {
    on_postgres(async |db: Db| {
        both_seats(&db).await;
        let (release, released) = oneshot::channel::<()>();
        let (locked, is_locked) = oneshot::channel();
        let holder = db.write("test.hold", async |tx: &mut Tx<'_>| {
            tx.execute(&MOVE, &[&1_i64, &"ann"]).await?;
            locked.send(()).unwrap();
            let _ = released.await;
            Ok::<_, Error>(())
        });
        let waiter = async {
            is_locked.await.unwrap();
            let bob = "bob";
            let refused =
                db.write("test.wait", async |tx: &mut Tx<'_>| tx.execute(&MOVE, &[&1_i64, &bob]).await).await;
            release.send(()).unwrap();
            refused.unwrap_err()
        };
        let (held, refused) = tokio::join!(holder, waiter);
        held.unwrap();
        assert_eq!(refused.kind(), Kind::Unavailable);
        assert_eq!(who(&db, 1).await.as_deref(), Some("ann"));
    })
    .await;
}

/// The outcome of the statement is unknown, and if it failed, COMMIT would silently roll back.
#[tokio::test]
async fn body_that_drops_a_statement_is_not_committed() {
    on_postgres(async |db: Db| {
        let gave_up = db.write("test.give_up", async |tx: &mut Tx<'_>| {
            sit(tx, 1, "ann").await?;
            let short = Duration::from_millis(20);
            tokio::time::timeout(short, tx.execute(&NAP, &[])).await.expect_err("it sleeps longer than that");
            Ok::<_, Error>(())
        });
        assert_eq!(gave_up.await.unwrap_err().kind(), Kind::Bug);
        assert_eq!(count(&db).await, 0);
    })
    .await;
}

fn message(kind: &str) -> Message {
    Message {
        id: ids().next(),
        topic: "tickets".to_owned(),
        key: "a".to_owned(),
        kind: kind.to_owned(),
        payload: "{}".to_owned(),
        at: now(),
    }
}

/// The pitfall of `seq > last`: a row with a smaller number becomes visible after a larger one was
/// read.
#[tokio::test]
async fn late_committing_row_is_not_skipped() {
    on_postgres(async |db: Db| {
        let (appended, is_appended) = oneshot::channel();
        let (go_on, may_go_on) = oneshot::channel::<()>();
        let late = db.write("test.late", async |tx: &mut Tx<'_>| {
            outbox::append(tx, &message("late")).await?;
            appended.send(()).unwrap();
            may_go_on.await.unwrap();
            Ok::<_, Error>(())
        });
        let reader = async {
            is_appended.await.unwrap();
            let early = message("early");
            db.write("test.early", async |tx: &mut Tx<'_>| outbox::append(tx, &early).await).await.unwrap();
            let visible = db
                .read("test.log", async |tx: &mut Tx<'_>| outbox::read_after(tx, Position::START, 10).await);
            assert_eq!(
                visible.await.unwrap(),
                [],
                "the early row is held back until the older transaction ends"
            );
            go_on.send(()).unwrap();
        };
        let (late, ()) = tokio::join!(late, reader);
        late.unwrap();
        let found = read_at_least(&db, Position::START, 2).await;
        let kinds: Vec<&str> = found.iter().map(|(_, m)| m.kind.as_str()).collect();
        assert_eq!(kinds, ["late", "early"]);
    })
    .await;
}

statements! {
    NAP = postgres "select pg_sleep(0.2)";
    BACKEND = postgres "select pg_backend_pid()";
    READ_ONLY_FROM_NOW = postgres "set transaction read only";
    WAITING_FOR_LOCKS = postgres "select count(*) from pg_locks where not granted
                                    and pid in (select pid from pg_stat_activity where datname = current_database())";
    COME_FROM_ELSEWHERE = postgres "update outbox set xid = '4611686018427387904'::xid8";
}

#[tokio::test]
async fn requests_wait_for_a_free_connection() {
    with_postgres(async |server: Server| {
        server.migrated(&DOMAIN).await;
        let mut config = server.config();
        config.pool_size = 2;
        let db = Db::postgres(&config, &DOMAIN).unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for seat in 0..50 {
            let db = db.clone();
            tasks.spawn(async move {
                db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, seat, "ann").await).await
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap().unwrap();
        }
        assert_eq!(count(&db).await, 50);
    })
    .await;
}

#[tokio::test]
async fn exhausted_pool_fails_in_time() {
    with_postgres(async |server: Server| {
        server.migrated(&DOMAIN).await;
        let mut config = server.config();
        config.pool_size = 1;
        let db = Db::postgres(&config, &DOMAIN).unwrap();
        let (release, released) = oneshot::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let greedy = db.read("test.greedy", async |_: &mut Tx<'_>| {
            begun.send(()).unwrap();
            let _ = released.await;
            Ok::<_, Error>(())
        });
        let waiting = async {
            has_begun.await.unwrap();
            let refused = urr_testkit::within(Duration::from_secs(2), db.ping()).await.unwrap_err();
            assert_eq!(refused.kind(), Kind::Unavailable);
            release.send(()).unwrap();
        };
        let (greedy, ()) = tokio::join!(greedy, waiting);
        greedy.unwrap();
        db.ping().await.unwrap();
    })
    .await;
}

/// The clients disconnected. Neither the pool nor the server may keep working for them.
#[tokio::test]
async fn abandoned_statements_are_cancelled() {
    with_postgres(async |server: Server| {
        both_seats(&server.migrated(&DOMAIN).await).await;
        let mut config = server.config();
        // No statement times out within the test.
        config.statement = Duration::from_mins(10);
        let db = Db::postgres(&config, &DOMAIN).unwrap();
        let (mut blocker, connection) =
            tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move { connection.await.unwrap() });
        let lock = blocker.transaction().await.unwrap();
        lock.batch_execute("update tickets.seats set holder = 'blocker' where id = 1").await.unwrap();

        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..config.pool_size {
            let db = db.clone();
            callers.spawn(async move {
                db.write("test.blocked", async |tx: &mut Tx<'_>| tx.execute(&MOVE, &[&1_i64, &"ann"]).await)
                    .await
            });
        }
        let onlooker = Db::postgres(&server.config(), &DOMAIN).unwrap();
        let waiting = async || {
            let count =
                async |tx: &mut Tx<'_>| tx.one(&WAITING_FOR_LOCKS, &[], |row| row.get::<i64>(0)).await;
            onlooker.read("test.waiting", count).await.unwrap()
        };
        let all = i64::try_from(config.pool_size).unwrap();
        until(LIMIT, async || waiting().await == all).await;
        callers.shutdown().await;

        db.write("test.next", async |tx: &mut Tx<'_>| sit(tx, 3, "bob").await).await.unwrap();
        until(LIMIT, async || waiting().await == 0).await;
        lock.commit().await.unwrap();
        assert_eq!(who(&db, 1).await.as_deref(), Some("blocker"));
        assert_eq!(who(&db, 3).await.as_deref(), Some("bob"));
    })
    .await;
}

/// A failover turned the server into a standby under an open connection.
#[tokio::test]
async fn read_only_server_is_unavailable_and_its_connection_is_dropped() {
    with_postgres(async |server: Server| {
        server.migrated(&DOMAIN).await;
        let db = Db::postgres(&urr_db::PostgresConfig { pool_size: 1, ..server.config() }, &DOMAIN).unwrap();
        let backend = async || {
            let ask = async |tx: &mut Tx<'_>| tx.one(&BACKEND, &[], |row| row.get::<i32>(0)).await;
            db.read("test.backend", ask).await.unwrap()
        };
        let before = backend().await;
        assert_eq!(backend().await, before, "a healthy connection is reused");
        let refused = db.write("test.standby", async |tx: &mut Tx<'_>| {
            tx.execute(&READ_ONLY_FROM_NOW, &[]).await?;
            sit(tx, 1, "ann").await
        });
        assert_eq!(refused.await.unwrap_err().kind(), Kind::Unavailable);
        assert_ne!(backend().await, before);
    })
    .await;
}

#[tokio::test]
async fn foreign_rows_are_detected_and_adopted_before_our_own() {
    on_postgres(async |db: Db| {
        let append = async |kind: &str| {
            let message = message(kind);
            db.write("test.append", async |tx: &mut Tx<'_>| outbox::append(tx, &message).await)
                .await
                .unwrap();
        };
        let look =
            async |tx: &mut Tx<'_>| Ok::<_, Error>((outbox::has_foreign(tx).await?, outbox::end(tx).await?));
        append("one").await;
        append("two").await;
        let (foreign, end) = db.read("test.look", look).await.unwrap();
        let read = read_at_least(&db, Position::START, 2).await;
        assert!(!foreign && read[1].0 < end, "{read:?} {end:?}");

        db.write("test.elsewhere", async |tx: &mut Tx<'_>| tx.execute(&COME_FROM_ELSEWHERE, &[]).await)
            .await
            .unwrap();
        append("three").await;
        assert!(db.read("test.look", look).await.unwrap().0);
        let adopt = async |tx: &mut Tx<'_>| outbox::adopt_foreign(tx).await;
        assert_eq!(db.write("test.adopt", adopt).await.unwrap(), 2);
        assert_eq!(db.write("test.adopt", adopt).await.unwrap(), 0);
        assert!(!db.read("test.look", look).await.unwrap().0);
        let kinds: Vec<String> =
            read_at_least(&db, Position::START, 3).await.into_iter().map(|(_, m)| m.kind).collect();
        assert_eq!(kinds, ["one", "two", "three"]);
    })
    .await;
}
