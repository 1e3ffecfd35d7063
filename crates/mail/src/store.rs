//! Statements and rows of the `mails` table, which every domain's database has (`urr-db`,
//! `0000_base`).

use serde_json::Value;
use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{Scalar, Timestamp};
use uuid::Uuid;

use crate::{NewMail, Queued};

statements! {
    /// Queues a mail, once per key. A nil recipient runs the same statement and inserts nothing.
    /// Per engine: parameters of a select list have no type on PostgreSQL unless they are cast, and
    /// SQLite would change blobs and instants with the same casts.
    INSERT =
        sqlite "
        insert into mails (id, key, kind, recipient, data, urgent, state, attempts, next_at, created_at)
        select $1, $2, $3, $4, $5, $6, 'waiting', 0, $7, $7 where $4 <> x'00000000000000000000000000000000'
            on conflict (key) do nothing"
        postgres "
        insert into mails (id, key, kind, recipient, data, urgent, state, attempts, next_at, created_at)
        select $1::uuid, $2::text, $3::text, $4::uuid, $5::text, $6::boolean, 'waiting', 0,
               $7::timestamptz, $7::timestamptz
         where $4::uuid <> '00000000-0000-0000-0000-000000000000'
            on conflict (key) do nothing";

    /// Mails that are due, the longest waiting first.
    DUE = "
        select id, kind, recipient, data, attempts from mails where state = 'waiting' and next_at <= $1
         order by next_at limit $2";

    /// Urgent mails that are due.
    DUE_URGENT = "
        select id, kind, recipient, data, attempts from mails
         where state = 'waiting' and urgent and next_at <= $1 order by next_at limit $2";

    /// Claims a mail for one attempt. Of several senders that read the same row one updates it; the
    /// next attempt is at `next_at`.
    CLAIM = "
        update mails set attempts = attempts + 1, next_at = $3 where id = $1 and attempts = $2 and state = 'waiting'";

    /// Records why an attempt failed.
    DEFER = "update mails set last_error = $2 where id = $1 and state = 'waiting'";

    /// Ends a mail.
    END = "update mails set state = $2, ended_at = $3, last_error = $4 where id = $1 and state = 'waiting'";

    /// How many mails wait and how many failed, each up to a limit.
    COUNTS = "
        select (select count(*) from (select 1 from mails where state = 'waiting' limit $1) waiting),
               (select count(*) from (select 1 from mails where state = 'failed' limit $1) failed)";

    /// When the mail that has waited longest was queued.
    pub(crate) OLDEST = "select min(created_at) from mails where state = 'waiting'";

    /// Mails that wait, the oldest first.
    pub(crate) WAITING = "
        select id, kind, state, attempts, created_at, next_at, last_error from mails
         where state = 'waiting' order by id limit $1";

    /// Mails that failed, the oldest first.
    pub(crate) FAILED = "
        select id, kind, state, attempts, created_at, next_at, last_error from mails
         where state = 'failed' order by id limit $1";

    /// Queues a failed mail again.
    pub(crate) RETRY = "
        update mails set state = 'waiting', attempts = 0, next_at = $2, ended_at = null
         where id = $1 and state = 'failed'";

    /// Queues every failed mail again, up to a limit.
    pub(crate) RETRY_ALL = "
        update mails set state = 'waiting', attempts = 0, next_at = $1, ended_at = null
         where id in (select id from mails where state = 'failed' order by id limit $2) and state = 'failed'";

    /// The mails of a recipient.
    pub(crate) OF_RECIPIENT = "select id from mails where recipient = $1 order by id limit $2";

    /// Deletes them.
    pub(crate) ERASE = "delete from mails where recipient = $1";

    /// Deletes mails that ended before a given time.
    pub(crate) SWEEP = "
        delete from mails where id in
            (select id from mails where state <> 'waiting' and ended_at <= $1 order by ended_at limit $2)";
}

/// The final state of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Sent,
    /// Refused permanently, or too many attempts failed.
    Failed,
    /// The domain no longer needs it.
    Dropped,
}
urr_db::text_enum! { End { Sent = "sent", Failed = "failed", Dropped = "dropped" } }

/// Inserts a mail. `false`: its key exists, or it has no recipient.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    id: Uuid,
    mail: &NewMail<'_>,
    now: Timestamp,
) -> Result<bool, Error> {
    let NewMail { kind, recipient, key, data, urgent } = mail;
    let (kind, key, data) = (*kind, key.as_deref(), data.to_string());
    let params: &[&dyn Scalar] = &[&id, &key, &kind, recipient, &data, urgent, &now];
    Ok(tx.execute(&INSERT, params).await? == 1)
}

/// The mails of one batch: at most `urgent` urgent ones first, then those that have waited longest.
pub(crate) async fn due(
    tx: &mut Tx<'_>,
    now: Timestamp,
    urgent: u32,
    limit: u32,
) -> Result<Vec<Queued>, Error> {
    let mut due = tx.all(&DUE_URGENT, &[&now, &urgent], queued).await?;
    for mail in tx.all(&DUE, &[&now, &limit], queued).await? {
        if due.len() < limit as usize && due.iter().all(|other| other.id != mail.id) {
            due.push(mail);
        }
    }
    Ok(due)
}

fn queued(row: &Row<'_>) -> Result<Queued, Error> {
    let data: String = row.get(3)?;
    // `insert` wrote this from a JSON value. Anything else fails when the domain reads it.
    let data = serde_json::from_str(&data).unwrap_or(Value::Null);
    Ok(Queued { id: row.get(0)?, kind: row.get(1)?, recipient: row.get(2)?, data, attempts: row.get(4)? })
}

/// How many mails wait and how many failed, each at most `limit`.
pub(crate) async fn counts(tx: &mut Tx<'_>, limit: u32) -> Result<(u32, u32), Error> {
    tx.one(&COUNTS, &[&limit], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Claims a mail for one attempt. `false`: another sender claimed it.
pub(crate) async fn claim(tx: &mut Tx<'_>, mail: &Queued, next_at: Timestamp) -> Result<bool, Error> {
    Ok(tx.execute(&CLAIM, &[&mail.id, &mail.attempts, &next_at]).await? == 1)
}

/// Records why an attempt failed.
pub(crate) async fn defer(tx: &mut Tx<'_>, id: Uuid, error: &str) -> Result<(), Error> {
    tx.execute(&DEFER, &[&id, &error]).await.map(|_| ())
}

/// Ends a mail.
pub(crate) async fn end(
    tx: &mut Tx<'_>,
    id: Uuid,
    end: End,
    now: Timestamp,
    error: Option<&str>,
) -> Result<(), Error> {
    tx.execute(&END, &[&id, &end, &now, &error]).await.map(|_| ())
}
