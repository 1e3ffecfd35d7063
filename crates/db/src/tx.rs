//! The transaction handle: five ways to run a statement, the same on both engines.

use urr_kernel::{Scalar, Value};

use crate::{
    EngineKind, Error, Kind, Sql,
    postgres::{PostgresTx, column},
    sqlite::{self, value},
};

/// Maximum rows per statement. The largest legitimate result is a stadium's 100,000 seats, doubled
/// for headroom. A statement that returns more is missing its LIMIT.
pub const MAX_ROWS: usize = 200_000;

/// An open transaction. It commits when its body returns `Ok`. It rolls back on `Err`, on a panic,
/// and when the body's future is dropped.
///
/// A statement that fails, or whose future is dropped, aborts the transaction: later statements are
/// rejected and the body's `Ok` is turned into an error. PostgreSQL works like that; SQLite would
/// continue, so the same rule is enforced for it.
pub struct Tx<'t> {
    pub(crate) engine: Engine<'t>,
    pub(crate) failed: Option<Kind>,
    pub(crate) appended: bool,
}

pub(crate) enum Engine<'t> {
    Sqlite(&'t mut rusqlite::Connection),
    Postgres(PostgresTx<'t>),
}

impl<'t> Tx<'t> {
    pub(crate) fn new(engine: Engine<'t>) -> Self {
        Self { engine, failed: None, appended: false }
    }

    /// The engine, for the few functions that need a statement per engine.
    pub fn engine_kind(&self) -> EngineKind {
        match self.engine {
            Engine::Sqlite(_) => EngineKind::Sqlite,
            Engine::Postgres(_) => EngineKind::Postgres,
        }
    }

    /// Runs a statement and returns the number of rows changed.
    pub async fn execute(&mut self, sql: &'static Sql, params: &[&dyn Scalar]) -> Result<u64, Error> {
        self.begin(sql)?;
        let done = match &mut self.engine {
            Engine::Sqlite(conn) => sqlite::execute(conn, sql, params),
            Engine::Postgres(tx) => tx.execute(sql, params).await,
        };
        self.note(done)
    }

    /// Runs a statement once per set of parameters and returns the number of rows each changed. The
    /// statement is looked up once, which on SQLite saves much of the cost of a small statement.
    pub async fn execute_each<const N: usize>(
        &mut self,
        sql: &'static Sql,
        rows: &[[&dyn Scalar; N]],
    ) -> Result<Vec<u64>, Error> {
        self.begin(sql)?;
        let done = match &mut self.engine {
            Engine::Sqlite(conn) => sqlite::execute_each(conn, sql, rows),
            Engine::Postgres(tx) => tx.execute_each(sql, rows).await,
        };
        self.note(done)
    }

    /// Returns the only row. No row, or more than one, is a bug in the statement.
    pub async fn one<T>(
        &mut self,
        sql: &'static Sql,
        params: &[&dyn Scalar],
        map: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let found = self.optional(sql, params, map).await?;
        found.ok_or_else(|| Error::bug(format!("{} returned no row", sql.name())))
    }

    /// Returns the row, if any. More than one is a bug in the statement.
    pub async fn optional<T>(
        &mut self,
        sql: &'static Sql,
        params: &[&dyn Scalar],
        map: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut found = self.rows(sql, params, 1, map).await?;
        Ok(found.pop())
    }

    /// Returns all rows, at most [`MAX_ROWS`].
    pub async fn all<T>(
        &mut self,
        sql: &'static Sql,
        params: &[&dyn Scalar],
        map: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.rows(sql, params, MAX_ROWS, map).await
    }

    async fn rows<T>(
        &mut self,
        sql: &'static Sql,
        params: &[&dyn Scalar],
        most: usize,
        map: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.begin(sql)?;
        let mut rows = Rows { sql, most, map, found: Vec::new() };
        let done = match &mut self.engine {
            Engine::Sqlite(conn) => sqlite::query(conn, sql, params, |row| rows.take(&row)),
            Engine::Postgres(tx) => tx.query(sql, params, |row| rows.take(&row)).await,
        };
        self.note(done)?;
        Ok(rows.found)
    }

    /// Runs several statements without parameters, as in a migration.
    pub(crate) async fn script(&mut self, text: &str) -> Result<(), Error> {
        let done = match &mut self.engine {
            Engine::Sqlite(conn) => {
                conn.execute_batch(text).map_err(|e| Error::sqlite("the script failed", e))
            }
            Engine::Postgres(tx) => tx.script(text).await,
        };
        self.note(done)
    }

    /// A statement counts as failed until it completes. A body that drops a statement's future and
    /// continues does not know its outcome, and PostgreSQL would turn the COMMIT of an aborted
    /// transaction into a silent ROLLBACK.
    fn begin(&mut self, sql: &Sql) -> Result<(), Error> {
        match self.failed.replace(Kind::Bug) {
            None => Ok(()),
            Some(kind) => {
                self.failed = Some(kind);
                Err(Error::new(kind, format!("{} was called after a failed statement", sql.name())))
            }
        }
    }

    fn note<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        self.failed = done.as_ref().err().map(Error::kind);
        done
    }

    /// Decides whether to commit: the body's `Ok` counts only if every statement succeeded.
    pub(crate) fn verdict<T, E: From<Error>>(&self, name: &str, out: Result<T, E>) -> Verdict<T, E> {
        match (out, self.failed) {
            (Ok(value), None) => Verdict::Commit(value),
            (Ok(_), Some(_)) => {
                let error = Error::bug(format!(
                    "{name} returned Ok although one of its statements failed or was dropped"
                ));
                Verdict::Refuse(E::from(error), Some(Kind::Bug))
            }
            (Err(error), failed) => Verdict::Refuse(error, failed),
        }
    }
}

