//! The SQLite engine: one file per domain, one write connection with group commit, a few read-only
//! connections.

mod batch;
mod batch_queue;
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

/// How long a statement waits for a lock held by another process, such as an operator's `sqlite3`
/// shell. Statements block the calling thread, so the wait must be short.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// Prepared statements cached per connection. A domain has a few dozen, so all of them stay
/// prepared.
const CACHED_STATEMENTS: usize = 256;

/// The WAL is truncated to this size after a checkpoint. Normally it stays at [`CHECKPOINT_PAGES`]
/// of 4 KiB; a long read lets it grow.
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// Page cache of the write connection. With SQLite's default of 2 MB a busy sale reads its own
/// pages back from the WAL, and large batches spill early. More does not help: after a commit that
/// moved pages SQLite scans the whole cache while all writers wait.
const WRITE_CACHE_KIB: i64 = 16 * 1024;

/// Pages in the WAL before a checkpoint: 32 MB. A checkpoint costs two more syncs while all writers
/// wait, so it should be rare. A start after a crash replays at most this much, in well under a
/// second.
const CHECKPOINT_PAGES: i64 = 8_000;

/// Options of the SQLite engine.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// Whether concurrent writes share one fsync. Off exists for the benchmark.
    pub group_commit: bool,
    /// Concurrent reads. A read blocks its thread, so more than the number of threads gains
    /// nothing.
    pub readers: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { group_commit: true, readers: 8 }
    }
}

/// One domain's file.
///
/// Fields are dropped in order. The writer closes last: only the last connection to close can
/// checkpoint the WAL, and a read-only one cannot. After a clean stop the file alone is the whole
/// database.
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

    /// Number of parameters and columns of a statement.
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
    // synchronous=FULL: an acknowledged write is on disk. secure_delete: deleted personal data must
    // not stay in the file. No mmap: it would turn I/O errors into signals. Savepoint journals stay
    // in memory: they are useless after a crash, and a full temporary directory must not stop a
    // sale.
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
    // Sync the directory of a new file: SQLite syncs the contents, not the directory entry.
    let dir = file.parent().unwrap_or(Path::new("."));
    data_dir::sync(dir).map_err(|e| Error::unavailable(what()).because(e))?;
    Ok(conn)
}

/// Creates a new file with access for its owner only, because the directory may be readable by
/// others. SQLite gives the WAL the same mode.
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

/// Runs a statement that returns no rows.
pub(crate) fn execute(
    conn: &mut Connection,
    sql: &'static Sql,
    params: &[&dyn Scalar],
) -> Result<u64, Error> {
    let mut statement = prepared(conn, sql)?;
    run_bound(&mut statement, sql, params)
}

/// Runs a statement that returns no rows, once per set of parameters.
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

/// Runs a statement and passes every row to `take`.
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

/// Runs a transaction control statement from the statement cache.
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
    fn version_with_the_wal_reset_bug_is_rejected() {
        let error = check_version(3_051_002, "3.51.2").unwrap_err();
        assert!(error.to_string().starts_with("SQLite 3.51.2 can corrupt"), "{error}");
        assert!(check_version(3_051_003, "3.51.3").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private_even_in_a_shared_directory() {
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

    /// Overwritten and deleted names are in no page of the file. The names are fixed: with random
    /// ones SQLite leaves, in about one of some hundred runs, a few index entries in the unused
    /// part of a page that it has refilled.
    #[test]
    fn deleted_and_overwritten_values_are_erased_from_the_file() {
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
    fn durability_pragmas_are_set() {
        let dir = tempfile::tempdir().unwrap();
        let conn = open_for_writing(&dir.path().join("x.db")).unwrap();
        for (pragma, wanted) in
            [("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1"), ("mmap_size", "0")]
        {
            assert_eq!(pragma_text(&conn, pragma).unwrap(), wanted, "{pragma}");
        }
    }
}
