//! The outbox: messages written in the transaction of their change and delivered at least once.
//!
//! There are two readers. The in-process bus reads the table as a log ([`read_after`]) and stores a
//! [`Position`] per consumer group. The Kafka relay [`claim`]s rows, publishes them and marks them
//! [`published`]. A database is used by one or the other.

mod message;

use std::time::Duration;

use serde_json::json;
use urr_kernel::{Scalar, Timestamp, limits::MAX_MESSAGE_BYTES};

pub use message::Message;

use crate::{EngineKind, Error, Row, Tx, statements};

/// Retention of published rows, so that an operator can see what was sent and send it again.
pub const KEEP_PUBLISHED: Duration = Duration::from_hours(7 * 24);
/// Rows deleted per purge: a few milliseconds, so that other writes do not wait long.
pub const PURGE_BATCH: u32 = 1_000;
/// Backoff after the first, second and third failure to publish; the fourth makes a dead letter.
pub const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Rows changed per [`adopt_foreign`]: about 20 µs each with their index entries, 0.1 s in all.
pub const ADOPT_BATCH: u32 = 5_000;
/// [`backlog`] stops counting here.
pub const MAX_COUNTED: u32 = 100_000;
/// Longest error text stored with a row.
const MAX_ERROR_CHARS: usize = 1_000;

/// A position in the log. Everything at or before it has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The transaction that wrote the row; zero on SQLite, where transactions are serial.
    pub xid: i64,
    /// The row number.
    pub seq: i64,
}

impl Position {
    /// Before the first row.
    pub const START: Self = Self { xid: 0, seq: 0 };
}

/// A message claimed for publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The row number, for [`published`], [`released`] and [`failed`].
    pub seq: i64,
    /// Failed attempts to publish it.
    pub attempts: u32,
    /// The message.
    pub message: Message,
}

/// A message that could not be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// The row number, for [`republish`].
    pub seq: i64,
    /// The message.
    pub message: Message,
    /// The last error.
    pub error: String,
    /// When it became a dead letter.
    pub since: Timestamp,
}

/// The size of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Rows not yet published, at most [`MAX_COUNTED`].
    pub waiting: u32,
    /// When the oldest unpublished row was written.
    pub oldest: Option<Timestamp>,
    /// Dead letters, at most [`MAX_COUNTED`].
    pub dead: u32,
}

