//! An outbox as a log: cached reads, detection of restored databases and of blocked reads.
//!
//! An offset is only valid in the log it came from. After a dump is restored on another PostgreSQL
//! server, whose transaction ids have their own sequence, or after an older SQLite file is put in
//! place, offsets lie beyond the end of the log and new messages would never be read. A group with
//! such an offset restarts from the beginning. The inbox skips what was already applied; it keeps
//! its rows longer than the outbox does.

use std::{
    ops::Deref,
    sync::{Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Mutex, MutexGuard};
use urr_db::{Position, Tx, offsets, outbox, transaction};

use crate::{Consumer, Message, Source, store};

/// Warn if rows stay unreadable this long: a transaction normally takes a few seconds at most.
const HELD_BACK: Duration = Duration::from_secs(10);

/// Interval at which the warning is repeated.
const WARN_EVERY: Duration = Duration::from_mins(5);

/// How long a batch read by one group is cached for the others.
const RECENT: Duration = Duration::from_secs(1);

/// The outbox of one source and its reading groups.
pub(crate) struct Log {
    pub(crate) source: Source,
    pub(crate) readers: Vec<Arc<dyn Consumer>>,
    /// The last batch. All groups follow the end of the log, so they read the same batches.
    recent: StdMutex<BatchCache>,
    /// Held while rows of another server are adopted, and while rows are marked as published.
    settling: Mutex<()>,
    held_back: StdMutex<UnreadableRows>,
}

impl Log {
    pub(crate) fn new(source: &Source, readers: &[Arc<dyn Consumer>]) -> Self {
        let (recent, settling, held_back) = (StdMutex::default(), Mutex::default(), StdMutex::default());
        Self { source: source.clone(), readers: readers.to_vec(), recent, settling, held_back }
    }

    /// Blocks the adoption of foreign rows while the guard is held.
    pub(crate) async fn settled(&self) -> MutexGuard<'_, ()> {
        self.settling.lock().await
    }

    /// The group's offset; `None` if it has never read. An offset beyond the end of the log is
    /// reset to the start.
    pub(crate) async fn standing(&self, reader: &dyn Consumer) -> Result<Option<Position>, urr_db::Error> {
        // The database may have been replaced.
        self.recent().forget();
        self.adopt_foreign_rows().await?;
        let (group, source) = (reader.group(), self.source.domain);
        let Some(at) = self.offset(reader).await? else { return Ok(None) };
        // Read after the offset, so that an offset stored meanwhile cannot be beyond it.
        let end = self.end().await?;
        if at < end {
            return Ok(Some(at));
        }
        let reset = transaction!(reader.db(), "bus.reset", async |tx: &mut Tx<'_>| {
            store::advance(tx, group, source, Some(at), Position::START).await
        })?;
        if reset {
            tracing::warn!(
                group, source, offset = ?at, end = ?end,
                "the group's offset lies beyond the end of the log; was the database restored? The group rereads \
                 all kept messages and skips those already applied"
            );
            return Ok(Some(Position::START));
        }
        // Another process has reset it already.
        self.offset(reader).await
    }

    /// The lowest offset of all groups. `None` if a group has no offset yet, if an offset is beyond
    /// the log, or if there are no groups.
    pub(crate) async fn passed_by_all(&self) -> Result<Option<Position>, urr_db::Error> {
        let mut furthest_behind: Option<Position> = None;
        let mut furthest = Position::START;
        for reader in &self.readers {
            let Some(at) = self.offset(&**reader).await? else { return Ok(None) };
            furthest = furthest.max(at);
            furthest_behind = Some(furthest_behind.map_or(at, |behind| behind.min(at)));
        }
        if furthest >= self.end().await? {
            return Ok(None);
        }
        Ok(furthest_behind)
    }

    /// The next messages after a position. Without any, checks whether an open transaction blocks
    /// reads.
    pub(crate) async fn read(
        &self,
        after: Position,
        limit: u32,
        now: Duration,
    ) -> Result<Batch, urr_db::Error> {
        let forgotten = {
            let recent = self.recent();
            if let Some(batch) = recent.after(after, now) {
                return Ok(batch);
            }
            recent.forgotten
        };
        let read = self.source.db.read("bus.read", async |tx: &mut Tx<'_>| {
            let batch = outbox::read_after(tx, after, limit).await?;
            let waiting = batch.is_empty() && outbox::any_after(tx, after).await?;
            Ok::<_, urr_db::Error>((batch, waiting))
        });
        let (batch, waiting) = read.await?;
        let warn = {
            let mut held_back = self.held_back.lock().unwrap_or_else(PoisonError::into_inner);
            held_back.note(waiting, now)
        };
        if warn {
            tracing::warn!(
                source = self.source.domain,
                "messages are delayed: an old transaction on the PostgreSQL server blocks reads of the outbox; find it \
                 with: select pid, usename, application_name, state, xact_start, query from pg_stat_activity where \
                 backend_xid is not null order by xact_start (or in pg_prepared_xacts)"
            );
        }
        let is_all = batch.len() < limit as usize;
        let batch = Batch { rows: batch.into(), from: 0, is_all };
        if self.readers.len() > 1 && !batch.is_empty() {
            self.recent().remember(Read { after, batch: batch.clone(), at: now }, forgotten);
        }
        Ok(batch)
    }

    /// Moves rows restored from another server to the start of the log. All groups are reset first,
    /// because a later offset would skip these rows. If the process dies in between, the remaining
    /// foreign rows trigger this again.
    async fn adopt_foreign_rows(&self) -> Result<(), urr_db::Error> {
        if !self.has_foreign_rows().await? {
            return Ok(());
        }
        let _settling = self.settling.lock().await;
        if !self.has_foreign_rows().await? {
            return Ok(());
        }
        let source = self.source.domain;
        for reader in &self.readers {
            let group = reader.group();
            transaction!(reader.db(), "bus.reset", async |tx: &mut Tx<'_>| {
                store::reset(tx, group, source).await
            })?;
        }
        let mut rows = 0;
        loop {
            let adopted = transaction!(self.source.db, "bus.adopt", async |tx: &mut Tx<'_>| {
                outbox::adopt_foreign(tx).await
            })?;
            rows += adopted;
            // Terminates: rows written by this server are never foreign.
            if adopted < u64::from(outbox::ADOPT_BATCH) {
                break;
            }
        }
        // A batch cached meanwhile does not contain them.
        self.recent().forget();
        tracing::warn!(
            source,
            rows,
            "the outbox holds rows of another PostgreSQL server; was the database restored? They moved to the start of \
             the log, and every group rereads all kept messages and skips those already applied"
        );
        Ok(())
    }

    fn recent(&self) -> StdMutexGuard<'_, BatchCache> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn has_foreign_rows(&self) -> Result<bool, urr_db::Error> {
        let db = &self.source.db;
        db.read("bus.foreign", async |tx: &mut Tx<'_>| outbox::has_foreign(tx).await).await
    }

    async fn end(&self) -> Result<Position, urr_db::Error> {
        self.source.db.read("bus.end", async |tx: &mut Tx<'_>| outbox::end(tx).await).await
    }

    async fn offset(&self, reader: &dyn Consumer) -> Result<Option<Position>, urr_db::Error> {
        let (group, source) = (reader.group(), self.source.domain);
        reader.db().read("bus.offset", async |tx: &mut Tx<'_>| offsets::load(tx, group, source).await).await
    }
}

/// Consecutive messages of the log.
#[derive(Clone)]
pub(crate) struct Batch {
    rows: Arc<[(Position, Message)]>,
    from: usize,
    /// Whether the batch reached the end of the log.
    pub(crate) is_all: bool,
}

impl Deref for Batch {
    type Target = [(Position, Message)];

    fn deref(&self) -> &Self::Target {
        &self.rows[self.from..]
    }
}

/// A cached batch, the position it was read after, and when.
struct Read {
    after: Position,
    batch: Batch,
    at: Duration,
}

/// Cache of the last batch.
#[derive(Default)]
struct BatchCache {
    read: Option<Read>,
    /// Number of invalidations. A batch read before an invalidation is not cached after it.
    forgotten: u64,
}

impl BatchCache {
    fn remember(&mut self, read: Read, forgotten: u64) {
        if self.forgotten == forgotten {
            self.read = Some(read);
        }
    }

    fn forget(&mut self) {
        self.read = None;
        self.forgotten += 1;
    }

    /// The cached messages after a position, or `None` on a cache miss.
    fn after(&self, after: Position, now: Duration) -> Option<Batch> {
        let Read { after: begin, batch, at } = self.read.as_ref()?;
        let from = batch.partition_point(|(position, _)| *position <= after);
        let is_in_it = after >= *begin && from < batch.len();
        let is_fresh = now.saturating_sub(*at) < RECENT;
        (is_in_it && is_fresh).then(|| Batch { from, ..batch.clone() })
    }
}

/// Since when rows are unreadable, and when that was last logged.
#[derive(Default)]
struct UnreadableRows {
    since: Option<Duration>,
    warned: Option<Duration>,
}

impl UnreadableRows {
    /// Records whether rows are unreadable now. Returns whether to log a warning.
    fn note(&mut self, waiting: bool, now: Duration) -> bool {
        if !waiting {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let told = self.warned.is_some_and(|warned| now.saturating_sub(warned) < WARN_EVERY);
        if told || now.saturating_sub(since) <= HELD_BACK {
            return false;
        }
        self.warned = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::{Ids, MessageId};
    use urr_testkit::fixed_clock;

    use super::*;

    #[test]
    fn a_batch_is_cached_for_other_groups_for_a_second() {
        let clock = fixed_clock();
        let ids = Ids::seeded(clock.clone(), 1);
        let at = |seq| Position { xid: 0, seq };
        let message = || Message {
            id: ids.next::<MessageId>(),
            topic: "t".to_owned(),
            key: "k".to_owned(),
            kind: "K".to_owned(),
            payload: "{}".to_owned(),
            at: clock.now(),
        };
        let rows: Arc<[_]> = [11, 12, 15].map(|seq| (at(seq), message())).into();
        let batch = Batch { rows, from: 0, is_all: false };
        let read = || Read { after: at(10), batch: batch.clone(), at: Duration::from_secs(100) };
        let mut recent = BatchCache::default();
        recent.remember(read(), 0);
        let seqs = |after, now| {
            let batch = recent.after(at(after), now)?;
            Some(batch.iter().map(|(position, _)| position.seq).collect::<Vec<_>>())
        };
        let (now, later) = (Duration::from_secs(100), Duration::from_secs(101));
        assert_eq!(seqs(10, now), Some(vec![11, 12, 15]));
        assert_eq!(seqs(12, now), Some(vec![15]));
        assert_eq!(seqs(13, now), Some(vec![15]));
        assert_eq!(seqs(9, now), None, "earlier messages may be missing from the cache");
        assert_eq!(seqs(15, now), None, "later messages are not cached");
        assert_eq!(seqs(10, later), None);
        recent.forget();
        recent.remember(read(), 0);
        assert!(recent.after(at(10), now).is_none(), "a batch read before the invalidation is not cached");
        recent.remember(read(), 1);
        assert!(recent.after(at(10), now).is_some());
    }

    #[test]
    fn unreadable_rows_are_logged_after_ten_seconds_and_then_rarely() {
        let secs = Duration::from_secs;
        let mut held_back = UnreadableRows::default();
        assert!(!held_back.note(true, secs(100)));
        assert!(!held_back.note(true, secs(110)), "not yet more than ten seconds");
        assert!(held_back.note(true, secs(111)));
        assert!(!held_back.note(true, secs(112)));
        assert!(!held_back.note(true, secs(410)));
        assert!(held_back.note(true, secs(411)));
    }

    #[test]
    fn short_delays_are_not_logged() {
        let secs = Duration::from_secs;
        let mut held_back = UnreadableRows::default();
        for second in 0..60 {
            assert!(!held_back.note(second % 10 != 9, secs(second)));
        }
    }
}
