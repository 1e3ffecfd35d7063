//! Writes steps in order, in batches.
//!
//! A room queues its steps while it is locked, so the journal has the room's order. What is on disk
//! is always a prefix of what happened: a crash loses the newest steps, which no answer has
//! reflected yet. One transaction takes everything queued, so thousands of joins share one `fsync`.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::timeout};
use urr_db::{Db, Tx, transaction};
use urr_jobs::{Backoff, Nudge, Tasks, pause};
use urr_kernel::{Clock, EventId};

use super::{Entry, Unwritten, outage::Outage, store};
use crate::room::memory::Keeper;

/// Most queued steps, including the open batch: one second's worth at full speed. Above it rooms
/// refuse new decisions.
const MAX_WAITING: u64 = 50_000;
/// Steps per transaction: about 20 ms, so that an answer is delayed little more than by an `fsync`.
const BATCH: usize = 4_096;
/// How long an answer waits for the disk. After that, requests are refused at once until a write
/// succeeds.
const PATIENCE: Duration = Duration::from_secs(3);
/// Attempts to write the last steps at shutdown. No answer has reflected them.
const LAST_TRIES: u32 = 3;
/// Every step wakes the writer, so this only bounds a wait.
const IDLE: Duration = Duration::from_mins(1);
/// Pauses after a failed transaction. Short, because requests wait for it.
const PAUSES: Backoff = Backoff { first: Duration::from_millis(50), max: Duration::from_secs(2) };

/// Handle of the writer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Writer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pending: Mutex<Vec<(EventId, Entry)>>,
    /// Steps queued since the start. Changed under the lock of `pending`, read without it.
    handed: AtomicU64,
    wake: Nudge,
    /// How many of them are on disk.
    written: AtomicU64,
    /// The same number, for tasks that wait for it.
    progress: watch::Sender<u64>,
    outage: Outage,
    clock: Clock,
}

/// How far the journal must be written before an answer may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

/// Too many steps are queued, or none can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot keep up")]
pub(crate) struct Busy;

impl Writer {
    /// Starts the writer, which stops when `keeper` loses the rooms.
    pub(crate) fn start(db: Db, clock: Clock, keeper: Keeper, tasks: &Tasks) -> Self {
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            handed: AtomicU64::new(0),
            wake: Nudge::new(),
            written: AtomicU64::new(0),
            progress: watch::Sender::new(0),
            outage: Outage::default(),
            clock,
        });
        let work = WriterTask { db, keeper, shared: Arc::clone(&shared), tasks: tasks.clone() };
        tasks.spawn_essential("queue.journal", async move {
            work.run().await;
            work.keeper.release().await;
        });
        Self(shared)
    }

    /// Whether rooms may decide anything new.
    pub(crate) fn ready(&self) -> Result<(), Busy> {
        let waiting = self.latest().0.saturating_sub(self.0.written());
        if !self.0.outage.goes_on() && waiting < MAX_WAITING { Ok(()) } else { Err(Busy) }
    }

    /// How long no step could be written, if none can now.
    pub(crate) fn outage(&self) -> Option<Duration> {
        self.0.outage.lasts(self.0.clock.ticks())
    }

    /// Queues steps. The caller must hold the room's lock.
    pub(crate) fn hand_over(&self, event: EventId, entries: impl Iterator<Item = Entry>) -> Mark {
        let mut pending = self.0.pending();
        let before = pending.len();
        pending.extend(entries.map(|entry| (event, entry)));
        let count = u64::try_from(pending.len() - before).expect("a length fits into u64");
        let mark = Mark(self.0.handed.fetch_add(count, Ordering::AcqRel) + count);
        drop(pending);
        if count > 0 {
            self.0.wake.nudge();
        }
        mark
    }

    /// The mark of everything queued so far.
    pub(crate) fn latest(&self) -> Mark {
        Mark(self.0.handed.load(Ordering::Acquire))
    }

    /// Returns once everything up to `mark` is on disk, or an error after [`PATIENCE`]. The
    /// decision stands: a client that gets the error finds it with the next request.
    pub(crate) async fn written(&self, mark: Mark) -> Result<(), Busy> {
        // Reads usually find everything written.
        if self.0.written() >= mark.0 {
            return Ok(());
        }
        let mut progress = self.0.progress.subscribe();
        let reached = timeout(PATIENCE, progress.wait_for(|written| *written >= mark.0)).await;
        match reached {
            Ok(reached) => reached.map(drop).map_err(|_| Busy),
            Err(_elapsed) => self.give_up(mark),
        }
    }

    /// Starts an outage, so that rooms decide nothing until a write succeeds.
    fn give_up(&self, mark: Mark) -> Result<(), Busy> {
        let is_new = self.0.outage.begin(self.0.clock.ticks());
        // The writer publishes progress before it ends the outage. Reading it under the channel's
        // lock here means that either the progress is seen, or the outage ends after this point.
        // With a plain atomic load the outage could start after its end and never be cleared.
        if *self.0.progress.borrow() >= mark.0 {
            if is_new {
                self.0.outage.end();
            }
            return Ok(());
        }
        if is_new {
            tracing::error!(
                "writing the waiting room's journal takes too long (slow or locked database?): admissions stop and requests get 503 until a write succeeds"
            );
        }
        Err(Busy)
    }
}