statements! {
    /// Inserts a message.
    APPEND = "insert into outbox (id, topic, key, kind, payload, created_at, due_at)
              values ($1, $2, $3, $4, $5, $6, $6)";

    /// Inserts many in one round trip. The parameter is a JSON array.
    APPEND_ALL = postgres "
        insert into outbox (id, topic, key, kind, payload, created_at, due_at)
        select id, topic, key, kind, payload, at, at
          from rows from (jsonb_to_recordset($1::jsonb) as (id uuid, topic text, key text, kind text, payload text, at timestamptz))
               with ordinality as new (id, topic, key, kind, payload, at, place)
         order by place";

    /// The next rows of the log. SQLite commits in `seq` order.
    READ_SQLITE = sqlite "
        select id, topic, key, kind, payload, created_at, 0, seq
          from outbox where seq > $1 order by seq limit $2";

    /// The next rows of the log, up to the oldest transaction still running: it may still add rows
    /// before those that are visible now.
    READ_POSTGRES = postgres "
        select id, topic, key, kind, payload, created_at, xid, seq
          from outbox
         where (xid, seq) > ($1, $2) and xid < pg_snapshot_xmin(pg_current_snapshot())
         order by xid, seq limit $3";

    /// The first position not yet assigned. SQLite remembers the last number even of deleted rows.
    /// On PostgreSQL every transaction visible to a reader is older than the snapshot's xmax.
    END = sqlite "
        select 0, 1 + max(coalesce((select seq from sqlite_sequence where name = 'outbox'), 0),
                          coalesce((select max(seq) from outbox), 0))"
      postgres "
        select pg_snapshot_xmax(pg_current_snapshot()), 0::bigint";

    /// Whether there are rows that no transaction of this server can have written.
    FOREIGN = postgres "
        select exists (select 1 from outbox where xid >= pg_snapshot_xmax(pg_current_snapshot()))";

    /// Moves such rows before everything this server writes, in `seq` order. The condition is
    /// repeated so that a row another process has just adopted is left alone.
    ADOPT = postgres "
        update outbox set xid = '0'::xid8
         where seq in (select seq from outbox
                        where xid >= pg_snapshot_xmax(pg_current_snapshot()) order by xid, seq limit $1)
           and xid >= pg_snapshot_xmax(pg_current_snapshot())";

    /// Whether any row is after a position, readable yet or not.
    ANY_AFTER = sqlite "select exists (select 1 from outbox where seq > $2 and $1 = 0)"
      postgres "select exists (select 1 from outbox where (xid, seq) > ($1, $2))";

    /// Claims rows to publish. Of the oldest 2,000 unpublished rows, it takes those that are due
    /// and the first of their key, so that one message per key is in flight at a time. An older
    /// unpublished row of the same key is always inside that window. The window bounds the work
    /// when one key has a long backlog. On PostgreSQL two relays skip each other's locked rows;
    /// SQLite has one writer.
    CLAIM = sqlite "
        with waiting as materialized (
          select seq, due_at, row_number() over (partition by topic, key order by seq) as place
            from (select seq, topic, key, due_at from outbox where published_at is null and dead_at is null
                   order by seq limit 2000))
        update outbox set due_at = $3
         where seq in (select seq from waiting where place = 1 and due_at <= $1 order by seq limit $2)
        returning id, topic, key, kind, payload, created_at, attempts, seq"
      postgres "
        with waiting as materialized (
          select seq, due_at, row_number() over (partition by topic, key order by seq) as place
            from (select seq, topic, key, due_at from outbox where published_at is null and dead_at is null
                   order by seq limit 2000) oldest),
        head as materialized (
          select o.seq from outbox o
           where o.seq in (select w.seq from waiting w where w.place = 1 and w.due_at <= $1)
             and o.published_at is null and o.dead_at is null and o.due_at <= $1
           order by o.seq limit $2 for update skip locked)
        update outbox set due_at = $3 where seq in (select seq from head)
        returning id, topic, key, kind, payload, created_at, attempts, seq";

    /// Marks rows as published. The list is a JSON array because SQLite has no array parameters.
    PUBLISHED = sqlite "
        update outbox set published_at = $2, last_error = null
         where seq in (select value from json_each($1)) and published_at is null"
      postgres "
        update outbox set published_at = $2, last_error = null
         where seq in (select value::bigint from jsonb_array_elements_text($1::jsonb)) and published_at is null";

    /// Releases claimed rows without counting an attempt.
    RELEASED = sqlite "
        update outbox set due_at = $2
         where seq in (select value from json_each($1)) and published_at is null"
      postgres "
        update outbox set due_at = $2
         where seq in (select value::bigint from jsonb_array_elements_text($1::jsonb)) and published_at is null";

    /// Counts a failed attempt.
    FAILED = "update outbox set attempts = attempts + 1, due_at = $2, dead_at = $3, last_error = $4
               where seq = $1 and attempts = $5 and published_at is null and dead_at is null";

    /// Numbers of unpublished rows and of dead letters.
    COUNTS = "select (select count(*) from (select 1 from outbox
                       where published_at is null and dead_at is null limit $1) waiting),
                     (select count(*) from (select 1 from outbox where dead_at is not null limit $1) dead)";

    /// When the oldest unpublished row was written.
    OLDEST = "select created_at from outbox where published_at is null and dead_at is null order by seq limit 1";

    /// Dead letters.
    DEAD = "select id, topic, key, kind, payload, created_at, last_error, dead_at, seq
              from outbox where dead_at is not null and seq > $1 order by seq limit $2";

    /// Returns a dead letter to the unpublished rows.
    REPUBLISH = "update outbox set dead_at = null, attempts = 0, due_at = $2 where seq = $1 and dead_at is not null";

    /// Deletes rows published before a time.
    PURGE_PUBLISHED = "delete from outbox where seq in
                         (select seq from outbox where published_at < $1 order by published_at limit $2)";
}

