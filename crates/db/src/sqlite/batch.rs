//! A batch: the writes that share one commit.

use std::process;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::run;
use crate::{
    Error,
    tx::{Ended, Engine, Tx, Verdict},
};

/// The whole batch was rolled back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

/// The write connection and its uncommitted writes.
pub(super) struct Batch {
    conn: Connection,
    open: bool,
    waiting: Vec<oneshot::Sender<Result<(), Lost>>>,
    appended: bool,
    /// The batch is full at this many writes: the number of waiting writers when it began.
    pub(super) quota: usize,
}

impl Batch {
    pub(super) fn new(conn: Connection) -> Self {
        Self { conn, open: false, waiting: Vec::new(), appended: false, quota: 0 }
    }

    /// Whether it has uncommitted writes.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Number of writes waiting for the commit.
    pub(super) fn writes(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the writes that wait for the commit.
    pub(super) fn take_waiting(&mut self) -> Vec<oneshot::Sender<Result<(), Lost>>> {
        std::mem::take(&mut self.waiting)
    }

    /// Opens the batch, or a savepoint if it is already open.
    pub(super) fn begin(&mut self) -> Result<Part<'_>, Error> {
        let is_first = !self.open;
        debug_assert_eq!(is_first, self.waiting.is_empty(), "an open batch contains at least one write");
        if is_first {
            run(&self.conn, "begin immediate").map_err(|e| Error::sqlite("beginning a write failed", e))?;
            self.open = true;
        } else if let Err(error) = run(&self.conn, "savepoint s") {
            self.abandon();
            return Err(Error::sqlite("beginning a write failed", error));
        }
        Ok(Part { batch: self, is_first, kept: false })
    }

    pub(super) fn join(&mut self) -> oneshot::Receiver<Result<(), Lost>> {
        let (sender, committed) = oneshot::channel();
        self.waiting.push(sender);
        committed
    }

    /// Commits the batch. Returns whether it appended to the outbox.
    pub(super) fn commit(&mut self) -> Result<bool, Lost> {
        match run(&self.conn, "commit") {
            Ok(()) => {
                self.open = false;
                Ok(std::mem::take(&mut self.appended))
            }
            // The WAL could not grow: no commit record was written, and space may become available
            // again.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                tracing::error!(error = %error, "disk full: batch rolled back, its requests get 503; free disk space");
                self.abandon();
                Err(Lost)
            }
            // After a failed fsync the state on disk is unknown, and a retry may report success for
            // lost pages.
            Err(error) => stop("COMMIT failed", &error),
        }
    }

    /// Rolls the whole batch back and fails every write in it.
    fn abandon(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = run(&self.conn, "rollback")
        {
            stop("ROLLBACK failed", &error);
        }
        self.open = false;
        self.appended = false;
        for write in self.waiting.drain(..) {
            let _ = write.send(Err(Lost));
        }
    }
}

/// One write of the batch. Dropping it without keeping it rolls it back and leaves the other writes
/// alone.
///
/// The first write has no savepoint, because SQLite would copy every page before changing it.
/// Rolling it back rolls back the whole batch.
pub(super) struct Part<'b> {
    batch: &'b mut Batch,
    is_first: bool,
    kept: bool,
}

impl Part<'_> {
    pub(super) async fn run<T, E: From<Error>>(
        mut self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        let (verdict, appended) = {
            let mut tx = Tx::new(Engine::Sqlite(&mut self.batch.conn));
            let out = body(&mut tx).await;
            (tx.verdict(name, out), tx.appended)
        };
        match verdict {
            Verdict::Commit(value) => match self.keep(appended) {
                Ok(()) => Ended::ok(value),
                Err(error) => Ended::failed(error),
            },
            Verdict::Refuse(error, failure) => Ended::refused(error, failure),
        }
    }

    fn keep(&mut self, appended: bool) -> Result<(), Error> {
        if !self.is_first {
            run(&self.batch.conn, "release s").map_err(|e| Error::sqlite("ending a write failed", e))?;
        } else if self.batch.conn.is_autocommit() {
            // Without an open transaction the next write would autocommit.
            return Err(Error::unavailable("SQLite has ended the transaction of a write"));
        }
        self.kept = true;
        self.batch.appended |= appended;
        Ok(())
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let batch = &mut *self.batch;
        // On a full disk or an I/O error SQLite itself rolls back the whole transaction, with all
        // writes of the batch.
        let undone = !self.is_first
            && !batch.conn.is_autocommit()
            && run(&batch.conn, "rollback to s").and_then(|()| run(&batch.conn, "release s")).is_ok();
        if !undone {
            batch.abandon();
        }
    }
}

/// Aborts the process. The disk is consistent and has every acknowledged write; memory may not
/// match it.
fn stop(what: &str, error: &rusqlite::Error) -> ! {
    tracing::error!(error = %error, "{what}: stopping, because only recovery from disk is safe");
    eprintln!("urr: {what}: {error}: stopping, because only recovery from disk is safe");
    process::abort()
}
