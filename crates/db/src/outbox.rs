//! Messages that leave with the change they tell of: written in the same transaction, delivered at least once.
//!
//! Two readers exist. The in-process bus reads the table as a log ([`read_after`]) and keeps a [`Position`] per consumer
//! group. The Kafka relay [`claim`]s rows, publishes them and marks them [`published`]. A database has one or the other.

use std::time::Duration;

use serde_json::json;
use urr_kernel::{MessageId, Scalar, Timestamp, limits::MAX_MESSAGE_BYTES};

use crate::{EngineKind, Error, Row, Tx, statements};

/// How long published rows are kept, so that an operator can see what left and send it again.
pub const KEEP_PUBLISHED: Duration = Duration::from_hours(7 * 24);
/// Rows that one purge deletes: a few milliseconds of work, so that nobody's write waits long for it.
pub const PURGE_BATCH: u32 = 1_000;
/// The pause after the first, second and third failure to publish; the fourth makes a dead letter.
pub const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Rows that one [`adopt_foreign`] changes: some 20 µs each with their index entries, so a tenth of a second.
pub const ADOPT_BATCH: u32 = 5_000;
/// [`backlog`] stops counting here: beyond it the number is just "too many".
pub const MAX_COUNTED: u32 = 100_000;
/// The longest error text that is kept with a row.
const MAX_ERROR_CHARS: usize = 1_000;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Names it for ever: consumers remember which ones they have seen.
    pub id: MessageId,
    /// Where it goes.
    pub topic: String,
    /// What it is about. Messages of one topic and key are delivered in the order in which they were written, provided
    /// that the writers held a lock on that thing.
    pub key: String,
    /// What happened, such as `RESERVATION_CREATED`.
    pub kind: String,
    /// The details, as JSON text.
    pub payload: String,
    /// When it happened.
    pub at: Timestamp,
}

/// A place in the log. Everything at or before it has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The transaction that wrote the row; zero on SQLite, where transactions commit one after another.
    pub xid: i64,
    /// The row's number.
    pub seq: i64,
}

impl Position {
    /// Before everything.
    pub const START: Self = Self { xid: 0, seq: 0 };
}

/// A message that this relay is to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The row's number: what [`published`], [`released`] and [`failed`] go by.
    pub seq: i64,
    /// How often publishing it has failed.
    pub attempts: u32,
    /// What to publish.
    pub message: Message,
}

/// A message that could not be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// The row's number: what [`republish`] goes by.
    pub seq: i64,
    /// What was not published.
    pub message: Message,
    /// Why.
    pub error: String,
    /// Since when it lies.
    pub since: Timestamp,
}

/// What waits in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Rows not published yet, at most [`MAX_COUNTED`].
    pub waiting: u32,
    /// When the oldest of them was written.
    pub oldest: Option<Timestamp>,
    /// Rows given up on, at most [`MAX_COUNTED`].
    pub dead: u32,
}