/// What to do with a transaction after its body has returned.
pub(crate) enum Verdict<T, E> {
    Commit(T),
    Refuse(E, Option<Kind>),
}

/// How a transaction ended: the caller's result, and the kind of database failure, if any. An `Err`
/// that the body itself chose is not a database failure.
pub(crate) struct Ended<T, E> {
    pub(crate) result: Result<T, E>,
    pub(crate) failure: Option<Kind>,
}

impl<T, E: From<Error>> Ended<T, E> {
    pub(crate) fn ok(value: T) -> Self {
        Self { result: Ok(value), failure: None }
    }

    pub(crate) fn refused(error: E, failure: Option<Kind>) -> Self {
        Self { result: Err(error), failure }
    }

    pub(crate) fn failed(error: Error) -> Self {
        Self { failure: Some(error.kind()), result: Err(E::from(error)) }
    }
}

struct Rows<T, F> {
    sql: &'static Sql,
    most: usize,
    map: F,
    found: Vec<T>,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T, Error>> Rows<T, F> {
    fn take(&mut self, row: &Row<'_>) -> Result<(), Error> {
        if self.found.len() == self.most {
            return Err(Error::bug(format!("{} returned more than {} rows", self.sql.name(), self.most)));
        }
        self.found.push((self.map)(row)?);
        Ok(())
    }
}

/// One row of a result.
pub struct Row<'r> {
    pub(crate) sql: &'static Sql,
    pub(crate) columns: Columns<'r>,
}

pub(crate) enum Columns<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    /// The value of a column, counted from zero. A conversion error names the statement and the
    /// column.
    pub fn get<T: Scalar>(&self, column: usize) -> Result<T, Error> {
        let wrong = |source: Box<dyn std::error::Error + Send + Sync>| {
            Error::bug(format!("{}: column {column} cannot be read", self.sql.name())).because(source)
        };
        let value: Value<'_> = match self.columns {
            Columns::Sqlite(row) => value::from_row(row, column).map_err(wrong)?,
            Columns::Postgres(row) => column::from_row(row, column).map_err(wrong)?,
        };
        T::from_value(value).map_err(|e| wrong(e.into()))
    }
}