/// Appends a message to the outbox of the transaction's domain. A payload too large for the broker
/// is rejected here, where the change can still be rolled back.
pub async fn append(tx: &mut Tx<'_>, message: &Message) -> Result<(), Error> {
    message.check()?;
    tx.execute(&APPEND, &message.row()).await?;
    tx.appended = true;
    Ok(())
}

/// Appends messages in this order, as [`append`] does.
pub async fn append_all<'m>(
    tx: &mut Tx<'_>,
    messages: impl Iterator<Item = &'m Message>,
) -> Result<(), Error> {
    let messages: Vec<&Message> = messages.collect();
    if messages.is_empty() {
        return Ok(());
    }
    messages.iter().try_for_each(|message| message.check())?;
    match tx.engine_kind() {
        EngineKind::Sqlite => {
            let rows: Vec<_> = messages.into_iter().map(Message::row).collect();
            tx.execute_each(&APPEND, &rows).await?;
        }
        EngineKind::Postgres => {
            let rows: serde_json::Value = messages.into_iter().map(Message::document).collect();
            tx.execute(&APPEND_ALL, &[&rows.to_string()]).await?;
        }
    }
    tx.appended = true;
    Ok(())
}

impl Message {
    /// The parameters of [`APPEND`].
    fn row(&self) -> [&dyn Scalar; 6] {
        let Self { id, topic, key, kind, payload, at } = self;
        [id, topic, key, kind, payload, at]
    }

    /// One element of the array for [`APPEND_ALL`].
    fn document(&self) -> serde_json::Value {
        let Self { id, topic, key, kind, payload, at } = self;
        json!({ "id": id, "topic": topic, "key": key, "kind": kind, "payload": payload, "at": at })
    }

    fn check(&self) -> Result<(), Error> {
        let size = self.payload.len();
        if size <= MAX_MESSAGE_BYTES {
            return Ok(());
        }
        Err(Error::bug(format!("a {} message of {size} bytes is larger than {MAX_MESSAGE_BYTES}", self.kind)))
    }
}

/// The next messages after a position, each with its own position.
pub async fn read_after(
    tx: &mut Tx<'_>,
    after: Position,
    limit: u32,
) -> Result<Vec<(Position, Message)>, Error> {
    let map = |row: &Row<'_>| Ok((Position { xid: row.get(6)?, seq: row.get(7)? }, message(row)?));
    match tx.engine_kind() {
        EngineKind::Sqlite => tx.all(&READ_SQLITE, &[&after.seq, &limit], map).await,
        EngineKind::Postgres => tx.all(&READ_POSTGRES, &[&after.xid, &after.seq, &limit], map).await,
    }
}

/// The first position this log has not assigned. A group whose position is beyond it has read
/// another log. This happens after a restore: onto another PostgreSQL server, whose transaction ids
/// start from their own beginning, or of an older SQLite file.
pub async fn end(tx: &mut Tx<'_>) -> Result<Position, Error> {
    tx.one(&END, &[], |row| Ok(Position { xid: row.get(0)?, seq: row.get(1)? })).await
}

/// Whether the log contains rows from a dump of another server, whose transaction ids are in this
/// server's future. They cannot be read until they are [adopted](adopt_foreign).
pub async fn has_foreign(tx: &mut Tx<'_>) -> Result<bool, Error> {
    match tx.engine_kind() {
        EngineKind::Sqlite => Ok(false),
        EngineKind::Postgres => tx.one(&FOREIGN, &[], |row| row.get(0)).await,
    }
}

/// Moves at most [`ADOPT_BATCH`] foreign rows to the beginning of the log and returns how many;
/// fewer than the batch means done. Reset every group to the beginning first, because a group past
/// it would never read these rows.
pub async fn adopt_foreign(tx: &mut Tx<'_>) -> Result<u64, Error> {
    match tx.engine_kind() {
        EngineKind::Sqlite => Ok(0),
        EngineKind::Postgres => tx.execute(&ADOPT, &[&ADOPT_BATCH]).await,
    }
}

/// Whether any row is after a position. If [`read_after`] returns nothing although this is true, a
/// transaction older than those rows is still running.
pub async fn any_after(tx: &mut Tx<'_>, after: Position) -> Result<bool, Error> {
    tx.one(&ANY_AFTER, &[&after.xid, &after.seq], |row| row.get(0)).await
}

