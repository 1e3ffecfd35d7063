//! The one write connection, and group commit.
//!
//! Whoever holds the lock runs its body in a savepoint of the open batch. The first of a batch wakes the committer,
//! which queues for the same fair lock: everybody ahead of it shares one COMMIT and one fsync.
//!
//! What a body saw may be its neighbours' unsaved work, so *every* answer, a refusal too, waits for the commit of the
//! batch it was made in. If the batch is lost nobody in it is told anything but that.
//!
//! A write's future may be dropped at any await. While it waits for the lock nothing has happened. While its body runs,
//! [`Savepoint`] rolls back in its drop. While it waits for the commit, the work is in the batch and commits without a
//! listener, just as it would when a client hangs up on a PostgreSQL server. The committer is a thread and no
//! task, so nothing that happens to a future or a runtime can keep a batch from being committed.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{Mutex, Notify, oneshot};

use super::run;
use crate::{
    Error,
    tx::{Ended, Engine, Tx, Verdict},
};

/// The most writes that may wait at once, for the lock or for a commit. At 50,000 writes per second the last in line
/// waits 0.4 s; on a disk that stands still, 20,000 waiting requests of a few kB are what memory can bear.
const MAX_WAITING: usize = 20_000;

pub(super) struct Writer {
    shared: Arc<Shared>,
    group_commit: bool,
    /// Dropped first when the database closes: the committer commits what is left and ends.
    wake: Option<SyncSender<()>>,
    committer: Option<JoinHandle<()>>,
}

struct Shared {
    batch: Mutex<Batch>,
    waiting: AtomicUsize,
    nudge: Arc<Notify>,
}

/// The batch was rolled back as a whole: nothing in it happened.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lost;

struct Batch {
    conn: Connection,
    open: bool,
    waiting: Vec<oneshot::Sender<Result<(), Lost>>>,
    appended: bool,
}

impl Writer {
    pub(super) fn start(conn: Connection, group_commit: bool, nudge: Arc<Notify>) -> Result<Self, Error> {
        let batch = Batch { conn, open: false, waiting: Vec::new(), appended: false };
        let shared = Arc::new(Shared { batch: Mutex::new(batch), waiting: AtomicUsize::new(0), nudge });
        let (wake, woken) = sync_channel(1);
        let for_committer = Arc::clone(&shared);
        let committer = thread::Builder::new()
            .name("urr-db-commit".to_owned())
            .spawn(move || commit_batches(&for_committer, &woken))
            .map_err(|e| Error::unavailable("the thread that commits could not be started").because(e))?;
        Ok(Self { shared, group_commit, wake: Some(wake), committer: Some(committer) })
    }

    pub(super) async fn write<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        let Some(_place) = Place::take(&self.shared.waiting) else {
            return Ended::failed(Error::unavailable(format!("{MAX_WAITING} writes are waiting already")));
        };
        let mut batch = self.shared.batch.lock().await;
        let ended = match batch.begin() {
            Ok(savepoint) => savepoint.run(name, body).await,
            Err(error) => Ended::failed(error),
        };
        if !batch.open {
            // Refused, and nobody else's work was in the batch: there is nothing to wait for.
            return ended;
        }
        if !self.group_commit {
            return match batch.commit() {
                Ok(appended) => {
                    drop(batch);
                    self.shared.tell(appended);
                    ended
                }
                Err(Lost) => Ended::failed(lost()),
            };
        }
        let committed = batch.join();
        if batch.waiting.len() == 1 {
            self.wake_committer();
        }
        drop(batch);
        match committed.await {
            Ok(Ok(())) => ended,
            Ok(Err(Lost)) | Err(_) => Ended::failed(lost()),
        }
    }

    fn wake_committer(&self) {
        if let Some(wake) = &self.wake {
            // Full means that it has been woken already and will see this batch.
            let _ = wake.try_send(());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(committer) = self.committer.take()
            && committer.join().is_err()
        {
            tracing::error!("the committer had panicked");
        }
    }
}

impl Shared {
    fn tell(&self, appended: bool) {
        if appended {
            self.nudge.notify_one();
        }
    }
}

