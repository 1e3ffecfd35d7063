//! Statements and rows; nothing else.

use urr_contracts::vwr::{Action, Order, Room};
use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Scalar, Timestamp, UserId};
use uuid::Uuid;

statements! {
    /// Rooms that are open or were closed recently.
    ROOMS = "
        select event_id, epoch, opened_at, active, paused, rate, fail_open, version, reserved, serving, moved_at,
               leader, term, leader_until
          from rooms where (active or decided_at > $1) and event_id > $2 order by event_id limit $3";

    /// One room, locked: a transaction that changes it reads it first.
    ROOM = locking "
        select event_id, epoch, opened_at, active, paused, rate, fail_open, version, reserved, serving, moved_at,
               leader, term, leader_until
          from rooms where event_id = $1";

    INSERT = "
        insert into rooms (event_id, epoch, opened_at, active, paused, rate, fail_open, version, decided_at, reserved,
                           serving, moved_at, leader, term, leader_until)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $3, $9, $10, $3, null, 0, $3)
        on conflict (event_id) do nothing";

    /// Stores a decision.
    DECIDE = "
        update rooms set epoch = $2, opened_at = $3, active = $4, paused = $5, rate = $6, fail_open = $7,
                         version = version + 1, decided_at = $8, reserved = $9, serving = $10, moved_at = $8
         where event_id = $1";

    /// Stores the progress of admissions.
    MOVE = "
        update rooms set serving = $2, moved_at = $3, leader = $4, term = $5, leader_until = $6, reserved = $7
         where event_id = $1";

    /// Reserves a block of positions.
    RESERVE = "update rooms set reserved = reserved + $3 where event_id = $1 and epoch = $2 returning reserved";

    /// Releases the unused positions of the latest block.
    GIVE_BACK = "
        update rooms set reserved = $3 where event_id = $1 and epoch = $2 and reserved = $4 and serving <= $3";

    /// Stores the serving counter of another store.
    SERVED = "update rooms set serving = $3 where event_id = $1 and epoch = $2 and serving < $3 and $3 <= reserved";

    /// Records a command.
    ACT = "insert into actions (id, event_id, at, actor_id, action, number) values ($1, $2, $3, $4, $5, $6)";

    /// The latest commands.
    ACTIONS = "select at, actor_id, action, number from actions where event_id = $1 order by at desc, id desc limit $2";
}

/// A room's row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomRow {
    /// Its tail is the last reserved position: all up to there may have been given.
    pub(crate) room: Room,
    pub(crate) version: u64,
    pub(crate) moved_at: Timestamp,
    pub(crate) lead: Lead,
}

/// The lease of the process that admits visitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    pub(crate) leader: Option<Uuid>,
    pub(crate) term: u64,
    pub(crate) until: Timestamp,
}

fn kept(row: &Row<'_>) -> Result<RoomRow, Error> {
    let room = Room {
        event: row.get(0)?,
        epoch: number(row, 1)?,
        opened_at: row.get(2)?,
        active: row.get(3)?,
        paused: row.get(4)?,
        rate: row.get(5)?,
        fail_open: row.get(6)?,
        tail: number(row, 8)?,
        serving: number(row, 9)?,
    };
    let lead = Lead { leader: row.get(11)?, term: number(row, 12)?, until: row.get(13)? };
    Ok(RoomRow { room, version: number(row, 7)?, moved_at: row.get(10)?, lead })
}

/// Up to `limit` rooms after the one of `event` that are open or were changed since.
pub(crate) async fn rooms(
    tx: &mut Tx<'_>,
    since: Timestamp,
    event: EventId,
    limit: i64,
) -> Result<Vec<RoomRow>, Error> {
    tx.all(&ROOMS, &[&since, &event, &limit], kept).await
}

/// One room, locked for an update.
pub(crate) async fn room(tx: &mut Tx<'_>, event: EventId) -> Result<Option<RoomRow>, Error> {
    tx.optional(&ROOM, &[&event], kept).await
}