statements! {
    /// Puts a message in.
    APPEND = "insert into outbox (id, topic, key, kind, payload, created_at, due_at)
              values ($1, $2, $3, $4, $5, $6, $6)";

    /// Puts many in, in one round trip to the server. The list is a JSON array.
    APPEND_ALL = postgres "
        insert into outbox (id, topic, key, kind, payload, created_at, due_at)
        select id, topic, key, kind, payload, at, at
          from rows from (jsonb_to_recordset($1::jsonb) as (id uuid, topic text, key text, kind text, payload text, at timestamptz))
               with ordinality as new (id, topic, key, kind, payload, at, place)
         order by place";

    /// The next rows of the log. SQLite commits in the order of `seq`.
    READ_SQLITE = sqlite "
        select id, topic, key, kind, payload, created_at, 0, seq
          from outbox where seq > $1 order by seq limit $2";

    /// The next rows of the log, up to the oldest transaction that is still running: it may yet add rows before those
    /// that we can see.
    READ_POSTGRES = postgres "
        select id, topic, key, kind, payload, created_at, xid, seq
          from outbox
         where (xid, seq) > ($1, $2) and xid < pg_snapshot_xmin(pg_current_snapshot())
         order by xid, seq limit $3";

    /// The first position that the log has not given out. SQLite remembers the last number even of rows that are gone;
    /// a PostgreSQL transaction that anybody can have seen is older than the end of the snapshot.
    END = sqlite "
        select 0, 1 + max(coalesce((select seq from sqlite_sequence where name = 'outbox'), 0),
                          coalesce((select max(seq) from outbox), 0))"
      postgres "
        select pg_snapshot_xmax(pg_current_snapshot()), 0::bigint";

    /// Whether rows are there that no transaction of this server can have written.
    FOREIGN = postgres "
        select exists (select 1 from outbox where xid >= pg_snapshot_xmax(pg_current_snapshot()))";

    /// Puts such rows before everything that this server writes, in the order of their numbers. The condition stands
    /// twice so that a row which another process has just adopted is left alone.
    ADOPT = postgres "
        update outbox set xid = '0'::xid8
         where seq in (select seq from outbox
                        where xid >= pg_snapshot_xmax(pg_current_snapshot()) order by xid, seq limit $1)
           and xid >= pg_snapshot_xmax(pg_current_snapshot())";

    /// Whether any row lies after a position, readable yet or not.
    ANY_AFTER = sqlite "select exists (select 1 from outbox where seq > $2 and $1 = 0)"
      postgres "select exists (select 1 from outbox where (xid, seq) > ($1, $2))";

    /// Takes rows to publish: of the oldest 2,000 waiting rows those that are due and the first of their key, so that
    /// one message per key is on its way at a time. An older row of the same key that waits is among them too. The window
    /// bounds the work when one key has a long tail. Of two relays on PostgreSQL each takes rows that the other has not
    /// locked; SQLite has one writer.
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

    /// Marks rows as published; the list is a JSON array, for SQLite has no other.
    PUBLISHED = sqlite "
        update outbox set published_at = $2, last_error = null
         where seq in (select value from json_each($1)) and published_at is null"
      postgres "
        update outbox set published_at = $2, last_error = null
         where seq in (select value::bigint from jsonb_array_elements_text($1::jsonb)) and published_at is null";

    /// Gives rows back untried.
    RELEASED = sqlite "
        update outbox set due_at = $2
         where seq in (select value from json_each($1)) and published_at is null"
      postgres "
        update outbox set due_at = $2
         where seq in (select value::bigint from jsonb_array_elements_text($1::jsonb)) and published_at is null";

    /// Counts a failure.
    FAILED = "update outbox set attempts = attempts + 1, due_at = $2, dead_at = $3, last_error = $4
               where seq = $1 and attempts = $5 and published_at is null and dead_at is null";

    /// How many wait and how many are dead.
    COUNTS = "select (select count(*) from (select 1 from outbox
                       where published_at is null and dead_at is null limit $1) waiting),
                     (select count(*) from (select 1 from outbox where dead_at is not null limit $1) dead)";

    /// When the oldest that waits was written.
    OLDEST = "select created_at from outbox where published_at is null and dead_at is null order by seq limit 1";

    /// What was given up on.
    DEAD = "select id, topic, key, kind, payload, created_at, last_error, dead_at, seq
              from outbox where dead_at is not null and seq > $1 order by seq limit $2";

    /// Gives a dead row another life.
    REPUBLISH = "update outbox set dead_at = null, attempts = 0, due_at = $2 where seq = $1 and dead_at is not null";

    /// Deletes what was published long ago.
    PURGE_PUBLISHED = "delete from outbox where seq in
                         (select seq from outbox where published_at < $1 order by published_at limit $2)";
}

/// Puts a message in the outbox of the transaction's own domain. A payload that brokers would refuse is refused here,
/// where the change can still be refused with it.
pub async fn append(tx: &mut Tx<'_>, message: &Message) -> Result<(), Error> {
    message.check()?;
    tx.execute(&APPEND, &message.row()).await?;
    tx.appended = true;
    Ok(())
}

/// Puts messages in, in this order, as [`append`] does.
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

    /// One of the documents of [`APPEND_ALL`].
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

/// The next messages of the log after a position, with the position to go on from.
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

/// The first position that this log has not given out: whoever claims to have read it has read another log. That is so
/// after a restore, onto another PostgreSQL server (whose transactions count from their own beginning) or of an older
/// SQLite file.
pub async fn end(tx: &mut Tx<'_>) -> Result<Position, Error> {
    tx.one(&END, &[], |row| Ok(Position { xid: row.get(0)?, seq: row.get(1)? })).await
}

