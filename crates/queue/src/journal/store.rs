//! Statements and rows of journals; nothing else.

use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, OrderKey, Scalar, Timestamp, UserId};

use super::{
    Entry, Step, Why,
    active_slots::cleared,
    rows::{Columns, Kind, columns, entry, number},
    setting,
    slot_copy::SlotCopy,
};
use crate::used_positions::{UsedPosition, UserHistory};

statements! {
    /// Inserts an entry. A conflict means that it is there already.
    APPEND = "
        insert into journal (event_id, generation, seq, at, kind, user_id, order_key, slot_id, number, why, source)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        on conflict (event_id, generation, seq) do nothing";

    /// Entries after a given one, in order. Compared as a pair so that the primary key is used.
    AFTER = "
        select generation, seq, at, kind, user_id, order_key, slot_id, number, why, source
          from journal
         where event_id = $1 and (generation, seq) > ($2, $3)
         order by generation, seq limit $4";

    /// Latest operator decisions, newest first.
    DECIDED = "
        select kind, number from journal
         where event_id = $1 and kind in ('threshold', 'paused', 'resumed', 'cleared')
         order by generation desc, seq desc limit $2";

    /// Whether this is the current, open generation of a room.
    GOES_ON = "select 1 from rooms where event_id = $1 and generation = $2 and closed_at is null";

    /// Open rooms.
    ROOMS = "
        select event_id, generation, threshold from rooms where event_id > $1 and closed_at is null
         order by event_id limit $2";

    /// One room, open or closed.
    ROOM = "select event_id, generation, threshold from rooms where event_id = $1";

    /// Inserts a room's first generation. Returns no row if the room exists.
    OPEN = "
        insert into rooms (event_id, generation, threshold, configured, opened_at) values ($1, 1, $2, $2, $3)
        on conflict (event_id) do nothing";

    /// Whether a room's last generation was closed properly. Locks the room.
    WAS_CLOSED = locking "select closed_at is not null from rooms where event_id = $1";

    /// Begins a room's next generation.
    REOPEN = "
        update rooms set generation = generation + 1, opened_at = $2, closed_at = null
         where event_id = $1 returning generation, threshold, configured";

    /// Steps of one user except joins, which the index leaves out; latest first.
    TURNS = "
        select kind, order_key, at, why from journal
         where event_id = $1 and user_id = $2 and kind <> 'joined'
         order by generation desc, seq desc limit $3";

    /// When a room was last used, according to the journal.
    LAST_USED = "
        select coalesce((select max(at) from journal where journal.event_id = $1 and journal.generation = $2), opened_at)
          from rooms where event_id = $1 and generation = $2";

    /// A room's current generation, whether it is closed, and its last step.
    NEWEST = "
        select generation, closed_at is not null,
               coalesce((select max(seq) from journal
                          where journal.event_id = rooms.event_id and journal.generation = rooms.generation), 0)
          from rooms where event_id = $1";

    /// Closes a room, unless it has begun another generation.
    CLOSE = "update rooms set closed_at = $3 where event_id = $1 and generation = $2 and closed_at is null";

    /// Rooms that were closed before a given time.
    OLD = "select event_id from rooms where closed_at < $1 order by closed_at limit $2";

    /// Deletes a batch of the oldest steps of a room that was closed before a given time and not
    /// reopened.
    FORGET_STEPS = "
        delete from journal where event_id = $1 and (generation, seq) in
            (select generation, seq from journal where event_id = $1 order by generation, seq limit $2)
           and exists (select 1 from rooms where rooms.event_id = $1 and rooms.closed_at < $3)";

    /// Deletes a room that has no steps left and was closed before a given time.
    FORGET_ROOM = "
        delete from rooms where event_id = $1 and closed_at < $2
           and not exists (select 1 from journal where journal.event_id = $1)";
}

/// Appends an entry. Returns `false` if another entry has its number: a second process writes this
/// journal.
pub(crate) async fn append(tx: &mut Tx<'_>, event: EventId, entry: &Entry) -> Result<bool, Error> {
    let (kind, Columns { user, order, slot, number, why, source }) = columns(&entry.step);
    let (generation, seq) = (counted(entry.generation), counted(entry.seq));
    let params: [&dyn Scalar; 11] =
        [&event, &generation, &seq, &entry.at, &kind, &user, &order, &slot, &number, &why, &source];
    if tx.execute(&APPEND, &params).await? == 1 {
        if kind == Kind::Threshold {
            setting::decide(tx, event).await?;
        }
        return Ok(true);
    }
    // Written before, by an attempt whose result was lost.
    let there = after(tx, event, entry.generation, entry.seq - 1, 1).await?;
    Ok(there.first().is_some_and(|there| there == entry))
}

