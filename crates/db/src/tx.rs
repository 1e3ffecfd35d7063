//! A transaction as a body sees it: five ways to run a statement, the same on both engines.

use urr_kernel::{Scalar, Value};

use crate::{
    EngineKind, Error, Kind, Sql,
    postgres::{PostgresTx, column},
    sqlite::{self, value},
};

/// The most rows one statement may give back: the largest honest answer is a stadium's 100,000 seats, and twice that
/// leaves room. A statement that wants more lacks its LIMIT.
pub const MAX_ROWS: usize = 200_000;

/// An open transaction. It commits when the body that got it returns `Ok`, and rolls back otherwise: on `Err`, on a
/// panic, and when the body is dropped half-way.
///
/// A statement that fails, or that the body stops waiting for, ends the transaction: later statements are refused and
/// the body's `Ok` is not believed. PostgreSQL works like that; SQLite would carry on, so it is held to the same rule.
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

    /// What it runs on: for the few functions that need a statement per engine.
    pub fn engine_kind(&self) -> EngineKind {
        match self.engine {
            Engine::Sqlite(_) => EngineKind::Sqlite,
            Engine::Postgres(_) => EngineKind::Postgres,
        }
    }

    /// Runs a statement and says how many rows it changed.
    pub async fn execute(&mut self, sql: &'static Sql, params: &[&dyn Scalar]) -> Result<u64, Error> {
        self.begin(sql)?;
        let done = match &mut self.engine {
            Engine::Sqlite(conn) => sqlite::execute(conn, sql, params),
            Engine::Postgres(tx) => tx.execute(sql, params).await,
        };
        self.note(done)
    }

    /// Runs a statement once for each row of parameters and says how many rows of the table each changed. It is looked up once for all
    /// of them, which on SQLite is a good part of what a small statement costs.
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

    /// The only row. None, or a second one, is a bug of the statement.
    pub async fn one<T>(
        &mut self,
        sql: &'static Sql,
        params: &[&dyn Scalar],
        map: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let found = self.optional(sql, params, map).await?;
        found.ok_or_else(|| Error::bug(format!("{} gave no row", sql.name())))
    }

    /// The row, if there is one. A second one is a bug of the statement.
    pub async fn optional<T>(
        &mut self,
        sql: &'static Sql,
        params: &[&dyn Scalar],
        map: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut found = self.rows(sql, params, 1, map).await?;
        Ok(found.pop())
    }

    /// Every row, at most [`MAX_ROWS`].
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

    /// Runs several statements without parameters: a migration.
    pub(crate) async fn script(&mut self, text: &str) -> Result<(), Error> {
        let done = match &mut self.engine {
            Engine::Sqlite(conn) => {
                conn.execute_batch(text).map_err(|e| Error::sqlite("the script failed", e))
            }
            Engine::Postgres(tx) => tx.script(text).await,
        };
        self.note(done)
    }

    /// Until a statement has answered it counts as failed. A body that gives up waiting for one and goes on does not know
    /// what became of it, and PostgreSQL would turn the COMMIT of a broken transaction into a silent ROLLBACK.
    fn begin(&mut self, sql: &Sql) -> Result<(), Error> {
        match self.failed.replace(Kind::Bug) {
            None => Ok(()),
            Some(kind) => {
                self.failed = Some(kind);
                Err(Error::new(kind, format!("{} came after a failed statement", sql.name())))
            }
        }
    }

    fn note<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        self.failed = done.as_ref().err().map(Error::kind);
        done
    }

    /// Judges what a body returned: its `Ok` counts only if every statement succeeded.
    pub(crate) fn verdict<T, E: From<Error>>(&self, name: &str, out: Result<T, E>) -> Verdict<T, E> {
        match (out, self.failed) {
            (Ok(value), None) => Verdict::Commit(value),
            (Ok(_), Some(_)) => {
                let error =
                    Error::bug(format!("{name} went on after a statement of it had failed or been given up"));
                Verdict::Refuse(E::from(error), Some(Kind::Bug))
            }
            (Err(error), failed) => Verdict::Refuse(error, failed),
        }
    }
}

/// What becomes of a transaction whose body has returned.
pub(crate) enum Verdict<T, E> {
    Commit(T),
    Refuse(E, Option<Kind>),
}

/// How a transaction ended: what the caller gets, and the database's part in it if it failed. The body's own refusal is
/// no failure.
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
            return Err(Error::bug(format!("{} gave more than {} rows", self.sql.name(), self.most)));
        }
        self.found.push((self.map)(row)?);
        Ok(())
    }
}

/// One row of an answer.
pub struct Row<'r> {
    pub(crate) sql: &'static Sql,
    pub(crate) columns: Columns<'r>,
}

pub(crate) enum Columns<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    /// The value of a column, counted from zero. A value that does not fit names the statement and the column.
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
