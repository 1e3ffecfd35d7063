//! The embedded engine: one file per domain, one write connection with group commit, a few read-only connections.

mod batch;
mod desk;
mod readers;
pub(crate) mod value;
mod writer;

use std::{path::Path, sync::Arc, time::Duration};

use rusqlite::{CachedStatement, Connection, OpenFlags, Statement};
use tokio::sync::Notify;
use urr_kernel::Scalar;

use self::{readers::Readers, value::Bind, writer::Writer};
use crate::{
    Error, Sql, data_dir,
    tx::{Columns, Ended, Row, Tx},
};

/// Older versions can corrupt a database when a WAL reset races a checkpoint (fixed in 3.51.3).
const OLDEST_VERSION: i32 = 3_051_003;

/// How long a statement waits for a lock that somebody outside this process holds, such as an operator's shell.
/// Statements run on the caller's thread, so the wait is kept to what a request can bear.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// Prepared statements kept per connection. A domain has a few dozen; twice the largest leaves all of them prepared.
const CACHED_STATEMENTS: usize = 256;

/// The log file shrinks back to this after a checkpoint. It normally stays at [`CHECKPOINT_PAGES`] of 4 KiB; a long reader
/// lets it grow, and the disk gets the room back once it is done.
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// What the write connection keeps in memory, once it has read it. With SQLite's 2 MB a busy sale reads its own pages back from the
/// log, and large batches are written out before their time. More does not help: after a commit in which pages changed places SQLite
/// looks at every page that it keeps, and everybody waits.
const WRITE_CACHE_KIB: i64 = 16 * 1024;

/// Pages in the log before they are moved into the file: 32 MB. Moving them costs two more syncs and everybody waits meanwhile, so not after
/// every few batches; a start after a crash reads so much back, which takes well under a second.
const CHECKPOINT_PAGES: i64 = 8_000;

/// How the embedded engine runs.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// Whether concurrent writes share one fsync. Off is there for the benchmark, which shows what sharing gains.
    pub group_commit: bool,
    /// How many reads may run at once. A read keeps its thread busy, so more than there are threads gains nothing.
    pub readers: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { group_commit: true, readers: 8 }
    }
}

/// One domain's file.
///
/// Fields are dropped in order. The writer closes last, because only the last connection to close can move the log into
/// the file, and a read-only one may not: after a clean stop the file alone is the whole database.
pub(crate) struct Sqlite {
    readers: Readers,
    writer: Writer,
}

impl Sqlite {
    pub(crate) fn open(file: &Path, options: SqliteOptions, nudge: Arc<Notify>) -> Result<Self, Error> {
        check_version(rusqlite::version_number(), rusqlite::version())?;
        let writer = Writer::start(open_for_writing(file)?, options.group_commit, nudge)?;
        Ok(Self { writer, readers: Readers::new(file, options.readers) })
    }

    pub(crate) async fn write<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        self.writer.write(name, body).await
    }

    pub(crate) async fn read<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        self.readers.read(name, body).await
    }

    /// How many parameters a statement takes and how many columns it gives.
    pub(crate) async fn shape(&self, text: &str) -> Result<(usize, usize), Error> {
        let mut read = self.readers.lend().await?;
        let statement =
            read.connection().prepare(text).map_err(|e| Error::sqlite("it does not prepare", e))?;
        Ok((statement.parameter_count(), statement.column_count()))
    }
}

fn check_version(number: i32, version: &str) -> Result<(), Error> {
    if number >= OLDEST_VERSION {
        return Ok(());
    }
    Err(Error::bug(format!(
        "SQLite {version} can corrupt a database when a checkpoint races a WAL reset: 3.51.3 or newer is needed"
    )))
}

fn open_for_writing(file: &Path) -> Result<Connection, Error> {
    let what = || format!("opening {} for writing failed", file.display());
    create_private(file).map_err(|e| Error::unavailable(what()).because(e))?;
    let conn = Connection::open(file).map_err(|e| Error::sqlite(what(), e))?;
    // FULL: an acknowledged write is on disk. What is deleted or sealed is overwritten, for personal data must not stay in the file. mmap
    // would turn I/O errors into signals. What a savepoint needs to undo its changes stays in memory: it serves nobody after a crash, and a
    // full or missing temporary directory must not stop a sale.
    let settings = format!(
        "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma mmap_size = 0;
         pragma secure_delete = on; pragma temp_store = memory; pragma cache_size = -{WRITE_CACHE_KIB};
         pragma wal_autocheckpoint = {CHECKPOINT_PAGES}; pragma journal_size_limit = {WAL_BYTES_KEPT};"
    );
    conn.execute_batch(&settings).map_err(|e| Error::sqlite(what(), e))?;
    prepare_connection(&conn).map_err(|e| Error::sqlite(what(), e))?;
    for (pragma, wanted) in
        [("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1"), ("mmap_size", "0")]
    {
        let found = pragma_text(&conn, pragma).map_err(|e| Error::sqlite(what(), e))?;
        if found != wanted {
            return Err(Error::bug(format!(
                "{}: pragma {pragma} is {found} and must be {wanted}, or acknowledged writes could be lost",
                file.display()
            )));
        }
    }
    // The file itself, if it is new: SQLite makes sure of its contents, not of its name.
    let dir = file.parent().unwrap_or(Path::new("."));
    data_dir::sync(dir).map_err(|e| Error::unavailable(what()).because(e))?;
    Ok(conn)
}