impl Shared {
    fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    fn pending(&self) -> MutexGuard<'_, Vec<(EventId, Entry)>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next queued steps, up to [`BATCH`].
    fn take(&self) -> Vec<(EventId, Entry)> {
        let mut pending = self.pending();
        if pending.len() <= BATCH {
            return mem::take(&mut *pending);
        }
        let rest = pending.split_off(BATCH);
        mem::replace(&mut *pending, rest)
    }
}

struct WriterTask {
    db: Db,
    keeper: Keeper,
    shared: Arc<Shared>,
    tasks: Tasks,
}

impl WriterTask {
    async fn run(&self) {
        let stopping = self.tasks.token();
        loop {
            let batch = self.shared.take();
            if !batch.is_empty() {
                if !self.keep(&batch).await {
                    return;
                }
            } else if stopping.is_cancelled() {
                return;
            } else {
                pause(&stopping, Some(&self.shared.wake), IDLE).await;
            }
        }
    }

    /// Writes a batch, retrying until it succeeds. Returns `false` if the process stops first.
    async fn keep(&self, batch: &[(EventId, Entry)]) -> bool {
        let (mut failures, mut last_tries) = (0, LAST_TRIES);
        loop {
            let written = self.write(batch).await;
            if matches!(written, Err(Unwritten::Foreign)) {
                self.shared.outage.begin(self.shared.clock.ticks());
                tracing::error!(
                    "another process writes the same waiting room journal: this process stops (two processes need redis.urls)"
                );
                return false;
            }
            let Err(error) = written else {
                let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
                let written = self.shared.written.fetch_add(count, Ordering::AcqRel) + count;
                self.shared.progress.send_replace(written);
                self.shared.outage.end();
                metrics::histogram!("urr_queue_journal_batch_size")
                    .record(f64::from(u32::try_from(batch.len()).unwrap_or(u32::MAX)));
                return true;
            };
            if self.shared.outage.begin(self.shared.clock.ticks()) {
                let error = urr_telemetry::chain(&error);
                tracing::error!(
                    error,
                    "cannot write the waiting room's journal: the database failed; admissions stop and requests get 503 until it recovers"
                );
            }
            if self.tasks.token().is_cancelled() {
                last_tries -= 1;
                if last_tries == 0 {
                    return false;
                }
            }
            failures += 1;
            tokio::time::sleep(PAUSES.delay(failures, self.shared.clock.ticks())).await;
        }
    }

    /// Writes all of them, or none.
    async fn write(&self, batch: &[(EventId, Entry)]) -> Result<(), Unwritten> {
        transaction!(self.db, "queue.journal", async |tx: &mut Tx<'_>| {
            if !self.keeper.is_ours(tx).await? {
                return Err(Unwritten::Foreign);
            }
            for (event, entry) in batch {
                if !store::append(tx, *event, entry).await? {
                    return Err(Unwritten::Foreign);
                }
            }
            Ok::<_, Unwritten>(())
        })
    }
}
