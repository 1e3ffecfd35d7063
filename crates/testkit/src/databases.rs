//! A new, migrated, empty database for every test.
//!
//! Migrations run once per test binary and domain, on a template. Each test gets a copy of it, and
//! the copy is checked to have exactly the domain's migrations.

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Config, NoTls};
use urr_db::{Db, Domain, Error, Kind, PostgresConfig, SqliteOptions, postgres_provision};
use urr_kernel::{Clock, Ids};

use crate::{Proxy, services, within};

/// Prefix of every database name; followed by the creation time in seconds and a random part.
const PREFIX: &str = "urr_test_";
/// Older databases belong to finished runs: CI allows a run 90 minutes.
const LEFT_OVER_AFTER: Duration = Duration::from_hours(2);
/// Maximum databases dropped per test, to limit the cost for one test; later tests drop the rest.
const MAX_DROPPED: usize = 5;
/// Creating a database copies about 7 MB, and a whole suite may do it at once.
const LIMIT: Duration = Duration::from_mins(1);

/// Attempts to get a first connection. Each one waits as long as a request would.
const CONNECTS: usize = 10;

/// Templates by domain, created once per process.
struct Templates<T>(Mutex<Vec<Template<T>>>);

struct Template<T> {
    domain: &'static Domain,
    made: Arc<OnceCell<T>>,
}

impl<T> Templates<T> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Tests may declare several domains of the same name, so domains are compared by address.
    fn of(&self, domain: &'static Domain) -> Arc<OnceCell<T>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| std::ptr::eq(known.domain, domain)) {
            return Arc::clone(&known.made);
        }
        let made = Arc::new(OnceCell::new());
        all.push(Template { domain, made: Arc::clone(&made) });
        made
    }
}

/// Contents of the migrated files.
static FILES: Templates<Vec<u8>> = Templates::new();
/// Names of the migrated databases.
static DATABASES: Templates<String> = Templates::new();

/// The domain's tables in an SQLite file of its own, deleted when the directory is dropped.
///
/// # Panics
///
/// If the file cannot be created or a migration fails.
pub async fn fresh_sqlite(domain: &'static Domain) -> (TempDir, Db) {
    let template = FILES.of(domain);
    let bytes = template.get_or_init(async || migrated_file(domain).await).await;
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    let path = dir.path().join(format!("{}.db", domain.name));
    // Private to its owner, like files the engine creates.
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes)).expect("the temporary directory is writable");
    let db = Db::sqlite(dir.path(), domain, SqliteOptions::default()).expect("SQLite opens the file");
    db.check_migrated().await.expect("the copy is migrated");
    (dir, db)
}

/// The contents of a migrated file.
async fn migrated_file(domain: &'static Domain) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    let db = Db::sqlite(dir.path(), domain, SqliteOptions::default()).expect("SQLite opens the file");
    db.migrate().await.expect("the migrations run on SQLite");
    drop(db);
    // Closing the last connection checkpoints the WAL and removes it.
    let log = dir.path().join(format!("{}.db-wal", domain.name));
    assert!(!log.exists(), "the WAL was not checkpointed into the file");
    fs::read(dir.path().join(format!("{}.db", domain.name))).expect("the file can be read")
}

/// The domain's schema in a PostgreSQL database of its own; `None` without PostgreSQL, see
/// [`services`].
///
/// # Panics
///
/// If the database cannot be created or a migration fails.
pub async fn fresh_postgres(domain: &'static Domain) -> Option<Db> {
    let server = services::postgres()?;
    let template = DATABASES.of(domain);
    let template = template.get_or_init(async || migrated_database(&server, domain).await).await;
    let config = PostgresConfig::new(within(LIMIT, create(&server, template)).await);
    let db = Db::postgres(&config, domain).expect("the URL is well formed");
    patiently(async || db.check_migrated().await).await.expect("the copy is migrated");
    Some(db)
}