pub(crate) async fn after(
    tx: &mut Tx<'_>,
    event: EventId,
    generation: u64,
    seq: u64,
    limit: i64,
) -> Result<Vec<Entry>, Error> {
    tx.all(&AFTER, &[&event, &counted(generation), &counted(seq), &limit], entry).await
}

/// A room's current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) event: EventId,
    pub(crate) generation: u64,
    /// The threshold at its start.
    pub(crate) threshold: u32,
}

/// Up to `limit` open rooms after the one of `event`.
pub(crate) async fn generations(tx: &mut Tx<'_>, event: EventId, limit: i64) -> Result<Vec<Life>, Error> {
    let life =
        |row: &Row<'_>| Ok(Life { event: row.get(0)?, generation: number(row, 1)?, threshold: row.get(2)? });
    tx.all(&ROOMS, &[&event, &limit], life).await
}

/// One room.
pub(crate) async fn life(tx: &mut Tx<'_>, event: EventId) -> Result<Option<Life>, Error> {
    let life =
        |row: &Row<'_>| Ok(Life { event: row.get(0)?, generation: number(row, 1)?, threshold: row.get(2)? });
    tx.optional(&ROOM, &[&event], life).await
}

/// Whether this generation of a room is current and open.
pub(crate) async fn goes_on(tx: &mut Tx<'_>, event: EventId, generation: u64) -> Result<bool, Error> {
    let found = tx.optional(&GOES_ON, &[&event, &counted(generation)], |_| Ok(())).await?;
    Ok(found.is_some())
}

/// Closes a room. Returns `false` if it has begun another generation.
pub(crate) async fn close(
    tx: &mut Tx<'_>,
    event: EventId,
    generation: u64,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.execute(&CLOSE, &[&event, &counted(generation), &now]).await? == 1)
}

pub(crate) async fn old(tx: &mut Tx<'_>, before: Timestamp, limit: i64) -> Result<Vec<EventId>, Error> {
    tx.all(&OLD, &[&before, &limit], |row| row.get(0)).await
}

/// Deletes up to `limit` steps of a room that was closed before `before`, and the room once none
/// are left. Returns the number of steps.
pub(crate) async fn forget(
    tx: &mut Tx<'_>,
    event: EventId,
    before: Timestamp,
    limit: i64,
) -> Result<u64, Error> {
    let steps = tx.execute(&FORGET_STEPS, &[&event, &limit, &before]).await?;
    tx.execute(&FORGET_ROOM, &[&event, &before]).await?;
    Ok(steps)
}

/// When the generation was last used, according to the database. `None` if it is not current.
pub(crate) async fn last_used(
    tx: &mut Tx<'_>,
    event: EventId,
    generation: u64,
) -> Result<Option<Timestamp>, Error> {
    tx.optional(&LAST_USED, &[&event, &counted(generation)], |row| row.get(0)).await
}

/// How far the journal of a room is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    generation: u64,
    is_closed: bool,
    seq: u64,
}

impl Newest {
    /// Whether the journal has steps that a store at `seq` of `generation` lacks. A store in use
    /// has at least as many.
    pub(crate) fn is_ahead_of(&self, generation: u64, seq: u64) -> bool {
        self.generation > generation || self.generation == generation && (self.is_closed || self.seq > seq)
    }
}

/// How far the journal of a room is written, if there is one.
pub(crate) async fn newest(tx: &mut Tx<'_>, event: EventId) -> Result<Option<Newest>, Error> {
    let newest = |row: &Row<'_>| {
        Ok(Newest { generation: number(row, 0)?, is_closed: row.get(1)?, seq: number(row, 2)? })
    };
    tx.optional(&NEWEST, &[&event], newest).await
}

/// Most steps of one user that are read: more than a user can cause while a token is valid.
const MAX_TURNS: i64 = 2_000;

/// The user's turns, if any. A slot that was taken back is none; leaving the line is one.
pub(crate) async fn turns(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
) -> Result<Option<UserHistory>, Error> {
    let step = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let mut steps: Vec<(Kind, Option<OrderKey>, Timestamp, Option<Why>)> =
        tx.all(&TURNS, &[&event, &user, &MAX_TURNS], step).await?;
    steps.reverse();
    let (mut turns, mut before_slot, mut is_in) = (None, None, false);
    for (kind, order, at, why) in steps {
        match (kind, order) {
            (Kind::Admitted, Some(order)) => {
                before_slot = turns;
                turns = Some(UserHistory::and(turns, UsedPosition { order, at }));
            }
            (Kind::Returned, Some(order)) if turns.is_some_and(|turns| turns.last.order == order) => {
                turns = before_slot;
            }
            // The journal does not repeat the position in this step.
            (Kind::Gone, _) if !is_in && why == Some(Why::Left) => {
                turns = Some(UserHistory::and_left(turns, at));
            }
            _ => {}
        }
        is_in = kind == Kind::Admitted;
    }
    Ok(turns)
}

