//! A database of its own for every test, migrated and empty.

use std::{pin::pin, time::Duration};

use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};
use urr_db::{Db, Domain, PostgresConfig, SqliteOptions, postgres_provision};
use urr_kernel::{Clock, Ids};

use crate::{services, within};

/// Begins the name of every database made here; after it come the second it was made and a random part.
const PREFIX: &str = "urr_test_";
/// A database older than this belongs to a run that is over. No run takes longer than the 90 minutes CI allows.
const LEFT_OVER_AFTER: Duration = Duration::from_hours(2);
/// Dropped per test at most, so that no test pays for all the others: what is left falls to the next.
const MAX_DROPPED: usize = 5;
/// Making a database copies some 7 MB, and a whole suite may ask at once.
const LIMIT: Duration = Duration::from_mins(1);

/// The domain's tables in a file of their own, which goes when the directory is dropped.
///
/// # Panics
/// When the file cannot be made or a migration fails.
pub async fn fresh_sqlite(domain: &'static Domain) -> (TempDir, Db) {
    let dir = tempfile::tempdir().expect("the temporary directory can be written");
    let db = Db::sqlite(dir.path(), domain, SqliteOptions::default()).expect("SQLite opens the file");
    db.migrate().await.expect("the migrations run on SQLite");
    (dir, db)
}

/// The domain's schema in a PostgreSQL database of its own. `None` when there is no PostgreSQL; see [`services`].
///
/// # Panics
/// When the database cannot be made or a migration fails.
pub async fn fresh_postgres(domain: &'static Domain) -> Option<Db> {
    let config = fresh_database(&[domain]).await?;
    let db = Db::postgres(&config, domain).expect("the URL is well formed");
    db.migrate().await.expect("the migrations run on PostgreSQL");
    Some(db)
}

/// A PostgreSQL database of its own with the domains' roles and empty schemas, for tests that open it themselves: with
/// several domains, with limits of their own, or through a [`Proxy`](crate::Proxy).
///
/// # Panics
/// When the database cannot be made.
pub async fn fresh_database(domains: &[&Domain]) -> Option<PostgresConfig> {
    let server = services::postgres()?;
    let config = PostgresConfig::new(within(LIMIT, create(&server)).await);
    postgres_provision(&config, domains).await.expect("the test user may create roles and schemas");
    Some(config)
}

/// How many deadlocks PostgreSQL has found in a database. A connection tells of them when it ends, so all of them are ended first.
///
/// # Panics
/// When the server does not answer.
pub async fn deadlocks(database: &str) -> i64 {
    let server = services::postgres().expect("the database is on it");
    let count = as_admin(&server, async |client: &Client| {
        let millis = i64::try_from(LIMIT.as_millis()).expect("a minute fits");
        client.query(END_ALL, &[&database, &millis]).await.expect("the test user may end connections");
        client.query_one(DEADLOCKS, &[&database]).await.expect("the database is counted").get(0)
    });
    within(2 * LIMIT, count).await
}

/// Ends every connection to a database, and waits until it has.
const END_ALL: &str = "select pg_terminate_backend(pid, $2) from pg_stat_activity where datname = $1";
const DEADLOCKS: &str = "select deadlocks from pg_stat_database where datname = $1";

/// Makes a database and gives back its URL.
async fn create(server: &str) -> String {
    let clock = Clock::system();
    let random = u64::from_le_bytes(Ids::random(clock.clone()).bytes());
    let now = clock.now().as_micros() / 1_000_000;
    let name = format!("{PREFIX}{now}_{random:016x}");
    as_admin(server, async |client: &Client| {
        drop_left_over(client, now).await;
        // template1 could be in use; template0 never is.
        client
            .batch_execute(&format!("create database {name} template template0"))
            .await
            .expect("the test user may create databases");
        // A deadlock is found before the time limit of a statement ends, also on a machine that is busy with other tests.
        client
            .batch_execute(&format!("alter database {name} set deadlock_timeout = '100ms'"))
            .await
            .expect("the test user may set up databases");
    })
    .await;
    with_database(server, &name)
}

