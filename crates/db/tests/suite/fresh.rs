//! A new database for each test, and the small domain that the tests use.

use std::{
    future::Future,
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use urr_db::{Db, Domain, Error, Migration, PostgresConfig, Tx, postgres_provision};
use urr_kernel::{Ids, Timestamp};
use urr_testkit::{fixed_clock, fresh_database, fresh_postgres, fresh_sqlite, within};

/// Time limit of a test.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// The domain under test.
pub(crate) static DOMAIN: Domain = Domain {
    name: "tickets",
    migrations: &[Migration {
        name: "0001_seats",
        sqlite: "create table seats (id integer primary key, holder text not null check (holder <> '')) strict;
                 create table holders (name text not null unique) strict;
                 create table samples (id integer primary key, yes integer, small integer, whole integer, big integer,
                   words text, bytes blob, uuid blob, at integer, doc text) strict;",
        postgres: "create table seats (id bigint primary key, holder text not null check (holder <> ''));
                   create table holders (name text not null unique);
                   create table samples (id bigint primary key, yes boolean, small smallint, whole integer, big bigint,
                     words varchar, bytes bytea, uuid uuid, at timestamptz, doc jsonb);",
    }],
};

urr_db::statements! {
    /// Inserts a seat.
    pub(crate) SIT = "insert into seats (id, holder) values ($1, $2)";
    /// Changes a seat's holder.
    pub(crate) MOVE = "update seats set holder = $2 where id = $1";
    /// Returns a seat's holder.
    pub(crate) WHO = "select holder from seats where id = $1";
    /// Counts seats.
    pub(crate) COUNT = "select count(*) from seats";
    /// All seats.
    pub(crate) SEATS = "select id, holder from seats order by id";
}

/// The body that most tests use.
pub(crate) async fn sit(tx: &mut Tx<'_>, seat: i64, holder: &str) -> Result<(), Error> {
    tx.execute(&SIT, &[&seat, &holder]).await.map(|_| ())
}

/// A seat's holder, as a new read sees it.
pub(crate) async fn who(db: &Db, seat: i64) -> Option<String> {
    db.read("test.who", async |tx: &mut Tx<'_>| tx.optional(&WHO, &[&seat], |row| row.get(0)).await)
        .await
        .unwrap()
}

pub(crate) async fn count(db: &Db) -> i64 {
    db.read("test.count", async |tx: &mut Tx<'_>| tx.one(&COUNT, &[], |row| row.get(0)).await).await.unwrap()
}

pub(crate) fn now() -> Timestamp {
    fixed_clock().now()
}

pub(crate) fn ids() -> Ids {
    Ids::random(fixed_clock())
}

/// Runs a test on its own migrated SQLite database.
pub(crate) async fn on_sqlite<F: Future<Output = ()>>(test: impl FnOnce(Db) -> F) {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, Box::pin(test(db))).await;
}

/// Runs a test on its own migrated PostgreSQL database, if a server is configured.
pub(crate) async fn on_postgres<F: Future<Output = ()>>(test: impl FnOnce(Db) -> F) {
    if let Some(db) = fresh_postgres(&DOMAIN).await {
        within(LIMIT, Box::pin(test(db))).await;
    }
}

/// Runs a test with its own database on the server, if one is configured.
pub(crate) async fn with_postgres(test: impl AsyncFnOnce(Server)) {
    if let Some(config) = fresh_database(&[&DOMAIN]).await {
        within(LIMIT, Box::pin(test(Server(config)))).await;
    }
}

/// A database on the server with the domain's role and an empty schema.
pub(crate) struct Server(PostgresConfig);

impl Server {
    pub(crate) fn config(&self) -> PostgresConfig {
        self.0.clone()
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    /// `host:port`, for a proxy.
    pub(crate) fn address(&self) -> &str {
        self.url()
            .rsplit_once('@')
            .and_then(|(_, rest)| rest.split_once('/'))
            .expect("user@host:port/database")
            .0
    }

    /// Creates a domain's role and schema and migrates it.
    pub(crate) async fn migrated(&self, domain: &'static Domain) -> Db {
        postgres_provision(&self.0, &[domain]).await.unwrap();
        let db = Db::postgres(&self.0, domain).unwrap();
        db.migrate().await.unwrap();
        db
    }

    /// Runs a command as the server's owner, outside any transaction.
    pub(crate) async fn command(&self, text: &str) {
        let (client, connection) = tokio_postgres::connect(self.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::select! {
            done = client.batch_execute(text) => done.unwrap(),
            ended = connection => panic!("the connection ended: {ended:?}"),
        }
    }
}

/// A shared counter.
pub(crate) fn counter() -> Arc<AtomicU32> {
    Arc::new(AtomicU32::new(0))
}

/// Declares each behaviour as one test on SQLite and one on PostgreSQL.
macro_rules! on_both_engines {
    ($($behaviour:ident,)*) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $behaviour() {
                crate::fresh::on_sqlite(super::$behaviour).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $behaviour() {
                crate::fresh::on_postgres(super::$behaviour).await;
            })*
        }
    };
}
pub(crate) use on_both_engines;
