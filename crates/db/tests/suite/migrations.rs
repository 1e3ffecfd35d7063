//! Migrations are applied once, in order, atomically, and are never edited.

use std::path::Path;

use urr_db::{Db, Domain, Error, Kind, Migration, SqliteOptions, postgres_provision};

use crate::fresh::{DOMAIN, LIMIT, Server, with_postgres};

/// Opens the same database as binaries with different migrations would.
enum TestDatabase<'p> {
    Sqlite(&'p Path),
    Postgres(&'p Server),
}

impl TestDatabase<'_> {
    async fn open(&self, migrations: &'static [Migration]) -> Db {
        let domain: &'static Domain = Box::leak(Box::new(Domain { name: "catalog", migrations }));
        match self {
            Self::Sqlite(dir) => Db::sqlite(dir, domain, SqliteOptions::default()).unwrap(),
            Self::Postgres(server) => {
                postgres_provision(&server.config(), &[domain]).await.unwrap();
                Db::postgres(&server.config(), domain).unwrap()
            }
        }
    }
}

const fn step(name: &'static str, text: &'static str) -> Migration {
    Migration { name, sqlite: text, postgres: text }
}

const ONE: Migration = step("0001_one", "create table one (id bigint); create index one_id on one (id);");
const TWO: Migration = step("0002_two", "create table two (id bigint);");
const ONE_ON_SQLITE: Migration = step("0001_one", "create table one (id integer) strict;");
const TWO_ON_SQLITE: Migration = step("0002_two", "create table two (id integer) strict;");

macro_rules! on_both_places {
    ($($behaviour:ident,)*) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $behaviour() {
                let dir = tempfile::tempdir().unwrap();
                urr_testkit::within(super::LIMIT, super::$behaviour(super::TestDatabase::Sqlite(dir.path()))).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $behaviour() {
                super::with_postgres(async |server: super::Server| {
                    super::$behaviour(super::TestDatabase::Postgres(&server)).await;
                })
                .await;
            })*
        }
    };
}

on_both_places! {
    pending_migrations_are_applied_once,
    check_fails_while_a_migration_is_pending,
    edited_migration_is_rejected_with_its_file_name,
    migration_of_a_newer_binary_is_rejected,
    migration_inserted_before_an_applied_one_is_rejected,
    failed_migration_is_rolled_back,
    concurrent_migrators_apply_each_migration_once,
}

async fn pending_migrations_are_applied_once(database: TestDatabase<'_>) {
    let db = database.open(&[ONE]).await;
    assert_eq!(db.migrate().await.unwrap(), ["0000_base", "0001_one"]);
    assert_eq!(db.migrate().await.unwrap(), [""; 0]);
    let newer = database.open(&[ONE, TWO]).await;
    assert_eq!(newer.migrate().await.unwrap(), ["0002_two"]);
    newer.check_migrated().await.unwrap();
}

async fn check_fails_while_a_migration_is_pending(database: TestDatabase<'_>) {
    let db = database.open(&[ONE, TWO]).await;
    let file = |name: &str| match database {
        TestDatabase::Sqlite(_) => {
            format!("catalog: migrations/sqlite/{name}.sql has not been applied: run `urr migrate`")
        }
        TestDatabase::Postgres(_) => {
            format!("catalog: migrations/postgres/{name}.sql has not been applied: run `urr migrate`")
        }
    };
    assert_eq!(db.check_migrated().await.unwrap_err().to_string(), file("0000_base"));
    database.open(&[ONE]).await.migrate().await.unwrap();
    assert_eq!(db.check_migrated().await.unwrap_err().to_string(), file("0002_two"));
    db.migrate().await.unwrap();
    db.check_migrated().await.unwrap();
}

async fn refused(database: &TestDatabase<'_>, migrations: &'static [Migration], why: &str) {
    let db = database.open(migrations).await;
    for result in [db.migrate().await.map(|_| ()), db.check_migrated().await] {
        let error: Error = result.unwrap_err();
        assert_eq!(error.kind(), Kind::Bug);
        assert!(error.to_string().contains(why), "{error}");
    }
}