/// Whether the log holds rows that it cannot have written itself, because they came with a dump of another server. Nobody
/// can read them until they are [adopted](adopt_foreign).
pub async fn has_foreign(tx: &mut Tx<'_>) -> Result<bool, Error> {
    match tx.engine_kind() {
        EngineKind::Sqlite => Ok(false),
        EngineKind::Postgres => tx.one(&FOREIGN, &[], |row| row.get(0)).await,
    }
}

/// Moves at most [`ADOPT_BATCH`] foreign rows to the beginning of the log. Says how many; fewer than the batch means that
/// it is done. A group that stands after the beginning would never see them: every group must be put there first.
pub async fn adopt_foreign(tx: &mut Tx<'_>) -> Result<u64, Error> {
    match tx.engine_kind() {
        EngineKind::Sqlite => Ok(0),
        EngineKind::Postgres => tx.execute(&ADOPT, &[&ADOPT_BATCH]).await,
    }
}

/// Whether there is anything after a position. If [`read_after`] gives nothing although there is, then a transaction that
/// is older than those rows still runs.
pub async fn any_after(tx: &mut Tx<'_>, after: Position) -> Result<bool, Error> {
    tx.one(&ANY_AFTER, &[&after.xid, &after.seq], |row| row.get(0)).await
}

/// Takes at most `limit` messages to publish, oldest first. Until `claim_for` is over no other relay gets them; a relay
/// that dies loses nothing but that time.
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

/// The broker has them.
pub async fn published(tx: &mut Tx<'_>, seqs: &[i64], now: Timestamp) -> Result<(), Error> {
    tx.execute(&PUBLISHED, &[&list(seqs), &now]).await.map(|_| ())
}

/// Gives claimed messages back untried, due at `due`: the broker is down, which is no fault of theirs.
pub async fn released(tx: &mut Tx<'_>, seqs: &[i64], due: Timestamp) -> Result<(), Error> {
    tx.execute(&RELEASED, &[&list(seqs), &due]).await.map(|_| ())
}

/// The broker refused this one. It is tried again after a pause; after the last pause it is a dead letter, which the
/// answer tells, and the key's next message goes on.
pub async fn failed(tx: &mut Tx<'_>, claimed: &Claimed, error: &str, now: Timestamp) -> Result<bool, Error> {
    let pause = PAUSES.get(claimed.attempts as usize);
    let due = now.after(pause.copied().unwrap_or_default());
    let dead_at = if pause.is_none() { Some(now) } else { None };
    let error = shortened(error);
    tx.execute(&FAILED, &[&claimed.seq, &due, &dead_at, &error, &claimed.attempts]).await?;
    Ok(dead_at.is_some())
}

/// How much waits.
pub async fn backlog(tx: &mut Tx<'_>) -> Result<Backlog, Error> {
    let (waiting, dead) = tx.one(&COUNTS, &[&MAX_COUNTED], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let oldest = tx.optional(&OLDEST, &[], |row| row.get(0)).await?;
    Ok(Backlog { waiting, oldest, dead })
}

/// Messages that were given up on, after the row numbered `after`.
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

/// Publishes a dead letter after all. Says whether there was one.
pub async fn republish(tx: &mut Tx<'_>, seq: i64, now: Timestamp) -> Result<bool, Error> {
    let changed = tx.execute(&REPUBLISH, &[&seq, &now]).await?;
    tx.appended |= changed > 0;
    Ok(changed > 0)
}

/// Deletes at most [`PURGE_BATCH`] rows that were published more than [`KEEP_PUBLISHED`] ago. Says how many went; fewer
/// than the batch means that it is done.
pub async fn purge_published(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    tx.execute(&PURGE_PUBLISHED, &[&now.before(KEEP_PUBLISHED), &PURGE_BATCH]).await
}

/// The message in the first six columns.
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

/// The part of an error text that is worth keeping.
pub(crate) fn shortened(error: &str) -> String {
    error.chars().take(MAX_ERROR_CHARS).collect()
}

fn list(seqs: &[i64]) -> String {
    let numbers: Vec<String> = seqs.iter().map(i64::to_string).collect();
    format!("[{}]", numbers.join(","))
}
