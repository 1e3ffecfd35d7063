//! Test suite of tickets, run on every database, every gate and both transports.

mod catalog;
mod http;
mod stories;
mod sweep;
mod together;
mod world;

pub(crate) use world::{DbKind, GateKind, Transport, World, hold_request};

macro_rules! matrix {
    ($($name:ident: $db:ident, $gate:ident, $transport:ident;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let world = World::new(DbKind::$db, GateKind::$gate, Transport::$transport).await;
            if let Some(world) = world {
                stories::all(&world).await;
            }
        }
    )*};
}

matrix! {
    sqlite_memory_local: Sqlite, Memory, Local;
    sqlite_memory_remote: Sqlite, Memory, Remote;
    sqlite_redis_local: Sqlite, Redis, Local;
    sqlite_redis_remote: Sqlite, Redis, Remote;
    sqlite_cluster_local: Sqlite, Cluster, Local;
    sqlite_cluster_remote: Sqlite, Cluster, Remote;
    postgres_memory_local: Postgres, Memory, Local;
    postgres_memory_remote: Postgres, Memory, Remote;
    postgres_redis_local: Postgres, Redis, Local;
    postgres_redis_remote: Postgres, Redis, Remote;
    postgres_cluster_local: Postgres, Cluster, Local;
    postgres_cluster_remote: Postgres, Cluster, Remote;
    sqlite_without_redis: Sqlite, RedisDown, Local;
    postgres_without_redis: Postgres, RedisDown, Local;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rows_do_not_stop_the_sweep() {
    for db in [DbKind::Sqlite, DbKind::Postgres] {
        if let Some(world) = World::new(db, GateKind::Memory, Transport::Local).await {
            sweep::bad_rows_do_not_stop_the_sweep(&world).await;
        }
        if let Some(world) = World::new(db, GateKind::Memory, Transport::Local).await {
            sweep::unreadable_rows_do_not_stop_the_sweep(&world).await;
            sweep::a_buyer_with_an_unreadable_hold_can_still_buy(&world).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_row_does_not_fail_other_lookups() {
    for db in [DbKind::Sqlite, DbKind::Postgres] {
        if let Some(world) = World::new(db, GateKind::Memory, Transport::Local).await {
            together::an_unreadable_row_does_not_fail_other_lookups(&world).await;
        }
    }
}

/// PostgreSQL only: SQLite has no row locks.
#[tokio::test(flavor = "multi_thread")]
async fn rows_locked_by_other_transactions() {
    if let Some(world) = World::new(DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local).await {
        together::a_locked_row_does_not_fail_other_claims_of_the_batch(&world).await;
        together::a_second_claim_of_a_buyer_waits_without_locks(&world).await;
        sweep::a_locked_row_does_not_stop_the_sweep(&world).await;
    }
}

#[tokio::test]
async fn every_statement_has_the_same_shape_on_both_engines() {
    let (_dir, sqlite) = urr_testkit::fresh_sqlite(&crate::DOMAIN).await;
    let postgres = urr_testkit::fresh_postgres(&crate::DOMAIN).await;
    let databases: Vec<&urr_db::Db> = std::iter::once(&sqlite).chain(&postgres).collect();
    let tests = [crate::race::STATEMENTS, together::STATEMENTS, sweep::STATEMENTS, world::STATEMENTS];
    let statements = [crate::statements(), tests.concat()].concat();
    urr_db::check_statements(&databases, &statements).await.unwrap();
}
