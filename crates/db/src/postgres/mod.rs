//! The server engine: a bounded pool per domain, every wait with an end, and recovery without help.

pub(crate) mod column;
mod config;
mod connections;
mod provision;
mod tls;

use std::{pin::pin, time::Duration};

use deadpool_postgres::{ClientWrapper, Object};
use futures_util::{FutureExt as _, TryStreamExt as _};
use tokio::time::{error::Elapsed, timeout};
use tokio_postgres::error::SqlState;
use urr_kernel::Scalar;

use self::{column::Params, connections::Connections};
pub use self::{config::PostgresConfig, provision::provision as postgres_provision};
use crate::{
    Domain, Error, Kind, Sql,
    tx::{Columns, Ended, Engine, Row, Tx, Verdict},
};

/// Whether a transaction may change anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
}

/// One domain's schema. Connections act as the domain's role and see its schema only.
pub(crate) struct Postgres {
    connections: Connections,
    /// How long one statement may take.
    statement: Duration,
}

impl Postgres {
    pub(crate) fn new(config: &PostgresConfig, domain: &Domain) -> Result<Self, Error> {
        Ok(Self { connections: Connections::new(config, domain)?, statement: config.statement })
    }

    pub(crate) async fn write<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> (Ended<T, E>, bool) {
        self.run(name, Access::Write, self.statement, body).await
    }

    pub(crate) async fn read<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        self.run(name, Access::Read, self.statement, body).await.0
    }

    /// Like [`Postgres::write`] for work that may take long, such as a migration: the body lifts the server's limits.
    pub(crate) async fn write_patiently<T, E: From<Error>>(
        &self,
        name: &'static str,
        patience: Duration,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        self.run(name, Access::Write, patience, body).await.0
    }

    /// Runs a body in a transaction; says also whether it committed something in the outbox.
    async fn run<T, E: From<Error>>(
        &self,
        name: &'static str,
        access: Access,
        limit: Duration,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> (Ended<T, E>, bool) {
        let mut lent = match self.connections.get().await {
            Ok(lent) => lent,
            Err(error) => return (Ended::failed(error), false),
        };
        let done = self.run_on(lent.connection(), name, access, limit, body).await;
        match done.line {
            Line::Quiet => lent.give_back(),
            Line::Busy => drop(lent),
            Line::Lost => lent.lose(),
        }
        let committed = done.ended.result.is_ok();
        (done.ended, committed && done.appended)
    }

    async fn run_on<T, E: From<Error>>(
        &self,
        conn: &mut Object,
        name: &'static str,
        access: Access,
        limit: Duration,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Done<T, E> {
        let mut tx = Tx::new(Engine::Postgres(PostgresTx::new(conn, access, limit)));
        let out = body(&mut tx).await;
        let verdict = tx.verdict(name, out);
        let appended = tx.appended;
        let Engine::Postgres(tx) = tx.engine else { unreachable!("the transaction was made for PostgreSQL") };
        let mut line = tx.line;
        let ended = match verdict {
            // Nothing to keep: the rollback is sent without waiting for it, ahead of the connection's next use.
            Verdict::Refuse(error, failure) => Ended::refused(error, failure),
            Verdict::Commit(value) if access == Access::Read => Ended::ok(value),
            Verdict::Commit(value) => match tx.commit().await {
                Ok(()) => Ended::ok(value),
                Err(error) => {
                    if error.kind() == Kind::UnknownCommit {
                        line = Line::Lost;
                    }
                    Ended::failed(error)
                }
            },
        };
        Done { ended, appended, line }
    }

    /// How many parameters a statement takes and how many columns it gives, and what of them cannot be carried.
    pub(crate) async fn shape(&self, text: &str) -> Result<(usize, usize), Error> {
        let mut lent = self.connections.get().await?;
        let prepared = lent.connection().prepare(text).await;
        lent.give_back();
        let statement = prepared.map_err(|e| Error::postgres("it does not prepare", e))?;
        let columns = statement.columns().iter().map(tokio_postgres::Column::type_);
        if let Some(unknown) = statement.params().iter().chain(columns).find(|ty| !column::is_known(ty)) {
            return Err(Error::bug(format!("it uses the type {unknown}, which needs a cast")));
        }
        Ok((statement.params().len(), statement.columns().len()))
    }
}

/// What became of a transaction and of its connection.
struct Done<T, E> {
    ended: Ended<T, E>,
    appended: bool,
    line: Line,
}

/// What a transaction leaves on its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing but perhaps a ROLLBACK, which the server deals with at once.
    Quiet,
    /// A statement whose answer nobody waits for.
    Busy,
    /// The connection is gone, does not answer, or leads to a server that is no use any more.
    Lost,
}

/// A transaction on a connection, begun by its first statement. Dropping it sends ROLLBACK behind whatever is still running.
pub(crate) struct PostgresTx<'t> {
    client: &'t ClientWrapper,
    access: Access,
    /// How long one statement may take.
    limit: Duration,
    line: Line,
    /// Between BEGIN and COMMIT.
    open: bool,
}

