//! Moves the log into the file while others write.
//!
//! Otherwise whoever commits does so when the log is long, and everybody waits for it: thousands of pages and two syncs, which is more
//! than a hundred commits take. What is left to the write connection is the last part of it, without which the log cannot begin anew.

use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode};

use crate::Error;

/// Pages in the log that are not in the file before it is worth two syncs: half of what makes the write connection do it.
const ENOUGH_PAGES: i64 = super::CHECKPOINT_PAGES / 2;

/// The log is looked at no more often than this, and not at all while nobody writes.
const PAUSE: Duration = Duration::from_millis(20);

/// After a failure: the log is as good as the file, only longer.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// A connection and a thread for it.
pub(super) struct Mover {
    news: Arc<News>,
    thread: Option<JoinHandle<()>>,
}

/// What the mover is told.
#[derive(Default)]
pub(super) struct News {
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Told {
    committed: bool,
    closed: bool,
}

impl News {
    /// The log has grown.
    pub(super) fn committed(&self) {
        let mut told = self.look();
        if !told.committed {
            told.committed = true;
            self.changed.notify_one();
        }
    }

    fn close(&self) {
        self.look().closed = true;
        self.changed.notify_one();
    }

    /// Waits until the log has grown. `false`: the database is closed.
    fn wait(&self) -> bool {
        let waits = |told: &mut Told| !told.committed && !told.closed;
        let mut told = self.changed.wait_while(self.look(), waits).unwrap_or_else(PoisonError::into_inner);
        told.committed = false;
        !told.closed
    }

    fn pause(&self, time: Duration) {
        let waited = self.changed.wait_timeout_while(self.look(), time, |told| !told.closed);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn look(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mover {
    /// Starts moving. The file is there.
    pub(super) fn start(file: &Path) -> Result<Self, Error> {
        let what = || format!("opening {} for moving its log failed", file.display());
        let conn = Connection::open(file).map_err(|e| Error::sqlite(what(), e))?;
        // It reads nothing but the log, and nobody waits for it.
        conn.execute_batch(
            "pragma synchronous = full; pragma mmap_size = 0; pragma wal_autocheckpoint = 0; pragma cache_size = 10;",
        )
        .map_err(|e| Error::sqlite(what(), e))?;
        let news = Arc::<News>::default();
        let (for_thread, name) = (Arc::clone(&news), file.display().to_string());
        #[expect(clippy::disallowed_methods, reason = "it waits for the disk; drop waits for its end")]
        let thread = thread::Builder::new()
            .name("urr-db-move".to_owned())
            .spawn(move || run(&conn, &for_thread, &name))
            .map_err(|e| {
                Error::unavailable("the thread that moves the log could not be started").because(e)
            })?;
        Ok(Self { news, thread: Some(thread) })
    }

    /// Where to say that the log has grown.
    pub(super) fn news(&self) -> Arc<News> {
        Arc::clone(&self.news)
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.news.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that moves the log had panicked");
        }
    }
}

fn run(conn: &Connection, news: &News, file: &str) {
    while news.wait() {
        let pause = match move_if_long(conn) {
            Ok(()) => PAUSE,
            // Somebody else does it.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => PAUSE,
            Err(error) => {
                tracing::warn!(file, error = %error, "the log cannot be moved into the file; it stays, and grows");
                PAUSE_AFTER_FAILURE
            }
        };
        news.pause(pause);
    }
}

fn move_if_long(conn: &Connection) -> rusqlite::Result<()> {
    let (pages, moved) = log(conn)?;
    if pages - moved >= ENOUGH_PAGES {
        conn.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()))?;
    }
    Ok(())
}

/// How many pages the log has, and how many of them are in the file.
pub(super) fn log(conn: &Connection) -> rusqlite::Result<(i64, i64)> {
    conn.query_row("pragma wal_checkpoint(noop)", [], |row| Ok((row.get(1)?, row.get(2)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_moved_into_the_file_while_it_is_written_and_a_short_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let conn = super::super::open_for_writing(&file).unwrap();
        conn.execute_batch("create table t (a integer primary key, b blob)").unwrap();
        let mover = Mover::start(&file).unwrap();
        let write = |pages: i64| {
            let mut statement = conn
                .prepare("with recursive n (i) as (select 1 union all select i + 1 from n where i < ?1) insert into t (b) select randomblob(3600) from n")
                .unwrap();
            statement.execute([pages]).unwrap();
            mover.news().committed();
        };
        write(ENOUGH_PAGES / 4);
        let short = log(&conn).unwrap();
        assert!(short.0 > 0 && short.1 == 0, "{short:?}");
        write(ENOUGH_PAGES);
        let (pages, _) = log(&conn).unwrap();
        assert!(pages < super::super::CHECKPOINT_PAGES, "the write connection has not done it: {pages}");
        // It is told again and again, as by commits.
        let is_done = (0..2_000).any(|_| {
            mover.news().committed();
            thread::yield_now();
            mover.news.pause(Duration::from_millis(5));
            log(&conn).unwrap().1 == pages
        });
        assert!(is_done, "{:?}", log(&conn));
        drop(mover);
        drop(conn);
        assert!(!file.with_extension("db-wal").exists(), "the last to close leaves the file alone");
    }
}