/// Retries the first connection: on a busy machine it may take longer than a request would wait.
async fn patiently<T>(work: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..CONNECTS {
        match work().await {
            Err(error) if error.kind() == Kind::Unavailable => {}
            done => return done,
        }
    }
    work().await
}

/// The name of a migrated database without open connections.
async fn migrated_database(server: &str, domain: &'static Domain) -> String {
    let config = fresh_database(&[domain]).await.expect("PostgreSQL was available a moment ago");
    let db = Db::postgres(&config, domain).expect("the URL is well formed");
    patiently(async || db.migrate().await).await.expect("the migrations run on PostgreSQL");
    drop(db);
    let (address, _) = config.url.split_once('?').unwrap_or((&config.url, ""));
    let (_, name) = address.rsplit_once('/').expect("the URL names a database");
    // PostgreSQL cannot copy a database that has connections.
    as_admin(server, async |client: &Client| end_connections(client, name).await).await;
    name.to_owned()
}

/// A PostgreSQL database with the domains' roles and empty schemas, for tests that open it
/// themselves: with several domains, with other limits, or through a [`Proxy`](crate::Proxy).
///
/// # Panics
///
/// If the database cannot be created.
pub async fn fresh_database(domains: &[&Domain]) -> Option<PostgresConfig> {
    let server = services::postgres()?;
    // template1 could be in use; template0 never is.
    let config = PostgresConfig::new(within(LIMIT, create(&server, "template0")).await);
    postgres_provision(&config, domains).await.expect("the test user may create roles and schemas");
    Some(config)
}

/// The number of deadlocks PostgreSQL detected in a database. A connection reports them when it
/// ends, so all connections are closed first.
///
/// # Panics
///
/// If the server does not answer.
pub async fn deadlocks(database: &str) -> i64 {
    let server = services::postgres().expect("the database is on this server");
    let count = as_admin(&server, async |client: &Client| {
        end_connections(client, database).await;
        client.query_one(DEADLOCKS, &[&database]).await.expect("the database has statistics").get(0)
    });
    within(2 * LIMIT, count).await
}

async fn end_connections(client: &Client, database: &str) {
    let millis = i64::try_from(LIMIT.as_millis()).expect("a minute fits");
    client.query(END_ALL, &[&database, &millis]).await.expect("the test user may end connections");
}

/// Closes every connection to a database and waits for it.
const END_ALL: &str = "select pg_terminate_backend(pid, $2) from pg_stat_activity where datname = $1";
const DEADLOCKS: &str = "select deadlocks from pg_stat_database where datname = $1";

