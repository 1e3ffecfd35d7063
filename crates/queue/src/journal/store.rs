//! Statements and rows of journals; nothing else.

use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, OrderKey, Scalar, Timestamp, UserId};
use uuid::Uuid;

use super::{Entry, Step, Why};

statements! {
    /// Writes one line. One that is there already is the same line.
    APPEND = "
        insert into journal (event_id, generation, seq, at, kind, user_id, order_key, slot_id, number, why)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        on conflict (event_id, generation, seq) do nothing";

    /// The lines after a given one, in order.
    AFTER = "
        select generation, seq, at, kind, user_id, order_key, slot_id, number, why
          from journal
         where event_id = $1 and (generation > $2 or (generation = $2 and seq > $3))
         order by generation, seq limit $4";

    /// What operators decided last, newest first.
    DECIDED = "
        select kind, number from journal
         where event_id = $1 and kind in ('threshold', 'paused', 'resumed', 'cleared')
         order by generation desc, seq desc limit $2";

    /// Every room there is.
    ROOMS = "select event_id, generation, threshold from rooms where event_id > $1 order by event_id limit $2";

    /// A room's first life. Answers with nothing if it has one.
    OPEN = "
        insert into rooms (event_id, generation, threshold, opened_at) values ($1, 1, $2, $3)
        on conflict (event_id) do nothing";

    /// A room's next life.
    REOPEN = "
        update rooms set generation = generation + 1, opened_at = $2
         where event_id = $1 returning generation, threshold";
}

/// The words of the column `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Joined,
    Admitted,
    Returned,
    Gone,
    Threshold,
    Paused,
    Resumed,
    Cleared,
}

urr_db::text_enum! {
    Kind {
        Joined = "joined",
        Admitted = "admitted",
        Returned = "returned",
        Gone = "gone",
        Threshold = "threshold",
        Paused = "paused",
        Resumed = "resumed",
        Cleared = "cleared",
    }
}
urr_db::text_enum! { Why { Left = "left", Idle = "idle", Expired = "expired", Bought = "bought" } }

/// The columns of a step.
#[derive(Debug, Default)]
struct Columns {
    user: Option<UserId>,
    order: Option<OrderKey>,
    slot: Option<Uuid>,
    number: Option<i64>,
    why: Option<Why>,
}

fn columns(step: &Step) -> (Kind, Columns) {
    let none = Columns::default();
    match *step {
        Step::Joined { user, order } => {
            (Kind::Joined, Columns { user: Some(user), order: Some(order), ..none })
        }
        Step::Admitted { user, order, slot } => {
            (Kind::Admitted, Columns { user: Some(user), order: Some(order), slot: Some(slot), ..none })
        }
        Step::Returned { user, order } => {
            (Kind::Returned, Columns { user: Some(user), order: Some(order), ..none })
        }
        Step::Gone { user, why } => (Kind::Gone, Columns { user: Some(user), why: Some(why), ..none }),
        Step::Threshold { threshold } => {
            (Kind::Threshold, Columns { number: Some(threshold.into()), ..none })
        }
        Step::Paused => (Kind::Paused, none),
        Step::Resumed => (Kind::Resumed, none),
        Step::Cleared { epoch } => {
            let number = i64::try_from(epoch).expect("epochs are counted by hand");
            (Kind::Cleared, Columns { number: Some(number), ..none })
        }
    }
}

/// Writes entries of one event's journal.
pub(crate) async fn append(tx: &mut Tx<'_>, event: EventId, entry: &Entry) -> Result<(), Error> {
    let (kind, Columns { user, order, slot, number, why }) = columns(&entry.step);
    let (generation, seq) = (counted(entry.generation), counted(entry.seq));
    let params: [&dyn Scalar; 10] =
        [&event, &generation, &seq, &entry.at, &kind, &user, &order, &slot, &number, &why];
    tx.execute(&APPEND, &params).await?;
    Ok(())
}

