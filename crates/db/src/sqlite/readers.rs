//! The read-only connections. A read sees everything committed when it began, and nothing of the
//! open batch.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rusqlite::Connection;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{open_for_reading, run};
use crate::{
    Error,
    tx::{Ended, Engine, Tx, Verdict},
};

pub(super) struct Readers {
    file: PathBuf,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(file: &Path, most: usize) -> Self {
        let permits = Semaphore::new(most.max(1));
        Self { file: file.to_owned(), permits, idle: Mutex::new(Vec::with_capacity(most)) }
    }

    pub(super) async fn read<T, E: From<Error>>(
        &self,
        name: &'static str,
        body: impl AsyncFnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Ended<T, E> {
        let mut read = match self.lend().await {
            Ok(read) => read,
            Err(error) => return Ended::failed(error),
        };
        let mut tx = Tx::new(Engine::Sqlite(read.connection()));
        let out = body(&mut tx).await;
        match tx.verdict(name, out) {
            Verdict::Commit(value) => Ended::ok(value),
            Verdict::Refuse(error, failure) => Ended::refused(error, failure),
        }
    }

    /// A connection with a snapshot open on it.
    pub(super) async fn lend(&self) -> Result<Read<'_>, Error> {
        let permit =
            self.permits.acquire().await.map_err(|e| Error::bug("the readers are closed").because(e))?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let failed = |e| Error::sqlite("beginning a read failed", e);
        let conn = match idle {
            Some(conn) => conn,
            None => open_for_reading(&self.file).map_err(failed)?,
        };
        run(&conn, "begin").map_err(failed)?;
        Ok(Read { readers: self, conn: Some(conn), _permit: permit })
    }
}

/// A borrowed connection. Drop ends its snapshot, also after a panic or a dropped future, because
/// an old snapshot blocks checkpoints. A connection whose rollback fails is closed.
pub(super) struct Read<'r> {
    readers: &'r Readers,
    conn: Option<Connection>,
    _permit: SemaphorePermit<'r>,
}

impl Read<'_> {
    pub(super) fn connection(&mut self) -> &mut Connection {
        self.conn.as_mut().expect("taken only in drop")
    }
}

impl Drop for Read<'_> {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        if run(&conn, "rollback").is_ok() {
            self.readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        }
    }
}