async fn as_admin<T>(server: &str, work: impl AsyncFnOnce(&Client) -> T) -> T {
    let admin: Config = server.parse().expect("URR_TEST_POSTGRES is a PostgreSQL URL");
    let (client, connection) = admin.connect(NoTls).await.expect("PostgreSQL answers");
    let mut connection = pin!(connection);
    tokio::select! {
        done = work(&client) => done,
        ended = connection.as_mut() => panic!("PostgreSQL hung up: {ended:?}"),
    }
}

/// Drops databases of runs that are over: on a server that outlives the tests they would pile up.
async fn drop_left_over(client: &Client, now: i64) {
    let before = now - i64::try_from(LEFT_OVER_AFTER.as_secs()).expect("two hours fit");
    let listed = client.query("select datname::text from pg_database", &[]).await;
    let names =
        listed.expect("the list of databases can be read").into_iter().map(|row| row.get::<_, String>(0));
    let old = names.filter(|name| made_at(name).is_some_and(|at| at < before));
    for name in old.take(MAX_DROPPED) {
        // Another test may be dropping the same one.
        let _ = client.batch_execute(&format!("drop database if exists {name} with (force)")).await;
    }
}

/// When a database of ours was made; nothing for anybody else's.
fn made_at(name: &str) -> Option<i64> {
    name.strip_prefix(PREFIX)?.split_once('_')?.0.parse().ok()
}

/// The URL with another database in it.
fn with_database(url: &str, name: &str) -> String {
    let (address, parameters) =
        url.split_once('?').map_or((url, None), |(address, rest)| (address, Some(rest)));
    let scheme_ends = address.find("://").map_or(0, |at| at + 3);
    let host_ends = address[scheme_ends..].find('/').map_or(address.len(), |at| scheme_ends + at);
    let mut out = format!("{}/{name}", &address[..host_ends]);
    if let Some(parameters) = parameters {
        out.push('?');
        out.push_str(parameters);
    }
    out
}

#[cfg(test)]
mod tests {
    use urr_db::{EngineKind, Sql, Tx};

    use super::*;

    static DOMAIN: Domain = Domain { name: "testkit", migrations: &[] };

    urr_db::statements! {
        /// Something to find again.
        NOTE = "create table note (it bigint)";
        /// How much was noted.
        NOTES = "select count(*) from note";
    }

    async fn run(db: &Db, sql: &'static Sql) -> Result<u64, urr_db::Error> {
        db.write("testkit.run", async |tx: &mut Tx<'_>| tx.execute(sql, &[]).await).await
    }

    #[tokio::test]
    async fn two_tests_on_postgres_do_not_see_each_other() {
        let Some(one) = fresh_postgres(&DOMAIN).await else { return };
        let other = fresh_postgres(&DOMAIN).await.expect("it was there a moment ago");
        assert_eq!(one.engine(), EngineKind::Postgres);
        one.check_migrated().await.unwrap();
        run(&one, &NOTE).await.unwrap();
        run(&one, &NOTES).await.unwrap();
        run(&other, &NOTES).await.expect_err("the table is in the other database");
    }

    #[tokio::test]
    async fn a_fresh_file_is_migrated() {
        let (_dir, db) = fresh_sqlite(&DOMAIN).await;
        assert_eq!(db.engine(), EngineKind::Sqlite);
        db.check_migrated().await.unwrap();
        assert_eq!(STATEMENTS.len(), 2);
    }

    #[test]
    fn only_our_own_databases_are_old_enough_to_go() {
        assert_eq!(made_at("urr_test_1780282800_00ff"), Some(1_780_282_800));
        assert_eq!(made_at("urr_test_of_somebody"), None);
        assert_eq!(made_at("postgres"), None);
    }

    #[test]
    fn only_the_database_of_a_url_changes() {
        for (url, expected) in [
            ("postgres://u:p@h:1/postgres", "postgres://u:p@h:1/mine"),
            ("postgres://u@h/postgres?sslmode=disable", "postgres://u@h/mine?sslmode=disable"),
            ("postgres://u@h", "postgres://u@h/mine"),
        ] {
            assert_eq!(with_database(url, "mine"), expected);
        }
    }
}
