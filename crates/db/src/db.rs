//! The database of one domain, and its transactions.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::sync::Notify;
use urr_kernel::{Clock, Ids, Timestamp};

use crate::{
    Domain, Error, Kind, PostgresConfig, SqliteOptions, Tx, measure::Measure, postgres::Postgres,
    sqlite::Sqlite, tx::Ended,
};

/// Attempts per [`transaction!`](crate::transaction). Two writers that collide once rarely collide
/// twice; after five conflicts the row is overloaded, and an error helps more than a sixth attempt.
const MAX_ATTEMPTS: u32 = 5;
/// No new attempt starts later than this after the first. PostgreSQL takes 1 s to find a deadlock,
/// so a victim gets its second attempt, and a request still ends well within its 30 s.
const RETRY_WITHIN: Duration = Duration::from_millis(1_500);
/// The first backoff. It doubles with each attempt and half of it is jitter, so that conflicting
/// transactions do not collide again: 5, 10, 20, 40 ms.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The engine of a [`Db`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Embedded SQLite.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

/// The database of one domain: an SQLite file or a PostgreSQL schema. Cheap to clone.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    engine: Engine,
    domain: &'static Domain,
    nudge: Arc<Notify>,
    /// For metrics and bookkeeping only. Domains pass their own time as a parameter.
    clock: Clock,
    /// For jitter only.
    ids: Ids,
}

enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Db {
    /// Opens the domain's file `<dir>/<domain>.db`, creating it if it is missing. The caller must
    /// hold the [`DataDir`](crate::DataDir) lock.
    pub fn sqlite(dir: &Path, domain: &'static Domain, options: SqliteOptions) -> Result<Self, Error> {
        domain.check_name()?;
        let nudge = Arc::new(Notify::new());
        let file = dir.join(format!("{}.db", domain.name));
        let engine = Engine::Sqlite(Sqlite::open(&file, options, Arc::clone(&nudge))?);
        Ok(Self::new(engine, domain, nudge))
    }

    /// Uses the domain's schema on a server. Connects on first use, so a process starts even while
    /// the server is down.
    pub fn postgres(config: &PostgresConfig, domain: &'static Domain) -> Result<Self, Error> {
        domain.check_name()?;
        let engine = Engine::Postgres(Postgres::new(config, domain)?);
        Ok(Self::new(engine, domain, Arc::new(Notify::new())))
    }

    fn new(engine: Engine, domain: &'static Domain, nudge: Arc<Notify>) -> Self {
        let clock = Clock::system();
        Self(Arc::new(Inner { engine, domain, nudge, ids: Ids::random(clock.clone()), clock }))
    }

    /// The domain that owns this database.
    pub fn domain(&self) -> &'static Domain {
        self.0.domain
    }

    /// The engine.
    pub fn engine(&self) -> EngineKind {
        match &self.0.engine {
            Engine::Sqlite(_) => EngineKind::Sqlite,
            Engine::Postgres(_) => EngineKind::Postgres,
        }
    }

    /// The current time, for this crate's own bookkeeping.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Notified after every commit that appended to the outbox. Supports one listener: a
    /// notification that arrives while the listener is busy is kept, so none is lost between check
    /// and wait.
    pub fn outbox_nudge(&self) -> Arc<Notify> {
        Arc::clone(&self.0.nudge)
    }

    /// Health check: fails if the database does not answer.
    pub async fn ping(&self) -> Result<(), Error> {
        self.read("db.ping", async |tx: &mut Tx<'_>| tx.one(&crate::base::PING, &[], |_| Ok(())).await).await
    }

    /// Runs `body` in a transaction that commits if it returns `Ok`. Returns once the change is
    /// durable.
    ///
    /// The body may only call methods of `tx`: no network, no other domain, no sleep, because on
    /// SQLite all other writes wait for it. [`transaction!`](crate::transaction) does the same and
    /// retries conflicts.
    pub async fn write<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.attempt(name, body).await.result
    }

    /// Runs `body` on a snapshot of everything committed when it began. Writes are rejected.
    pub async fn read<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let measure = Measure::start(name, &self.0.clock);
        let ended = match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.read(name, body).await,
            Engine::Postgres(postgres) => postgres.read(name, body).await,
        };
        measure.end(ended).result
    }

    async fn attempt<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        let measure = Measure::start(name, &self.0.clock);
        let ended = match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.write(name, body).await,
            Engine::Postgres(postgres) => {
                let (ended, appended) = postgres.write(name, body).await;
                if appended {
                    self.0.nudge.notify_one();
                }
                ended
            }
        };
        measure.end(ended)
    }

    /// A write with a time limit of `patience` per statement on PostgreSQL, for migrations.
    pub(crate) async fn write_patiently<T, E: From<Error>>(
        &self,
        name: &'static str,
        patience: Duration,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.write(name, body).await.result,
            Engine::Postgres(postgres) => postgres.write_patiently(name, patience, body).await.result,
        }
    }

    /// Number of parameters and columns of a statement on this engine; `None` if it is not for this
    /// engine.
    pub(crate) async fn shape(&self, sql: &crate::Sql) -> Option<Result<(usize, usize), Error>> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => Some(sqlite.shape(sql.sqlite()?).await),
            Engine::Postgres(postgres) => Some(postgres.shape(sql.postgres()?).await),
        }
    }
}

