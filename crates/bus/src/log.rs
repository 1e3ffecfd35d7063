//! An outbox as a log that groups read: noticing that it is not the log they have read, and that something holds it back.
//!
//! A group's offset means something only in the log that gave it out. After a dump was restored onto another PostgreSQL
//! server, whose transactions count from their own beginning, or an older SQLite file was put beside a newer one, offsets
//! lie beyond the log's end and everything new before them. Nobody would ever read it. So a group that stands where the
//! log has not been yet begins anew: what it has dealt with it finds in its inbox, which remembers for longer than an
//! outbox keeps rows.

use std::{
    ops::Deref,
    sync::{Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Mutex, MutexGuard};
use urr_db::{Position, Tx, offsets, outbox, transaction};

use crate::{Consumer, Message, Source, store};

/// Rows that cannot be read for this long are worth a warning: a transaction has a few seconds at most.
const HELD_BACK: Duration = Duration::from_secs(10);

/// The warning is repeated while it lasts, rarely enough to be read.
const WARN_EVERY: Duration = Duration::from_mins(5);

/// How long a batch that one group has read is good for the others, who are right behind it.
const RECENT: Duration = Duration::from_secs(1);

/// One source's outbox with everybody who reads it.
pub(crate) struct Log {
    pub(crate) source: Source,
    pub(crate) readers: Vec<Arc<dyn Consumer>>,
    /// What was read last. All groups follow the end of the log, so what one has read the others want next.
    recent: StdMutex<Recent>,
    /// Held while foreign rows are adopted, and while it is decided which rows everybody has passed.
    settling: Mutex<()>,
    held_back: StdMutex<HeldBack>,
}

impl Log {
    pub(crate) fn new(source: &Source, readers: &[Arc<dyn Consumer>]) -> Self {
        let (recent, settling, held_back) = (StdMutex::default(), Mutex::default(), StdMutex::default());
        Self { source: source.clone(), readers: readers.to_vec(), recent, settling, held_back }
    }

    /// Nobody adopts rows meanwhile.
    pub(crate) async fn settled(&self) -> MutexGuard<'_, ()> {
        self.settling.lock().await
    }

    /// Where a group stands; `None` if it has never read. A group that stands where the log has not been is sent back to
    /// the start.
    pub(crate) async fn standing(&self, reader: &dyn Consumer) -> Result<Option<Position>, urr_db::Error> {
        // It may be another log by now.
        self.recent().forget();
        self.adopt_foreign_rows().await?;
        let (group, source) = (reader.group(), self.source.domain);
        let Some(at) = self.offset(reader).await? else { return Ok(None) };
        // Asked after the offset was loaded, or the log could have grown past it in between.
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
                "the group's offset lies beyond the end of the log, as after a restore: the group reads everything that \
                 is kept again, and messages that it knows have no second effect"
            );
            return Ok(Some(Position::START));
        }
        // Another process was faster.
        self.offset(reader).await
    }

    /// The position of the group that is furthest behind; `None` if some group has not begun or has read another log, or
    /// there is none.
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

    /// The next messages after a position. If there are none, notes whether a transaction holds some back.
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
                "messages cannot be read because an old transaction on the PostgreSQL server holds the log back; find it \
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

    /// Rows that came with a dump of another server go to the beginning of the log. Every group is sent there first: one
    /// that stood further on would never see them, and if this process dies half-way, the rows that are left tell.
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
            // Ends because nobody adds such rows: the server's own are older than the end of the log.
            if adopted < u64::from(outbox::ADOPT_BATCH) {
                break;
            }
        }
        // Whoever has read meanwhile has not seen them.
        self.recent().forget();
        tracing::warn!(
            source,
            rows,
            "the outbox holds rows of another PostgreSQL server, as after a restore: they were put at the beginning of \
             the log and every group reads everything that is kept again; messages that it knows have no second effect"
        );
        Ok(())
    }

    fn recent(&self) -> StdMutexGuard<'_, Recent> {
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

/// Messages of the log, in order.
#[derive(Clone)]
pub(crate) struct Batch {
    rows: Arc<[(Position, Message)]>,
    from: usize,
    /// Whether there were no more.
    pub(crate) is_all: bool,
}

impl Deref for Batch {
    type Target = [(Position, Message)];

    fn deref(&self) -> &Self::Target {
        &self.rows[self.from..]
    }
}

/// What was read after a position, and when.
struct Read {
    after: Position,
    batch: Batch,
    at: Duration,
}

/// The last batch that was read of the log as it is.
#[derive(Default)]
struct Recent {
    read: Option<Read>,
    /// How often it was forgotten: what was read before that is not remembered after it.
    forgotten: u64,
}

impl Recent {
    fn remember(&mut self, read: Read, forgotten: u64) {
        if self.forgotten == forgotten {
            self.read = Some(read);
        }
    }

    fn forget(&mut self) {
        self.read = None;
        self.forgotten += 1;
    }

    /// What of it lies after a position. Nothing: that has to be read.
    fn after(&self, after: Position, now: Duration) -> Option<Batch> {
        let Read { after: begin, batch, at } = self.read.as_ref()?;
        let from = batch.partition_point(|(position, _)| *position <= after);
        let is_in_it = after >= *begin && from < batch.len();
        let is_fresh = now.saturating_sub(*at) < RECENT;
        (is_in_it && is_fresh).then(|| Batch { from, ..batch.clone() })
    }
}

/// Since when rows wait that nobody can read, and when that was last told.
#[derive(Default)]
struct HeldBack {
    since: Option<Duration>,
    warned: Option<Duration>,
}

impl HeldBack {
    /// Notes whether rows wait now; says whether to warn.
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
    fn what_one_group_has_read_is_good_for_the_others_behind_it_for_a_while() {
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
        let mut recent = Recent::default();
        recent.remember(read(), 0);
        let seqs = |after, now| {
            let batch = recent.after(at(after), now)?;
            Some(batch.iter().map(|(position, _)| position.seq).collect::<Vec<_>>())
        };
        let (now, later) = (Duration::from_secs(100), Duration::from_secs(101));
        assert_eq!(seqs(10, now), Some(vec![11, 12, 15]));
        assert_eq!(seqs(12, now), Some(vec![15]));
        assert_eq!(seqs(13, now), Some(vec![15]));
        assert_eq!(seqs(9, now), None, "there may be others before it");
        assert_eq!(seqs(15, now), None, "what comes after it has to be read");
        assert_eq!(seqs(10, later), None);
        recent.forget();
        recent.remember(read(), 0);
        assert!(recent.after(at(10), now).is_none(), "it was read before it was to be forgotten");
        recent.remember(read(), 1);
        assert!(recent.after(at(10), now).is_some());
    }

    #[test]
    fn rows_that_wait_for_long_are_told_of_rarely() {
        let secs = Duration::from_secs;
        let mut held_back = HeldBack::default();
        assert!(!held_back.note(true, secs(100)));
        assert!(!held_back.note(true, secs(110)), "not yet more than ten seconds");
        assert!(held_back.note(true, secs(111)));
        assert!(!held_back.note(true, secs(112)));
        assert!(!held_back.note(true, secs(410)));
        assert!(held_back.note(true, secs(411)));
    }

    #[test]
    fn rows_that_are_read_in_time_are_not_told_of() {
        let secs = Duration::from_secs;
        let mut held_back = HeldBack::default();
        for second in 0..60 {
            assert!(!held_back.note(second % 10 != 9, secs(second)));
        }
    }
}
