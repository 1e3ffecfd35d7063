//! What operators see of a domain's mails, and another attempt for those that failed.

use urr_db::{Db, Error, Row, Tx, transaction};
use urr_kernel::Timestamp;
use uuid::Uuid;

use crate::store;

/// [`backlog`] stops counting here.
pub const MAX_COUNTED: u32 = 100_000;

/// Mails that one [`retry`] queues again: at 20 in about a second, ten minutes of sending.
pub const RETRY_BATCH: u32 = 10_000;

/// How many mails wait and how many failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Mails to be sent, at most [`MAX_COUNTED`].
    pub waiting: u32,
    /// When the oldest of them was queued.
    pub oldest: Option<Timestamp>,
    /// Mails that were given up, at most [`MAX_COUNTED`].
    pub failed: u32,
}

/// One mail, without address and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id, which is also the first part of its `Message-ID`.
    pub id: Uuid,
    /// Which template.
    pub kind: String,
    /// `waiting` or `failed`.
    pub state: String,
    /// Attempts so far.
    pub attempts: u32,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When the next attempt is due, if it waits.
    pub next_at: Timestamp,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// How many mails wait and how many failed.
pub async fn backlog(db: &Db) -> Result<Backlog, Error> {
    db.read("mail.backlog", async |tx: &mut Tx<'_>| {
        let (waiting, failed) = store::counts(tx, MAX_COUNTED).await?;
        let oldest = tx.one(&store::OLDEST, &[], |row| row.get(0)).await?;
        Ok(Backlog { waiting, oldest, failed })
    })
    .await
}

/// Mails that wait, or those that failed, the oldest first.
pub async fn list(db: &Db, failed: bool, limit: u32) -> Result<Vec<Listed>, Error> {
    let sql = if failed { &store::FAILED } else { &store::WAITING };
    db.read("mail.list", async |tx: &mut Tx<'_>| tx.all(sql, &[&limit], listed).await).await
}

fn listed(row: &Row<'_>) -> Result<Listed, Error> {
    Ok(Listed {
        id: row.get(0)?,
        kind: row.get(1)?,
        state: row.get(2)?,
        attempts: row.get(3)?,
        created_at: row.get(4)?,
        next_at: row.get(5)?,
        last_error: row.get(6)?,
    })
}

/// Queues a failed mail again, or all of them (at most [`RETRY_BATCH`]). Returns how many.
pub async fn retry(db: &Db, id: Option<Uuid>, now: Timestamp) -> Result<u64, Error> {
    transaction!(db, "mail.retry", async |tx: &mut Tx<'_>| {
        match id {
            Some(id) => tx.execute(&store::RETRY, &[&id, &now]).await,
            None => tx.execute(&store::RETRY_ALL, &[&now, &RETRY_BATCH]).await,
        }
    })
}
