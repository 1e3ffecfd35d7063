//! An outbox as a log that groups read: noticing that it is not the log they have read, and that something holds it back.
//!
//! A group's offset means something only in the log that gave it out. After a dump was restored onto another PostgreSQL
//! server, whose transactions count from their own beginning, or an older SQLite file was put beside a newer one, offsets
//! lie beyond the log's end and everything new before them. Nobody would ever read it. So a group that stands where the
//! log has not been yet begins anew: what it has dealt with it finds in its inbox, which remembers for longer than an
//! outbox keeps rows.

use std::{
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Mutex, MutexGuard};
use urr_db::{Position, Tx, offsets, outbox, transaction};

use crate::{Consumer, Message, Source, store};

/// Rows that cannot be read for this long are worth a warning: a transaction has a few seconds at most.
const HELD_BACK: Duration = Duration::from_secs(10);

/// The warning is repeated while it lasts, rarely enough to be read.
const WARN_EVERY: Duration = Duration::from_mins(5);

/// One source's outbox with everybody who reads it.
pub(crate) struct Log {
    pub(crate) source: Source,
    pub(crate) readers: Vec<Arc<dyn Consumer>>,
    /// Held while foreign rows are adopted, and while it is decided which rows everybody has passed.
    settling: Mutex<()>,
    held_back: StdMutex<HeldBack>,
}

impl Log {
    pub(crate) fn new(source: &Source, readers: &[Arc<dyn Consumer>]) -> Self {
        let (settling, held_back) = (Mutex::default(), StdMutex::default());
        Self { source: source.clone(), readers: readers.to_vec(), settling, held_back }
    }

    /// Nobody adopts rows meanwhile.
    pub(crate) async fn settled(&self) -> MutexGuard<'_, ()> {
        self.settling.lock().await
    }

    /// Where a group stands; `None` if it has never read. A group that stands where the log has not been is sent back to
    /// the start.
    pub(crate) async fn standing(&self, reader: &dyn Consumer) -> Result<Option<Position>, urr_db::Error> {
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
    ) -> Result<Vec<(Position, Message)>, urr_db::Error> {
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
        tracing::warn!(
            source,
            rows,
            "the outbox holds rows of another PostgreSQL server, as after a restore: they were put at the beginning of \
             the log and every group reads everything that is kept again; messages that it knows have no second effect"
        );
        Ok(())
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
    use super::*;

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
