//! Writes steps down in the order in which they happened, many at a time.
//!
//! A room hands its steps over while it is locked, so the journal has the room's order, and what is on disk is always a beginning
//! of what happened: a crash loses the newest steps, which nobody was told of, and never one from the middle. One transaction
//! takes everything that waits, so thousands of joins share one `fsync`.

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

/// Steps that may wait to be written, those of the open batch included: a second's worth at full speed. A room that finds more waiting decides nothing new.
const MAX_WAITING: u64 = 50_000;
/// Steps that one transaction writes: some 20 ms of work, so that an answer is not held up much longer than an `fsync` takes.
const BATCH: usize = 4_096;
/// How long an answer waits for the disk. Whoever comes later is refused at once, until something is written again.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often the last steps are tried again when the process stops. Nobody was told of them.
const LAST_TRIES: u32 = 3;
/// Every step is announced, so this only limits a wait.
const IDLE: Duration = Duration::from_mins(1);
/// Pauses after a transaction that failed: people wait for their answers.
const PAUSES: Backoff = Backoff { first: Duration::from_millis(50), max: Duration::from_secs(2) };

/// The way into the journal. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Writer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pending: Mutex<Vec<(EventId, Entry)>>,
    /// How many steps were handed over since the start. Changed under the lock of `pending`; whoever only looks needs no lock.
    handed: AtomicU64,
    wake: Nudge,
    /// How many of them are on disk.
    written: AtomicU64,
    /// Says the same to whoever waits for it.
    progress: watch::Sender<u64>,
    outage: Outage,
    clock: Clock,
}

/// How far the journal has to be written for an answer to be safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

/// Too much waits to be written, or nothing can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot keep up")]
pub(crate) struct Busy;

impl Writer {
    /// Starts writing to `db`, for as long as `keeper` has the rooms.
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
        let work = Work { db, keeper, shared: Arc::clone(&shared), tasks: tasks.clone() };
        tasks.spawn_essential("queue.journal", async move {
            work.run().await;
            work.keeper.release().await;
        });
        Self(shared)
    }

    /// Whether a room may decide anything new.
    pub(crate) fn ready(&self) -> Result<(), Busy> {
        let waiting = self.latest().0.saturating_sub(self.0.written());
        if !self.0.outage.goes_on() && waiting < MAX_WAITING { Ok(()) } else { Err(Busy) }
    }

    /// For how long nothing could be written, if nothing can be.
    pub(crate) fn outage(&self) -> Option<Duration> {
        self.0.outage.lasts(self.0.clock.ticks())
    }

    /// Hands steps over. The caller still holds the room's lock.
    pub(crate) fn hand_over(&self, event: EventId, entries: impl Iterator<Item = Entry>) -> Mark {
        let mut pending = self.0.pending();
        let before = pending.len();
        pending.extend(entries.map(|entry| (event, entry)));
        let count = u64::try_from(pending.len() - before).expect("a count of steps");
        let mark = Mark(self.0.handed.fetch_add(count, Ordering::AcqRel) + count);
        drop(pending);
        if count > 0 {
            self.0.wake.nudge();
        }
        mark
    }

    /// Everything that was handed over until now.
    pub(crate) fn latest(&self) -> Mark {
        Mark(self.0.handed.load(Ordering::Acquire))
    }

    /// Returns once everything up to `mark` is on disk, or refuses after a while. What was decided stays decided: whoever was refused
    /// finds it when they ask again.
    pub(crate) async fn written(&self, mark: Mark) -> Result<(), Busy> {
        // Whoever only asks finds everything there, as a rule.
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

    /// Nothing new is decided until something is written again.
    fn give_up(&self, mark: Mark) -> Result<(), Busy> {
        let is_new = self.0.outage.begin(self.0.clock.ticks());
        // What is written is said before that it works again, so either it is seen here, or that is said after this. The lock of what
        // is said makes it so; a look at the bare number could miss it, and nothing would be decided ever again.
        if *self.0.progress.borrow() >= mark.0 {
            if is_new {
                self.0.outage.end();
            }
            return Ok(());
        }
        if is_new {
            tracing::error!("the waiting room's journal is not written in time: nobody is let in meanwhile");
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

    /// What waits, in order, up to [`BATCH`].
    fn take(&self) -> Vec<(EventId, Entry)> {
        let mut pending = self.pending();
        if pending.len() <= BATCH {
            return mem::take(&mut *pending);
        }
        let rest = pending.split_off(BATCH);
        mem::replace(&mut *pending, rest)
    }
}

struct Work {
    db: Db,
    keeper: Keeper,
    shared: Arc<Shared>,
    tasks: Tasks,
}

impl Work {
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

    /// Writes a batch, again and again until it works. `false`: the process stops, or must, and it did not.
    async fn keep(&self, batch: &[(EventId, Entry)]) -> bool {
        let (mut failures, mut last_tries) = (0, LAST_TRIES);
        loop {
            let written = self.write(batch).await;
            if matches!(written, Err(Unwritten::Foreign)) {
                self.shared.outage.begin(self.shared.clock.ticks());
                tracing::error!(
                    "rooms in memory are for one process, and another one writes the same journal: this one stops"
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
                    "the waiting room's journal cannot be written: nobody is let in meanwhile"
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

    /// All of them, or none.
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