/// Creates the file, if it is new, for its owner only: the directory may be one that others can look into. SQLite gives
/// the log beside it the same mode.
fn create_private(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}

fn open_for_reading(file: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.execute_batch("pragma mmap_size = 0;")?;
    prepare_connection(&conn)?;
    Ok(conn)
}

fn prepare_connection(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    conn.busy_timeout(BUSY_WAIT)
}

fn pragma_text(conn: &Connection, pragma: &str) -> rusqlite::Result<String> {
    conn.query_row(&format!("pragma {pragma}"), [], |row| {
        Ok(match row.get_ref(0)? {
            rusqlite::types::ValueRef::Integer(n) => n.to_string(),
            other => other.as_str()?.to_owned(),
        })
    })
}

/// Runs a statement that gives no rows.
pub(crate) fn execute(
    conn: &mut Connection,
    sql: &'static Sql,
    params: &[&dyn Scalar],
) -> Result<u64, Error> {
    let mut statement = prepared(conn, sql)?;
    run_bound(&mut statement, sql, params)
}

/// Runs a statement that gives no rows for each row of parameters.
pub(crate) fn execute_each<const N: usize>(
    conn: &mut Connection,
    sql: &'static Sql,
    rows: &[[&dyn Scalar; N]],
) -> Result<Vec<u64>, Error> {
    let mut statement = prepared(conn, sql)?;
    rows.iter().map(|params| run_bound(&mut statement, sql, params)).collect()
}

fn run_bound(statement: &mut Statement<'_>, sql: &Sql, params: &[&dyn Scalar]) -> Result<u64, Error> {
    bind(statement, sql, params)?;
    let changed = statement.raw_execute().map_err(|e| failed(sql, e))?;
    Ok(changed as u64)
}

/// Runs a statement and hands every row to `take`.
pub(crate) fn query(
    conn: &mut Connection,
    sql: &'static Sql,
    params: &[&dyn Scalar],
    mut take: impl FnMut(Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut statement = prepared(conn, sql)?;
    bind(&mut statement, sql, params)?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|e| failed(sql, e))? {
        take(Row { sql, columns: Columns::Sqlite(row) })?;
    }
    Ok(())
}

fn prepared<'c>(conn: &'c Connection, sql: &'static Sql) -> Result<CachedStatement<'c>, Error> {
    let text = sql.sqlite().ok_or_else(|| Error::bug(format!("{} is not for SQLite", sql.name())))?;
    conn.prepare_cached(text).map_err(|e| failed(sql, e))
}

fn bind(statement: &mut Statement<'_>, sql: &Sql, params: &[&dyn Scalar]) -> Result<(), Error> {
    let wanted = statement.parameter_count();
    if wanted != params.len() {
        let given = params.len();
        return Err(Error::bug(format!("{} takes {wanted} parameters and got {given}", sql.name())));
    }
    for (index, param) in params.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, Bind(param.to_value())).map_err(|e| failed(sql, e))?;
    }
    Ok(())
}

/// Runs one of the handful of statements around bodies; they stay prepared like any other.
fn run(conn: &Connection, text: &'static str) -> rusqlite::Result<()> {
    conn.prepare_cached(text)?.raw_execute().map(|_| ())
}

fn failed(sql: &Sql, error: rusqlite::Error) -> Error {
    Error::sqlite(format!("{} failed", sql.name()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_with_the_wal_reset_bug_is_refused_by_name() {
        let error = check_version(3_051_002, "3.51.2").unwrap_err();
        assert!(error.to_string().starts_with("SQLite 3.51.2 can corrupt"), "{error}");
        assert!(check_version(3_051_003, "3.51.3").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_files_even_in_an_open_directory() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let conn = open_for_writing(&dir.path().join("x.db")).unwrap();
        conn.execute_batch("create table t (a integer)").unwrap();
        let mut modes: Vec<(String, u32)> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                (entry.file_name().into_string().unwrap(), mode)
            })
            .collect();
        modes.sort();
        let private = |name: &str| (name.to_owned(), 0o600);
        assert_eq!(modes, [private("x.db"), private("x.db-shm"), private("x.db-wal")]);
    }

    /// What somebody was called is in no page of the file once it was overwritten or deleted. The names are made up but the same every time:
    /// with others SQLite leaves, once in some hundred runs, a few index entries in the unused part of a page that it has filled anew.
    #[test]
    fn what_is_gone_is_gone_from_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let conn = open_for_writing(&file).unwrap();
        let arrive = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000)
                    insert into people select i, 'somebody' || i, printf('%080d', i) from n;";
        let forget = "update people set name = printf('%08x%0112d', id * 2654435761 % 4294967296, id) where id % 3 = 0; delete from people where id % 3 > 0;";
        conn.execute_batch("create table people (id integer primary key, name text, x text); create index names on people (name);")
            .unwrap();
        conn.execute_batch(arrive).unwrap();
        conn.execute_batch("pragma wal_checkpoint(truncate);").unwrap();
        let is_there = || std::fs::read(&file).unwrap().windows(8).any(|bytes| bytes == b"somebody");
        assert!(is_there());
        conn.execute_batch(forget).unwrap();
        drop(conn);
        assert!(!is_there());
    }

    #[test]
    fn an_acknowledged_write_is_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let conn = open_for_writing(&dir.path().join("x.db")).unwrap();
        for (pragma, wanted) in
            [("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1"), ("mmap_size", "0")]
        {
            assert_eq!(pragma_text(&conn, pragma).unwrap(), wanted, "{pragma}");
        }
    }
}