/// Claims at most `limit` messages, oldest first. No other relay gets them until `claim_for` is
/// over. If the relay dies, they are claimed again after that.
pub async fn claim(
    tx: &mut Tx<'_>,
    now: Timestamp,
    limit: u32,
    claim_for: Duration,
) -> Result<Vec<Claimed>, Error> {
    let map = |row: &Row<'_>| Ok(Claimed { message: message(row)?, attempts: row.get(6)?, seq: row.get(7)? });
    let mut claimed = tx.all(&CLAIM, &[&now, &limit, &now.after(claim_for)], map).await?;
    claimed.sort_unstable_by_key(|claimed| claimed.seq);
    Ok(claimed)
}

/// Marks messages as published.
pub async fn published(tx: &mut Tx<'_>, seqs: &[i64], now: Timestamp) -> Result<(), Error> {
    tx.execute(&PUBLISHED, &[&list(seqs), &now]).await.map(|_| ())
}

/// Releases claimed messages, due again at `due`, without counting an attempt: the broker is down.
pub async fn released(tx: &mut Tx<'_>, seqs: &[i64], due: Timestamp) -> Result<(), Error> {
    tx.execute(&RELEASED, &[&list(seqs), &due]).await.map(|_| ())
}

/// Counts a failed attempt because the broker rejected the message. It is retried after a backoff.
/// After the last attempt it becomes a dead letter, the key's next message is published, and this
/// returns `true`.
pub async fn failed(tx: &mut Tx<'_>, claimed: &Claimed, error: &str, now: Timestamp) -> Result<bool, Error> {
    let pause = PAUSES.get(claimed.attempts as usize);
    let due = now.after(pause.copied().unwrap_or_default());
    let dead_at = if pause.is_none() { Some(now) } else { None };
    let error = shortened(error);
    tx.execute(&FAILED, &[&claimed.seq, &due, &dead_at, &error, &claimed.attempts]).await?;
    Ok(dead_at.is_some())
}

/// Counts unpublished rows and dead letters.
pub async fn backlog(tx: &mut Tx<'_>) -> Result<Backlog, Error> {
    let (waiting, dead) = tx.one(&COUNTS, &[&MAX_COUNTED], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let oldest = tx.optional(&OLDEST, &[], |row| row.get(0)).await?;
    Ok(Backlog { waiting, oldest, dead })
}

/// Dead letters after the row numbered `after`.
pub async fn dead_letters(tx: &mut Tx<'_>, after: i64, limit: u32) -> Result<Vec<Dead>, Error> {
    let map = |row: &Row<'_>| {
        let error: Option<String> = row.get(6)?;
        Ok(Dead {
            message: message(row)?,
            error: error.unwrap_or_default(),
            since: row.get(7)?,
            seq: row.get(8)?,
        })
    };
    tx.all(&DEAD, &[&after, &limit], map).await
}

/// Queues a dead letter for publishing again. Returns whether it existed.
pub async fn republish(tx: &mut Tx<'_>, seq: i64, now: Timestamp) -> Result<bool, Error> {
    let changed = tx.execute(&REPUBLISH, &[&seq, &now]).await?;
    tx.appended |= changed > 0;
    Ok(changed > 0)
}

/// Deletes at most [`PURGE_BATCH`] rows published more than [`KEEP_PUBLISHED`] ago and returns how
/// many; fewer than the batch means done.
pub async fn purge_published(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    tx.execute(&PURGE_PUBLISHED, &[&now.before(KEEP_PUBLISHED), &PURGE_BATCH]).await
}

/// Reads a message from the first six columns.
pub(crate) fn message(row: &Row<'_>) -> Result<Message, Error> {
    Ok(Message {
        id: row.get(0)?,
        topic: row.get(1)?,
        key: row.get(2)?,
        kind: row.get(3)?,
        payload: row.get(4)?,
        at: row.get(5)?,
    })
}

/// Cuts an error text to [`MAX_ERROR_CHARS`].
pub(crate) fn shortened(error: &str) -> String {
    error.chars().take(MAX_ERROR_CHARS).collect()
}

fn list(seqs: &[i64]) -> String {
    let numbers: Vec<String> = seqs.iter().map(i64::to_string).collect();
    format!("[{}]", numbers.join(","))
}
