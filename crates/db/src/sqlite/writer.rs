//! The write connection and group commit.
//!
//! One writer at a time runs its body in the open batch: the first one opens the transaction, each
//! later one uses a savepoint. All writes of a batch share one COMMIT and one fsync.
//!
//! A body may have read uncommitted writes of the same batch, so *every* result, an `Err` too, is
//! returned only after the batch is committed. If the batch fails to commit, every write in it
//! returns the same error.
//!
//! A write's future may be dropped at any await. Before its turn nothing has happened. While its
//! body runs, [`Part`](super::batch::Part) rolls back in its drop. While it waits for the commit,
//! its work stays in the batch and is committed, just as when a client disconnects from a
//! PostgreSQL server during COMMIT. The committer is a thread, not a task, so a dropped future or
//! runtime cannot prevent a commit.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::Notify;

use super::{
    batch::{Batch, Lost},
    batch_queue::BatchQueue,
};
use crate::{
    Error,
    tx::{Ended, Tx},
};

/// Maximum writes waiting at once, for their turn or for a commit. At 50,000 writes per second the
/// last one waits 0.4 s. If the disk stalls, 20,000 waiting requests of a few kB fit in memory.
const MAX_WAITING: usize = 20_000;

pub(super) struct Writer {
    shared: Arc<Shared>,
    group_commit: bool,
    committer: Option<JoinHandle<()>>,
}

struct Shared {
    queue: BatchQueue,
    waiting: AtomicUsize,
    nudge: Arc<Notify>,
}

impl Writer {
    pub(super) fn start(conn: Connection, group_commit: bool, nudge: Arc<Notify>) -> Result<Self, Error> {
        let queue = BatchQueue::new(Batch::new(conn));
        let shared = Arc::new(Shared { queue, waiting: AtomicUsize::new(0), nudge });
        let for_committer = Arc::clone(&shared);
        #[expect(clippy::disallowed_methods, reason = "blocks on fsync; drop joins it")]
        let committer = thread::Builder::new()
            .name("urr-db-commit".to_owned())
            .spawn(move || commit_batches(&for_committer))
            .map_err(|e| Error::unavailable("the committer thread could not be started").because(e))?;
        Ok(Self { shared, group_commit, committer: Some(committer) })
    }

    pub(super) async fn write<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        let Some(_place) = WaitingWrite::take(&self.shared.waiting) else {
            return Ended::failed(Error::unavailable(format!("{MAX_WAITING} writes are waiting already")));
        };
        let mut batch = self.shared.queue.acquire().await;
        let was_open = batch.is_open();
        let ended = match batch.begin() {
            Ok(part) => part.run(name, body).await,
            Err(error) => Ended::failed(error),
        };
        if !batch.is_open() {
            // Failed, and no other write was in the batch: no commit to wait for. If other writes
            // were in it, they are lost, and so is any result based on them.
            return if was_open { Ended::failed(lost()) } else { ended };
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
        drop(batch);
        match committed.await {
            Ok(Ok(())) => ended,
            Ok(Err(Lost)) | Err(_) => Ended::failed(lost()),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.queue.close();
        if let Some(committer) = self.committer.take()
            && committer.join().is_err()
        {
            tracing::error!("the committer thread had panicked");
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

/// Commits one batch after another until the database is closed.
fn commit_batches(shared: &Shared) {
    let _stop = StopOnPanic;
    while let Some(mut batch) = shared.queue.full() {
        let waiting = batch.take_waiting();
        let committed = batch.commit();
        drop(batch);
        metrics::histogram!("urr_db_group_commit_size").record(count(waiting.len()));
        shared.tell(committed == Ok(true));
        for write in waiting {
            // Fails if the caller's future was dropped; the write is committed anyway.
            let _ = write.send(committed.map(|_| ()));
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

/// Counts one waiting write.
struct WaitingWrite<'w>(&'w AtomicUsize);

impl<'w> WaitingWrite<'w> {
    fn take(waiting: &'w AtomicUsize) -> Option<Self> {
        let waiting_write = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING).then_some(waiting_write)
    }
}

impl Drop for WaitingWrite<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Aborts the process if the committer panics: otherwise every write would wait forever.
struct StopOnPanic;

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_writes_are_limited() {
        let waiting = AtomicUsize::new(MAX_WAITING - 1);
        let last = WaitingWrite::take(&waiting);
        assert!(last.is_some());
        assert!(WaitingWrite::take(&waiting).is_none());
        drop(last);
        assert!(WaitingWrite::take(&waiting).is_some());
    }
}
