//! The PostgreSQL engine: one bounded pool per domain, a timeout on every wait, automatic recovery.

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

/// Read-only or read-write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
}

/// One domain's schema. Connections use the domain's role and see only its schema.
pub(crate) struct Postgres {
    connections: Connections,
    /// Time limit of one statement.
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

    /// Like [`Postgres::write`], for long work such as a migration. The body lifts the server's
    /// timeouts.
    pub(crate) async fn write_patiently<T, E: From<Error>>(
        &self,
        name: &'static str,
        patience: Duration,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        self.run(name, Access::Write, patience, body).await.0
    }

    /// Runs a body in a transaction; also returns whether it committed a row to the outbox.
    async fn run<T, E: From<Error>>(
        &self,
        name: &'static str,
        access: Access,
        limit: Duration,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> (Ended<T, E>, bool) {
        let mut pooled = match self.connections.get().await {
            Ok(pooled) => pooled,
            Err(error) => return (Ended::failed(error), false),
        };
        let done = self.run_on(pooled.connection(), name, access, limit, body).await;
        match done.line {
            Line::Quiet => pooled.give_back(),
            Line::Busy => drop(pooled),
            Line::Lost => pooled.lose(),
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
            // Nothing to commit: dropping `tx` sends ROLLBACK without waiting for the reply.
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

    /// Number of parameters and columns of a statement. Types without a conversion are an error.
    pub(crate) async fn shape(&self, text: &str) -> Result<(usize, usize), Error> {
        let mut pooled = self.connections.get().await?;
        let prepared = pooled.connection().prepare(text).await;
        pooled.give_back();
        let statement = prepared.map_err(|e| Error::postgres("it does not prepare", e))?;
        let columns = statement.columns().iter().map(tokio_postgres::Column::type_);
        if let Some(unknown) = statement.params().iter().chain(columns).find(|ty| !column::is_known(ty)) {
            return Err(Error::bug(format!("it uses the type {unknown}, which needs a cast")));
        }
        Ok((statement.params().len(), statement.columns().len()))
    }
}

/// The result of a transaction and the state of its connection.
struct Done<T, E> {
    ended: Ended<T, E>,
    appended: bool,
    line: Line,
}

/// The state in which a transaction leaves its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Idle, or finishing a ROLLBACK.
    Quiet,
    /// A statement is still running; its caller is gone.
    Busy,
    /// Closed, unresponsive, or connected to a server that became read-only.
    Lost,
}

/// A transaction, begun by its first statement. Drop sends ROLLBACK behind any statement that is
/// still running.
pub(crate) struct PostgresTx<'t> {
    client: &'t ClientWrapper,
    access: Access,
    /// Time limit of one statement.
    limit: Duration,
    line: Line,
    /// Between BEGIN and COMMIT.
    open: bool,
}

impl<'t> PostgresTx<'t> {
    fn new(client: &'t ClientWrapper, access: Access, limit: Duration) -> Self {
        Self { client, access, limit, line: Line::Quiet, open: false }
    }

    /// Runs `work` within the time limit, after BEGIN if it is the first statement.
    async fn do_within<T>(
        &mut self,
        what: &str,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.line = Line::Busy;
        let opening = (!self.open).then(|| {
            self.client.batch_execute(match self.access {
                Access::Write => "begin",
                // One snapshot for all statements of the transaction.
                Access::Read => "begin isolation level repeatable read, read only",
            })
        });
        self.open = true;
        // Boxed to keep the future of every transaction small. BEGIN is awaited: if it failed
        // alone, the statement behind it would autocommit.
        let both = Box::pin(async {
            if let Some(begin) = opening {
                begin.await?;
            }
            work.await
        });
        let done = timeout(self.limit, both).await;
        self.settle(what, done)
    }

    /// Commits. Distinguishes a rejected COMMIT from a COMMIT without a reply.
    async fn commit(mut self) -> Result<(), Error> {
        if !self.open {
            // No statement ran: there is nothing to commit.
            return Ok(());
        }
        let unknown = || {
            Error::new(
                Kind::UnknownCommit,
                "connection lost during COMMIT: the change may or may not be applied",
            )
        };
        let done = timeout(self.limit, self.client.batch_execute("commit")).await;
        self.open = false;
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let is_an_answer = error.code().is_some();
                let refused = Error::postgres("COMMIT was rejected", error);
                // A server that shuts down during COMMIT (such as 57P01) may have committed
                // already.
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

    /// One round trip per row. For many rows, use one statement that takes them all.
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

    /// The server's own, slightly shorter timeout normally fires first; ours is for a stuck server.
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
                // The server became a standby; the next connection looks for the primary.
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
            // The first poll sends it. The reply is not needed.
            let _ = self.client.batch_execute("rollback").now_or_never();
        }
    }
}

fn text(sql: &'static Sql) -> Result<&'static str, Error> {
    sql.postgres().ok_or_else(|| Error::bug(format!("{} is not for PostgreSQL", sql.name())))
}