/// The attempts of one [`transaction!`](crate::transaction).
#[doc(hidden)]
pub struct Attempts<'d> {
    db: &'d Db,
    name: &'static str,
    made: u32,
    began: Duration,
}

impl<'d> Attempts<'d> {
    /// Starts with no attempts made.
    pub fn new(db: &'d Db, name: &'static str) -> Self {
        Self { db, name, made: 0, began: db.0.clock.ticks() }
    }

    /// Makes one attempt. `None` means that it failed, may succeed if retried, and that the backoff
    /// is over.
    pub async fn make<T, E: From<Error>>(
        &mut self,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let ended = self.db.attempt(self.name, body).await;
        self.made += 1;
        let late = self.db.0.clock.ticks().saturating_sub(self.began) >= RETRY_WITHIN;
        if ended.failure != Some(Kind::Retry) || self.made >= MAX_ATTEMPTS || late {
            return Some(ended.result);
        }
        metrics::counter!("urr_db_retries_total", "transaction" => self.name).increment(1);
        let [random] = self.db.0.ids.bytes::<1>();
        tokio::time::sleep(pause(self.made, random)).await;
        None
    }
}

/// The backoff after attempt number `made`, between half and all of its nominal length.
fn pause(made: u32, random: u8) -> Duration {
    let whole = FIRST_PAUSE * 2_u32.pow(made.min(MAX_ATTEMPTS) - 1);
    whole / 2 + whole * u32::from(random) / (2 * 255)
}

/// [`Db::write`] with retries (bounded, counted in a metric, with jittered backoff) after a busy
/// database, a deadlock or a serialisation failure. Write the body as a literal `async |tx: &mut
/// Tx<'_>| { … }`. It may run more than once, so it must not consume what it captures.
///
/// ```
/// # use urr_db::{Db, Error, Tx, statements, transaction};
/// statements! { FREE = "delete from holds where id = $1"; }
/// async fn free(db: &Db, id: i64) -> Result<bool, Error> {
///     transaction!(db, "tickets.free", async |tx: &mut Tx<'_>| {
///         Ok(tx.execute(&FREE, &[&id]).await? == 1)
///     })
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! transaction {
    ($db:expr, $name:expr, $body:expr $(,)?) => {{
        let db: &$crate::Db = &$db;
        let mut attempts = $crate::Attempts::new(db, $name);
        loop {
            if let Some(result) = attempts.make($body).await {
                break result;
            }
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_and_stays_above_half_its_nominal_length() {
        for (made, whole) in [(1, 5), (2, 10), (3, 20), (4, 40)] {
            let whole = Duration::from_millis(whole);
            assert_eq!(pause(made, 0), whole / 2);
            assert_eq!(pause(made, 255), whole);
        }
    }
}