/// Up to `limit` entries after the one numbered `seq` of `generation`.
pub(crate) async fn after(
    tx: &mut Tx<'_>,
    event: EventId,
    generation: u64,
    seq: u64,
    limit: i64,
) -> Result<Vec<Entry>, Error> {
    tx.all(&AFTER, &[&event, &counted(generation), &counted(seq), &limit], entry).await
}

fn entry(row: &Row<'_>) -> Result<Entry, Error> {
    let step = match row.get(3)? {
        Kind::Joined => Step::Joined { user: row.get(4)?, order: row.get(5)? },
        Kind::Admitted => Step::Admitted { user: row.get(4)?, order: row.get(5)?, slot: row.get(6)? },
        Kind::Returned => Step::Returned { user: row.get(4)?, order: row.get(5)? },
        Kind::Gone => Step::Gone { user: row.get(4)?, why: row.get(8)? },
        Kind::Threshold => Step::Threshold { threshold: row.get(7)? },
        Kind::Paused => Step::Paused,
        Kind::Resumed => Step::Resumed,
        Kind::Cleared => Step::Cleared { epoch: row.get::<u32>(7)?.into() },
    };
    Ok(Entry { generation: number(row, 0)?, seq: number(row, 1)?, at: row.get(2)?, step })
}

/// A room's present life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) event: EventId,
    pub(crate) generation: u64,
    /// What it began with.
    pub(crate) threshold: u32,
}

/// Up to `limit` rooms after the one of `event`.
pub(crate) async fn lives(tx: &mut Tx<'_>, event: EventId, limit: i64) -> Result<Vec<Life>, Error> {
    let life =
        |row: &Row<'_>| Ok(Life { event: row.get(0)?, generation: number(row, 1)?, threshold: row.get(2)? });
    tx.all(&ROOMS, &[&event, &limit], life).await
}

/// Begins a room's first life, unless it has one.
pub(crate) async fn open(
    tx: &mut Tx<'_>,
    event: EventId,
    threshold: u32,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&OPEN, &[&event, &threshold, &now]).await?;
    Ok(())
}

/// What a room must not forget when its store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) generation: u64,
    pub(crate) threshold: u32,
    pub(crate) paused: bool,
    pub(crate) epoch: u64,
}

/// Operator decisions looked back at: more than anybody takes in one sale.
const MAX_DECISIONS: i64 = 10_000;

/// Begins a room's next life, which may be its first.
pub(crate) async fn begin(
    tx: &mut Tx<'_>,
    event: EventId,
    threshold: u32,
    now: Timestamp,
) -> Result<Kept, Error> {
    if tx.execute(&OPEN, &[&event, &threshold, &now]).await? == 1 {
        return Ok(Kept { generation: 1, threshold, paused: false, epoch: 1 });
    }
    let began = |row: &Row<'_>| Ok((number(row, 0)?, row.get(1)?));
    let (generation, threshold): (u64, u32) = tx.one(&REOPEN, &[&event, &now], began).await?;
    let decided: Vec<(Kind, Option<i64>)> =
        tx.all(&DECIDED, &[&event, &MAX_DECISIONS], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let last = |kind: Kind| decided.iter().find(|(found, _)| *found == kind).and_then(|(_, number)| *number);
    let pauses = |(kind, _): &&(Kind, Option<i64>)| matches!(kind, Kind::Paused | Kind::Resumed);
    Ok(Kept {
        generation,
        threshold: last(Kind::Threshold).and_then(|number| u32::try_from(number).ok()).unwrap_or(threshold),
        paused: decided.iter().find(pauses).is_some_and(|(kind, _)| *kind == Kind::Paused),
        epoch: last(Kind::Cleared).and_then(|number| u64::try_from(number).ok()).unwrap_or(1),
    })
}

fn counted(number: u64) -> i64 {
    i64::try_from(number).expect("counted one by one")
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, Error> {
    row.get::<i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}