impl<'t> PostgresTx<'t> {
    fn new(client: &'t ClientWrapper, access: Access, limit: Duration) -> Self {
        Self { client, access, limit, line: Line::Quiet, open: false }
    }

    /// Does `work`, behind BEGIN if it is the first.
    async fn do_within<T>(
        &mut self,
        what: &str,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.line = Line::Busy;
        let opening = (!self.open).then(|| {
            self.client.batch_execute(match self.access {
                Access::Write => "begin",
                // One snapshot for all statements of the read.
                Access::Read => "begin isolation level repeatable read, read only",
            })
        });
        self.open = true;
        // In a box: a future that is a part of every transaction should be small. BEGIN is waited for: if it failed alone, a statement
        // behind it would commit by itself.
        let both = Box::pin(async {
            if let Some(begin) = opening {
                begin.await?;
            }
            work.await
        });
        let done = timeout(self.limit, both).await;
        self.settle(what, done)
    }

    /// Commits, and tells apart "no" from "no answer".
    async fn commit(mut self) -> Result<(), Error> {
        if !self.open {
            // Not a single statement: there is nothing to keep.
            return Ok(());
        }
        let unknown =
            || Error::new(Kind::UnknownCommit, "the connection was lost at COMMIT: it may have happened");
        let done = timeout(self.limit, self.client.batch_execute("commit")).await;
        self.open = false;
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let is_an_answer = error.code().is_some();
                let refused = Error::postgres("COMMIT was refused", error);
                // A server that goes away mid-commit (57P01 and friends) has decided, but not told.
                if !is_an_answer || refused.kind() == Kind::Unavailable {
                    Err(unknown().because(refused))
                } else {
                    Err(refused)
                }
            }
            Err(_) => Err(unknown()),
        }
    }

    pub(crate) async fn execute(&mut self, sql: &'static Sql, params: &[&dyn Scalar]) -> Result<u64, Error> {
        let (text, client) = (text(sql)?, self.client);
        let work = async {
            let statement = client.prepare_cached(text).await?;
            client.execute_raw(&statement, Params(params.iter())).await
        };
        self.do_within(sql.name(), work).await
    }

    /// A round trip for each: where there are many, a statement that takes them all is better.
    pub(crate) async fn execute_each<const N: usize>(
        &mut self,
        sql: &'static Sql,
        rows: &[[&dyn Scalar; N]],
    ) -> Result<Vec<u64>, Error> {
        let mut changed = Vec::with_capacity(rows.len());
        for params in rows {
            changed.push(self.execute(sql, params).await?);
        }
        Ok(changed)
    }

    pub(crate) async fn query(
        &mut self,
        sql: &'static Sql,
        params: &[&dyn Scalar],
        mut take: impl FnMut(Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (text, client) = (text(sql)?, self.client);
        let mut taken = Ok(());
        let work = async {
            let statement = client.prepare_cached(text).await?;
            let mut rows = pin!(client.query_raw(&statement, Params(params.iter())).await?);
            while let Some(row) = rows.try_next().await? {
                taken = take(Row { sql, columns: Columns::Postgres(&row) });
                if taken.is_err() {
                    break;
                }
            }
            Ok(())
        };
        self.do_within(sql.name(), work).await?;
        taken
    }

    pub(crate) async fn script(&mut self, text: &str) -> Result<(), Error> {
        let client = self.client;
        self.do_within("the script", client.batch_execute(text)).await
    }

    /// The server has its own, slightly shorter limit; ours is for a server that cannot keep it.
    fn settle<T>(
        &mut self,
        what: &str,
        done: Result<Result<T, tokio_postgres::Error>, Elapsed>,
    ) -> Result<T, Error> {
        let lost = done.is_err() || self.client.is_closed();
        self.line = if lost { Line::Lost } else { Line::Quiet };
        let Ok(answered) = done else {
            let limit = self.limit.as_millis();
            return Err(Error::unavailable(format!("{what} was not answered within {limit} ms")));
        };
        answered.map_err(|e| {
            let read_only = e.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION);
            let error = Error::postgres(format!("{what} failed"), e);
            match self.access {
                // The server has become a standby; the next connection looks for one that writes.
                Access::Write if read_only => self.line = Line::Lost,
                Access::Read if read_only => return error.of_kind(Kind::Bug),
                _ => {}
            }
            error
        })
    }
}

impl Drop for PostgresTx<'_> {
    fn drop(&mut self) {
        if self.open {
            // The first poll sends it; nobody waits for the answer.
            let _ = self.client.batch_execute("rollback").now_or_never();
        }
    }
}

fn text(sql: &'static Sql) -> Result<&'static str, Error> {
    sql.postgres().ok_or_else(|| Error::bug(format!("{} is not for PostgreSQL", sql.name())))
}