/// Creates a copy of `template` and returns its URL.
async fn create(server: &str, template: &str) -> String {
    let clock = Clock::system();
    let random = u64::from_le_bytes(Ids::random(clock.clone()).bytes());
    let now = clock.now().as_micros() / 1_000_000;
    let name = format!("{PREFIX}{now}_{random:016x}");
    as_admin(server, async |client: &Client| {
        drop_left_over(client, now).await;
        client
            .batch_execute(&format!("create database {name} template {template}"))
            .await
            .expect("the test user may create databases");
        // Detect deadlocks before the statement timeout, even on a busy machine.
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
        ended = connection.as_mut() => panic!("PostgreSQL closed the connection: {ended:?}"),
    }
}

/// Drops databases of finished runs, which would accumulate on a long-lived server.
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

/// The creation time in one of our database names; `None` for others.
fn made_at(name: &str) -> Option<i64> {
    name.strip_prefix(PREFIX)?.split_once('_')?.0.parse().ok()
}

/// The URL with its database replaced.
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

/// A new, migrated database on PostgreSQL, reached through a proxy that can fail. `None`, with a
/// warning, if there is no PostgreSQL.
///
/// # Panics
///
/// If the database cannot be migrated.
pub async fn postgres_behind_proxy(domain: &'static Domain) -> Option<(Proxy, Db)> {
    let mut config = fresh_database(&[domain]).await?;
    let server = config.url.split_once('@').and_then(|(_, rest)| rest.split_once('/'));
    let server = server.expect("the URL names a user and a database").0.to_owned();
    let proxy = Proxy::start(&server).await;
    config.url = config.url.replace(&server, &proxy.address().to_string());
    let db = Db::postgres(&config, domain).expect("the configuration is valid");
    db.migrate().await.expect("migrations apply");
    Some((proxy, db))
}

#[cfg(test)]
mod tests {
    use urr_db::{EngineKind, Migration, Sql, Tx};

    use super::*;

    static DOMAIN: Domain = Domain { name: "testkit", migrations: &[] };

    urr_db::statements! {
        /// Creates a marker table.
        NOTE = "create table note (it bigint)";
        /// Succeeds only where the marker table exists.
        NOTES = "delete from note";
    }

    async fn run(db: &Db, sql: &'static Sql) -> Result<u64, urr_db::Error> {
        db.write("testkit.run", async |tx: &mut Tx<'_>| tx.execute(sql, &[]).await).await
    }

    #[tokio::test]
    async fn postgres_databases_are_isolated() {
        let Some(one) = fresh_postgres(&DOMAIN).await else { return };
        let other = fresh_postgres(&DOMAIN).await.expect("PostgreSQL was available a moment ago");
        assert_eq!(one.engine(), EngineKind::Postgres);
        one.check_migrated().await.unwrap();
        run(&one, &NOTE).await.unwrap();
        run(&one, &NOTES).await.unwrap();
        run(&other, &NOTES).await.expect_err("the table is in the other database");
    }

    #[tokio::test]
    async fn fresh_file_is_migrated() {
        let (_dir, db) = fresh_sqlite(&DOMAIN).await;
        assert_eq!(db.engine(), EngineKind::Sqlite);
        db.check_migrated().await.unwrap();
        assert_eq!(STATEMENTS.len(), 2);
    }

    #[tokio::test]
    async fn sqlite_files_are_isolated() {
        let (_one_dir, one) = fresh_sqlite(&DOMAIN).await;
        let (_other_dir, other) = fresh_sqlite(&DOMAIN).await;
        run(&one, &NOTE).await.unwrap();
        run(&one, &NOTES).await.unwrap();
        run(&other, &NOTES).await.expect_err("the table is in the other file");
    }

    /// Two domains of the same name with different tables must not share a template.
    #[tokio::test]
    async fn template_belongs_to_one_domain() {
        static STEPS: [Migration; 1] = [Migration {
            name: "0001_note",
            sqlite: "create table note (it integer) strict",
            postgres: "create table note (it bigint)",
        }];
        static NAMESAKE: Domain = Domain { name: "testkit", migrations: &STEPS };
        let (_dir, without) = fresh_sqlite(&DOMAIN).await;
        let (_other_dir, with) = fresh_sqlite(&NAMESAKE).await;
        run(&without, &NOTES).await.expect_err("this domain has no tables");
        run(&with, &NOTES).await.unwrap();
        let Some(without) = fresh_postgres(&DOMAIN).await else { return };
        let with = fresh_postgres(&NAMESAKE).await.expect("PostgreSQL was available a moment ago");
        run(&without, &NOTES).await.expect_err("this domain has no tables");
        run(&with, &NOTES).await.unwrap();
    }

    #[test]
    fn creation_time_is_only_parsed_from_our_names() {
        assert_eq!(made_at("urr_test_1780282800_00ff"), Some(1_780_282_800));
        assert_eq!(made_at("urr_test_of_somebody"), None);
        assert_eq!(made_at("postgres"), None);
    }

    #[test]
    fn with_database_only_replaces_the_database() {
        for (url, expected) in [
            ("postgres://u:p@h:1/postgres", "postgres://u:p@h:1/mine"),
            ("postgres://u@h/postgres?sslmode=disable", "postgres://u@h/mine?sslmode=disable"),
            ("postgres://u@h", "postgres://u@h/mine"),
        ] {
            assert_eq!(with_database(url, "mine"), expected);
        }
    }
}