/// State of a room that survives a loss of its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoomRecord {
    pub(crate) generation: u64,
    /// The threshold of its first generation.
    pub(crate) began_with: u32,
    pub(crate) threshold: u32,
    pub(crate) paused: bool,
    pub(crate) epoch: u64,
    /// Whether an earlier generation had another threshold for a while, so that this one must state
    /// its own.
    restates: bool,
    /// Whether the last generation ended by a loss.
    pub(crate) lost: bool,
    /// The step that last cleared the line.
    cleared: (i64, i64),
    /// First entries of the new generation's journal.
    pub(crate) entries: Vec<Entry>,
}

impl RoomRecord {
    /// The slots given since `since` that must be restored, if the last generation was lost.
    pub(crate) fn slot_copy(&self, since: Timestamp) -> Option<SlotCopy> {
        let seq = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
        self.lost.then_some(SlotCopy { generation: self.generation, seq, since, last: self.cleared })
    }

    /// Steps that restore the operators' decisions in the new generation.
    fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let differs = self.restates || self.threshold != self.began_with;
        let threshold = differs.then_some(Step::Threshold { threshold: self.threshold });
        let paused = self.paused.then_some(Step::Paused);
        let cleared = (self.epoch > 1).then_some(Step::Cleared { epoch: self.epoch });
        [cleared, threshold, paused].into_iter().flatten()
    }
}

/// Most operator decisions that are read: more than any sale has.
const MAX_DECISIONS: i64 = 10_000;

/// Begins a room's first or next generation. Operators' decisions are in its journal when this
/// commits; slots are restored afterwards ([`RoomRecord::slot_copy`]).
pub(crate) async fn begin(
    tx: &mut Tx<'_>,
    event: EventId,
    threshold: u32,
    now: Timestamp,
) -> Result<RoomRecord, Error> {
    let first = RoomRecord {
        generation: 1,
        began_with: threshold,
        threshold,
        paused: false,
        epoch: 1,
        restates: false,
        lost: false,
        cleared: (0, 0),
        entries: Vec::new(),
    };
    if tx.execute(&OPEN, &[&event, &threshold, &now]).await? == 1 {
        return Ok(first);
    }
    let was_closed: bool = tx.one(&WAS_CLOSED, &[&event], |row| row.get(0)).await?;
    let began = |row: &Row<'_>| Ok((number(row, 0)?, row.get(1)?, row.get(2)?));
    let (generation, began_with, configured): (u64, u32, Option<u32>) =
        tx.one(&REOPEN, &[&event, &now], began).await?;
    let decision = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let decided: Vec<(Kind, Option<i64>)> = tx.all(&DECIDED, &[&event, &MAX_DECISIONS], decision).await?;
    let last = |kind: Kind| decided.iter().find(|(found, _)| *found == kind);
    let amount = |kind: Kind| last(kind).and_then(|(_, number)| *number);
    let paused = decided.iter().find(|(kind, _)| matches!(kind, Kind::Paused | Kind::Resumed));
    let stated = amount(Kind::Threshold).and_then(|number| u32::try_from(number).ok());
    let mut kept = RoomRecord {
        generation,
        began_with,
        // Follows the setting unless an operator has decided.
        threshold: configured.map_or(stated.unwrap_or(began_with), |_| threshold),
        restates: stated.is_some_and(|stated| stated != began_with),
        paused: paused.is_some_and(|(kind, _)| *kind == Kind::Paused),
        epoch: amount(Kind::Cleared).and_then(|number| u64::try_from(number).ok()).unwrap_or(1),
        lost: !was_closed,
        cleared: cleared(tx, event).await?,
        ..first
    };
    for (seq, step) in (1..).zip(kept.steps()) {
        append(tx, event, &Entry { generation, seq, at: now, step }).await?;
        kept.entries.push(Entry { generation, seq, at: now, step });
    }
    if configured.is_some() {
        setting::follow(tx, event, threshold).await?;
    }
    Ok(kept)
}

pub(super) fn counted(number: u64) -> i64 {
    i64::try_from(number).expect("counters fit into i64")
}