/// Commits batch after batch until the database is closed.
fn commit_batches(shared: &Shared, woken: &Receiver<()>) {
    let _stop = StopOnPanic;
    loop {
        let more = woken.recv().is_ok();
        let mut batch = shared.batch.blocking_lock();
        if batch.open {
            let waiting = std::mem::take(&mut batch.waiting);
            let committed = batch.commit();
            drop(batch);
            metrics::histogram!("urr_db_group_commit_writes").record(count(waiting.len()));
            shared.tell(committed == Ok(true));
            for write in waiting {
                // Nobody listens any more when the caller was dropped; the write counts all the same.
                let _ = write.send(committed.map(|_| ()));
            }
        }
        if !more {
            return;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a batch is far smaller than 2^52")]
fn count(writes: usize) -> f64 {
    writes as f64
}

fn lost() -> Error {
    Error::unavailable("the batch that this write belonged to was rolled back")
}

/// A place in the line for the lock or the commit.
struct Place<'w>(&'w AtomicUsize);

impl<'w> Place<'w> {
    fn take(waiting: &'w AtomicUsize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Batch {
    /// Opens the batch if need be, and a savepoint in it.
    fn begin(&mut self) -> Result<Savepoint<'_>, Error> {
        if !self.open {
            run(&self.conn, "begin immediate").map_err(|e| Error::sqlite("beginning a write failed", e))?;
            self.open = true;
        }
        if let Err(error) = run(&self.conn, "savepoint s") {
            self.abandon();
            return Err(Error::sqlite("beginning a write failed", error));
        }
        Ok(Savepoint { batch: self, kept: false })
    }

    fn join(&mut self) -> oneshot::Receiver<Result<(), Lost>> {
        let (sender, committed) = oneshot::channel();
        self.waiting.push(sender);
        committed
    }

    /// Makes the batch durable; says whether it put anything in the outbox.
    fn commit(&mut self) -> Result<bool, Lost> {
        match run(&self.conn, "commit") {
            Ok(()) => {
                self.open = false;
                Ok(std::mem::take(&mut self.appended))
            }
            // The log could not grow: no commit record was written and the disk may get room again.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                tracing::error!(error = %error, "the disk is full: a batch of writes was refused");
                self.abandon();
                Err(Lost)
            }
            // After a failed fsync nobody knows what is on disk, and a second try may claim success for lost pages.
            Err(error) => stop("COMMIT failed", &error),
        }
    }

    /// Rolls the whole batch back and tells everybody in it.
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

/// One body's part of the batch. Unless it is kept, dropping it takes the part back and leaves the neighbours' alone.
struct Savepoint<'b> {
    batch: &'b mut Batch,
    kept: bool,
}

impl Savepoint<'_> {
    async fn run<T, E: From<Error>>(
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
        run(&self.batch.conn, "release s").map_err(|e| Error::sqlite("ending a write failed", e))?;
        self.kept = true;
        self.batch.appended |= appended;
        Ok(())
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let batch = &mut *self.batch;
        // A full disk or an I/O error makes SQLite roll the whole transaction back by itself, neighbours and all; and a
        // batch without neighbours need not stay open.
        let alone = batch.waiting.is_empty();
        let undone = !batch.conn.is_autocommit()
            && !alone
            && run(&batch.conn, "rollback to s").and_then(|()| run(&batch.conn, "release s")).is_ok();
        if !undone {
            batch.abandon();
        }
    }
}

/// Without a committer every write would wait for ever.
struct StopOnPanic;

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            process::abort();
        }
    }
}

/// Stops the process. What is on disk is consistent and holds every acknowledged write; what is in memory may not be.
fn stop(what: &str, error: &rusqlite::Error) -> ! {
    tracing::error!(error = %error, "{what}: stopping, because only recovery from disk is safe");
    eprintln!("urr: {what}: {error}: stopping, because only recovery from disk is safe");
    process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_an_end_and_whoever_leaves_makes_room() {
        let waiting = AtomicUsize::new(MAX_WAITING - 1);
        let last = Place::take(&waiting);
        assert!(last.is_some());
        assert!(Place::take(&waiting).is_none());
        drop(last);
        assert!(Place::take(&waiting).is_some());
    }
}
