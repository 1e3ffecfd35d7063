//! Metrics. In a test binary of its own, because the recorder is global to the process.

use std::{sync::LazyLock, time::Duration};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::{sync::oneshot, task::JoinSet};
use urr_db::{Db, Domain, Error, Kind, Migration, SqliteOptions, Tx, statements, transaction};
use urr_testkit::{fresh_postgres, within};

static DOMAIN: Domain = Domain {
    name: "tickets",
    migrations: &[Migration {
        name: "0001_seats",
        sqlite: "create table seats (id integer primary key) strict;",
        postgres: "create table seats (id bigint primary key);",
    }],
};

static RECORDER: LazyLock<PrometheusHandle> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().expect("installed once per process"));

statements! {
    SIT = "insert into seats (id) values ($1)";
    COLLIDE = postgres "do $$ begin raise exception 'a collision' using errcode = '40001'; end $$";
    /// Two of these exceed the time within which retries may start.
    DAWDLE = postgres "select pg_sleep(0.8)::text";
}

/// The value of the line that begins with `name`.
fn value(rendered: &str, name: &str) -> f64 {
    let line = rendered.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no line {name} in\n{rendered}"));
    let (_, number) = line.rsplit_once(' ').expect("a name and a number");
    number.parse().expect("a number")
}

#[tokio::test]
async fn fifty_waiting_writes_share_one_commit_and_are_counted() {
    let metrics = &*RECORDER;
    let dir = tempfile::tempdir().unwrap();
    let db = Db::sqlite(dir.path(), &DOMAIN, SqliteOptions::default()).unwrap();
    db.migrate().await.unwrap();
    let before = value(&metrics.render(), "urr_db_group_commit_size_count");
    let (go_on, may_go_on) = oneshot::channel::<()>();
    let (inside, is_inside) = oneshot::channel();
    let mut tasks = JoinSet::new();
    {
        let db = db.clone();
        tasks.spawn(async move {
            db.write("test.first", async |tx: &mut Tx<'_>| {
                inside.send(()).unwrap();
                may_go_on.await.unwrap();
                tx.execute(&SIT, &[&0_i64]).await
            })
            .await
        });
    }
    is_inside.await.unwrap();
    for seat in 1..=49 {
        let db = db.clone();
        tasks.spawn(async move {
            db.write("test.sit", async |tx: &mut Tx<'_>| tx.execute(&SIT, &[&seat]).await).await
        });
    }
    // Single-threaded runtime: every task spawned above queues before the first one is released.
    tokio::task::yield_now().await;
    go_on.send(()).unwrap();
    within(Duration::from_mins(1), async {
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.unwrap().unwrap(), 1);
        }
    })
    .await;
    let again = db.write("test.sit", async |tx: &mut Tx<'_>| tx.execute(&SIT, &[&1_i64]).await).await;
    again.unwrap_err();
    let refused = db.write("test.refuse", async |_: &mut Tx<'_>| Err::<(), _>(Refused)).await;
    refused.unwrap_err();
    drop(db.write("test.never", async |_: &mut Tx<'_>| Ok::<_, Error>(())));

    let rendered = metrics.render();
    let commits = value(&rendered, "urr_db_group_commit_size_count") - before;
    assert!((commits - 1.0).abs() < f64::EPSILON, "{commits} commits for 50 writes");
    for (outcome, wanted) in [
        ("urr_db_transactions_total{transaction=\"test.sit\",outcome=\"committed\"}", 49.0),
        ("urr_db_transactions_total{transaction=\"test.sit\",outcome=\"constraint\"}", 1.0),
        ("urr_db_transactions_total{transaction=\"test.refuse\",outcome=\"refused\"}", 1.0),
        ("urr_db_transaction_seconds_count{transaction=\"test.sit\"}", 50.0),
    ] {
        let found = value(&rendered, outcome);
        assert!((found - wanted).abs() < f64::EPSILON, "{outcome} is {found}");
    }
    assert!(!rendered.contains("test.never"), "a transaction whose future was never polled is not counted");
}

#[tokio::test]
async fn retries_are_bounded_and_counted() {
    let metrics = &*RECORDER;
    let Some(db) = fresh_postgres(&DOMAIN).await else { return };
    within(Duration::from_mins(1), async {
        let mut attempts = 0;
        let collided: Result<u64, Error> = transaction!(db, "test.collide", async |tx: &mut Tx<'_>| {
            attempts += 1;
            tx.execute(&COLLIDE, &[]).await
        });
        assert_eq!((collided.unwrap_err().kind(), attempts), (Kind::Retry, 5));
        let mut attempts = 0;
        let late: Result<u64, Error> = transaction!(db, "test.late", async |tx: &mut Tx<'_>| {
            attempts += 1;
            for _ in 0..2 {
                tx.one(&DAWDLE, &[], |_| Ok(())).await?;
            }
            tx.execute(&COLLIDE, &[]).await
        });
        assert_eq!((late.unwrap_err().kind(), attempts), (Kind::Retry, 1), "no time is left for a retry");
    })
    .await;
    let rendered = metrics.render();
    let retries = value(&rendered, "urr_db_retries_total{transaction=\"test.collide\"}");
    assert!((retries - 4.0).abs() < f64::EPSILON, "{retries} retries");
    assert!(!rendered.contains("urr_db_retries_total{transaction=\"test.late\"}"));
}

#[derive(Debug)]
struct Refused;

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        panic!("{error}")
    }
}