/// Inserts a new room.
pub(crate) async fn insert(tx: &mut Tx<'_>, room: &Room) -> Result<(), Error> {
    let (epoch, reserved, serving) = (counted(room.epoch), counted(room.tail), counted(room.serving));
    let params: [&dyn Scalar; 10] = [
        &room.event,
        &epoch,
        &room.opened_at,
        &room.active,
        &room.paused,
        &room.rate,
        &room.fail_open,
        &1_i64,
        &reserved,
        &serving,
    ];
    tx.execute(&INSERT, &params).await?;
    Ok(())
}

/// Stores a decision.
pub(crate) async fn decide(tx: &mut Tx<'_>, room: &Room, now: Timestamp) -> Result<(), Error> {
    let (epoch, reserved, serving) = (counted(room.epoch), counted(room.tail), counted(room.serving));
    let params: [&dyn Scalar; 10] = [
        &room.event,
        &epoch,
        &room.opened_at,
        &room.active,
        &room.paused,
        &room.rate,
        &room.fail_open,
        &now,
        &reserved,
        &serving,
    ];
    tx.execute(&DECIDE, &params).await?;
    Ok(())
}

/// Stores the serving counter, the lease, and the last position that may have been given.
pub(crate) async fn advance(
    tx: &mut Tx<'_>,
    event: EventId,
    (serving, moved_at): (u64, Timestamp),
    reserved: u64,
    lead: Lead,
) -> Result<(), Error> {
    let (serving, reserved, term) = (counted(serving), counted(reserved), counted(lead.term));
    let params: [&dyn Scalar; 7] = [&event, &serving, &moved_at, &lead.leader, &term, &lead.until, &reserved];
    tx.execute(&MOVE, &params).await?;
    Ok(())
}

/// Reserves `count` positions of an opening. Returns the last; `None` if the room was reopened
/// meanwhile.
pub(crate) async fn reserve(
    tx: &mut Tx<'_>,
    event: EventId,
    epoch: u64,
    count: u64,
) -> Result<Option<u64>, Error> {
    tx.optional(&RESERVE, &[&event, &counted(epoch), &counted(count)], |row| number(row, 0)).await
}

/// Releases the positions of an opening after `given`, if none were reserved after `reserved`.
pub(crate) async fn give_back(
    tx: &mut Tx<'_>,
    event: EventId,
    epoch: u64,
    (given, reserved): (u64, u64),
) -> Result<(), Error> {
    tx.execute(&GIVE_BACK, &[&event, &counted(epoch), &counted(given), &counted(reserved)]).await?;
    Ok(())
}

/// Stores the serving counter.
pub(crate) async fn served(tx: &mut Tx<'_>, event: EventId, epoch: u64, serving: u64) -> Result<(), Error> {
    tx.execute(&SERVED, &[&event, &counted(epoch), &counted(serving)]).await?;
    Ok(())
}

/// Author and time of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandSource {
    /// Id of its record.
    pub(crate) id: Uuid,
    /// The account; `None` for the platform itself.
    pub(crate) actor: Option<UserId>,
    /// The time.
    pub(crate) at: Timestamp,
}

/// Records a command.
pub(crate) async fn act(
    tx: &mut Tx<'_>,
    event: EventId,
    order: Order,
    by: CommandSource,
) -> Result<(), Error> {
    let (action, number) = words(order);
    tx.execute(&ACT, &[&by.id, &event, &by.at, &by.actor, &action, &number]).await?;
    Ok(())
}

fn words(order: Order) -> (&'static str, Option<i64>) {
    match order {
        Order::Activate { rate, .. } => ("activate", rate.map(i64::from)),
        Order::Deactivate => ("deactivate", None),
        Order::Advance { batch } => ("advance", Some(batch.into())),
        Order::Rate { rate } => ("rate", Some(rate.into())),
        Order::Pause => ("pause", None),
        Order::Resume => ("resume", None),
    }
}

/// The latest commands for a room, newest first.
pub(crate) async fn actions(tx: &mut Tx<'_>, event: EventId, limit: i64) -> Result<Vec<Action>, Error> {
    let action = |row: &Row<'_>| {
        Ok(Action { at: row.get(0)?, actor: row.get(1)?, what: row.get(2)?, number: row.get(3)? })
    };
    tx.all(&ACTIONS, &[&event, &limit], action).await
}

fn counted(number: u64) -> i64 {
    i64::try_from(number).expect("counters fit into i64")
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, Error> {
    row.get::<i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}