async fn edited_migration_is_rejected_with_its_file_name(database: TestDatabase<'_>) {
    const EDITED: Migration = step("0001_one", "create table one (id bigint, name text);");
    database.open(&[ONE]).await.migrate().await.unwrap();
    refused(&database, &[EDITED, TWO], "0001_one.sql was changed after it was applied").await;
}

async fn migration_of_a_newer_binary_is_rejected(database: TestDatabase<'_>) {
    database.open(&[ONE, TWO]).await.migrate().await.unwrap();
    refused(&database, &[ONE], "the database has migration 0002_two, which this binary does not have").await;
}

async fn migration_inserted_before_an_applied_one_is_rejected(database: TestDatabase<'_>) {
    database.open(&[TWO]).await.migrate().await.unwrap();
    refused(&database, &[ONE, TWO], "0001_one.sql is where the database has 0002_two").await;
}

async fn failed_migration_is_rolled_back(database: TestDatabase<'_>) {
    const BROKEN: Migration = step("0002_two", "create table two (id bigint); create table one (id bigint);");
    let broken = database.open(&[ONE, BROKEN]).await;
    let error = broken.migrate().await.unwrap_err();
    assert!(error.to_string().ends_with("0002_two.sql failed"), "{error}");
    assert!(std::error::Error::source(&error).is_some(), "the cause is attached");
    // Neither its first half nor its history row was kept.
    let repaired = database.open(&[ONE, TWO]).await;
    assert_eq!(repaired.migrate().await.unwrap(), ["0002_two"]);
}

async fn concurrent_migrators_apply_each_migration_once(database: TestDatabase<'_>) {
    let (one, other) = (database.open(&[ONE, TWO]).await, database.open(&[ONE, TWO]).await);
    let (a, b) = tokio::join!(one.migrate(), other.migrate());
    let mut applied = [a.unwrap(), b.unwrap()].concat();
    applied.sort_unstable();
    assert_eq!(applied, ["0000_base", "0001_one", "0002_two"]);
}

#[tokio::test]
async fn deferred_constraint_is_rejected_on_sqlite() {
    const DEFERRED: Migration = step(
        "0002_two",
        "create table two (id integer references one deferrable initially deferred) strict;",
    );
    let dir = tempfile::tempdir().unwrap();
    let db = TestDatabase::Sqlite(dir.path()).open(&[ONE_ON_SQLITE, DEFERRED]).await;
    let error = db.migrate().await.unwrap_err();
    assert!(error.to_string().contains("0002_two.sql has a deferred constraint"), "{error}");
    let db = TestDatabase::Sqlite(dir.path()).open(&[ONE_ON_SQLITE, TWO_ON_SQLITE]).await;
    assert_eq!(db.migrate().await.unwrap(), ["0002_two"]);
}

#[tokio::test]
async fn unprovisioned_domain_cannot_be_migrated() {
    with_postgres(async |server: Server| {
        static STRANGER: Domain = Domain { name: "stranger", migrations: &[] };
        let error = Db::postgres(&server.config(), &STRANGER).unwrap().migrate().await.unwrap_err();
        let why = format!("{error:?}");
        assert!(why.contains("urr_stranger"), "{why}");
    })
    .await;
}

#[tokio::test]
async fn server_with_synchronous_commit_off_is_rejected() {
    with_postgres(async |server: Server| {
        server.migrated(&DOMAIN).await.check_migrated().await.unwrap();
        let config =
            urr_db::PostgresConfig::new(format!("{}?options=-c%20synchronous_commit%3Doff", server.url()));
        let error = Db::postgres(&config, &DOMAIN).unwrap().check_migrated().await.unwrap_err();
        assert!(error.to_string().contains("synchronous_commit is off"), "{error}");
    })
    .await;
}
