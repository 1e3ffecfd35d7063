//! Statements and rows of holds; nothing else.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Serialize, de::DeserializeOwned};
use urr_contracts::tickets::{Reservation, ReservationStatus};
use urr_db::{EngineKind, Error, Row, Tx, statements};
use urr_kernel::{EventId, ReservationId, Scalar, SeatId, Timestamp, UserId, Value, WrongValue};
use uuid::Uuid;

use crate::gate::Owner;

statements! {
    /// Frees one seat if it is still under the claim that the fence names.
    FREE = "
        update seats set state = 'available', reservation_id = null, expires_at = null
         where event_id = $1 and seat_id = $2 and fence = $3 and reservation_id = $4 and state = 'held'";

    /// The same for many seats, in the order of locks. The list is a JSON array.
    FREE_ALL = postgres "
        with mine as (
            select seats.event_id, seats.seat_id
              from seats join jsonb_to_recordset($1::jsonb) given (event uuid, seat uuid, fence bigint, reservation uuid)
                on seats.event_id = given.event and seats.seat_id = given.seat
             where seats.fence = given.fence and seats.reservation_id = given.reservation and seats.state = 'held'
             order by seats.event_id, seats.seat_id for update of seats)
        update seats set state = 'available', reservation_id = null, expires_at = null
          from mine where seats.event_id = mine.event_id and seats.seat_id = mine.seat_id";

    /// Takes seats off a buyer's count.
    COUNT_OUT = "update buyers set live_seats = live_seats - $3 where event_id = $1 and user_id = $2";

    /// The same for many buyers, who are locked already and come once each. The list is a JSON array.
    COUNT_OUT_ALL = postgres "
        update buyers set live_seats = live_seats - (given->>2)::bigint
          from jsonb_array_elements($1::jsonb) given
         where event_id = (given->>0)::uuid and user_id = (given->>1)::uuid";

    /// How many seats a buyer has. On PostgreSQL it also takes the buyer's lock, the first one in the order of locks;
    /// SQLite has one writer and no row locks.
    LOCK_BUYER =
        sqlite "select live_seats from buyers where event_id = $1 and user_id = $2"
        postgres "select live_seats from buyers where event_id = $1 and user_id = $2 for update";

    /// Locks many buyers, in the order of locks. The list is a JSON array.
    LOCK_BUYERS = postgres "
        select 1 from buyers join jsonb_array_elements($1::jsonb) given
            on event_id = (given->>0)::uuid and user_id = (given->>1)::uuid
         order by event_id, user_id for update of buyers";

    /// Leaves `pending`, unless somebody was faster.
    LEAVE_PENDING = sqlite "
        update reservations set status = $2, updated_at = $3 where id = $1 and status = 'pending'";

    /// The same for many, in the order of locks. The list is a JSON array.
    LEAVE_PENDING_ALL = postgres "
        with mine as (
            select id from reservations
             where id in (select given::uuid from jsonb_array_elements_text($1::jsonb) given) and status = 'pending'
             order by id for update)
        update reservations set status = $2, updated_at = $3 from mine where reservations.id = mine.id
        returning reservations.id";

    /// One reservation.
    GET = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where id = $1";

    /// What a buyer's key was used for.
    OF_KEY = sqlite "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where user_id = $1 and idempotency_key = $2";

    /// What many buyers' keys were used for, with the key. The list is a JSON array.
    OF_KEYS = postgres "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at,
               idempotency_key
          from reservations
         where (user_id, idempotency_key) in
               (select (asked->>0)::uuid, asked->>1 from jsonb_array_elements($1::jsonb) asked)";

    /// A buyer's reservations before a given one, newest first.
    OF_USER = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where user_id = $1 and id < $2 order by id desc limit $3";

    /// A buyer's holds that have run out but were not swept yet.
    LAPSED_OF_BUYER = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations
         where user_id = $1 and event_id = $2 and status = 'pending' and expires_at <= $3
         order by id limit $4";

    /// Holds that have run out after a given one, oldest first.
    LAPSED = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations
         where status = 'pending' and expires_at <= $1 and (expires_at, id) > ($2, $3)
         order by expires_at, id limit $4";
}

/// A reservation with what only this crate needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) reservation: Reservation,
    pub(crate) gate_owner: Owner,
}

fn stored(row: &Row<'_>) -> Result<Stored, Error> {
    let Document(card) = row.get(4)?;
    let Status(status) = row.get(5)?;
    let Document(seats) = row.get(7)?;
    let reservation = Reservation {
        id: row.get(0)?,
        number: row.get(1)?,
        user: row.get(2)?,
        event: row.get(3)?,
        card,
        status,
        total: row.get(6)?,
        expires_at: row.get(9)?,
        created_at: row.get(10)?,
        seats,
    };
    Ok(Stored { reservation, gate_owner: Owner::from_uuid(row.get(8)?) })
}

/// Frees a seat. `false`: the fence is stale, and nothing changed.
pub(crate) async fn free(
    tx: &mut Tx<'_>,
    event: EventId,
    seat: SeatId,
    fence: i64,
    of: ReservationId,
) -> Result<bool, Error> {
    Ok(tx.execute(&FREE, &[&event, &seat, &fence, &of]).await? == 1)
}

/// A seat as a reservation has it. They are ordered as they are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Held {
    pub(crate) event: EventId,
    pub(crate) seat: SeatId,
    pub(crate) fence: i64,
    pub(crate) reservation: ReservationId,
}

/// Frees seats, which come in the order of locks. Of a stale fence nothing changes: the seat was claimed again after the hold ran out, and
/// stays with its new holder.
pub(crate) async fn free_all(tx: &mut Tx<'_>, seats: &[Held]) -> Result<(), Error> {
    debug_assert!(seats.is_sorted(), "seats in one order cannot wait for each other");
    match tx.engine_kind() {
        EngineKind::Postgres => tx.execute(&FREE_ALL, &[&Json::of(seats)]).await.map(|_| ()),
        EngineKind::Sqlite => {
            let mut rows: Vec<[&dyn Scalar; 4]> = Vec::with_capacity(seats.len());
            for Held { event, seat, fence, reservation } in seats {
                rows.push([event, seat, fence, reservation]);
            }
            tx.execute_each(&FREE, &rows).await.map(|_| ())
        }
    }
}

/// Takes off a buyer's count. A count below zero is refused by the table and is a bug.
pub(crate) async fn count_out(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
    seats: u32,
) -> Result<(), Error> {
    tx.execute(&COUNT_OUT, &[&event, &user, &seats]).await?;
    Ok(())
}

/// Takes the buyer's lock and tells how many seats they have.
pub(crate) async fn lock_buyer(tx: &mut Tx<'_>, event: EventId, user: UserId) -> Result<u32, Error> {
    let held: Option<u32> = tx.optional(&LOCK_BUYER, &[&event, &user], |row| row.get(0)).await?;
    Ok(held.unwrap_or(0))
}

/// The same for many buyers, who are locked and come once each.
pub(crate) async fn count_out_all(
    tx: &mut Tx<'_>,
    buyers: &BTreeMap<(EventId, UserId), u32>,
) -> Result<(), Error> {
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let given: Vec<_> = buyers.iter().map(|((event, user), seats)| (event, user, seats)).collect();
            tx.execute(&COUNT_OUT_ALL, &[&Json::of(&given)]).await.map(|_| ())
        }
        EngineKind::Sqlite => {
            let mut rows: Vec<[&dyn Scalar; 3]> = Vec::with_capacity(buyers.len());
            for ((event, user), seats) in buyers {
                rows.push([event, user, seats]);
            }
            tx.execute_each(&COUNT_OUT, &rows).await.map(|_| ())
        }
    }
}

/// Takes the locks of buyers, where there are any to take.
pub(crate) async fn lock_buyers(tx: &mut Tx<'_>, buyers: &BTreeSet<(EventId, UserId)>) -> Result<(), Error> {
    if tx.engine_kind() == EngineKind::Postgres {
        tx.all(&LOCK_BUYERS, &[&Json::of(buyers)], |_| Ok(())).await?;
    }
    Ok(())
}

/// Moves reservations out of `pending`. Those that are not among the answer were not pending any more.
pub(crate) async fn leave_pending(
    tx: &mut Tx<'_>,
    ids: &[ReservationId],
    to: ReservationStatus,
    now: Timestamp,
) -> Result<HashSet<ReservationId>, Error> {
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let params: &[&dyn Scalar] = &[&Json::of(ids), &Status(to), &now];
            Ok(tx.all(&LEAVE_PENDING_ALL, params, |row| row.get(0)).await?.into_iter().collect())
        }
        EngineKind::Sqlite => {
            let to = Status(to);
            let mut rows: Vec<[&dyn Scalar; 3]> = Vec::with_capacity(ids.len());
            for id in ids {
                rows.push([id, &to, &now]);
            }
            let changed = tx.execute_each(&LEAVE_PENDING, &rows).await?;
            Ok(ids.iter().zip(changed).filter(|(_, changed)| *changed == 1).map(|(id, _)| *id).collect())
        }
    }
}

/// One reservation.
pub(crate) async fn get(tx: &mut Tx<'_>, id: ReservationId) -> Result<Option<Stored>, Error> {
    tx.optional(&GET, &[&id], stored).await
}

/// What buyers' keys were used for; of a key that was not used there is nothing.
pub(crate) async fn of_keys(
    tx: &mut Tx<'_>,
    asked: &[(UserId, String)],
) -> Result<Vec<((UserId, String), Stored)>, Error> {
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let used = |row: &Row<'_>| {
                let found = stored(row)?;
                Ok(((found.reservation.user, row.get(11)?), found))
            };
            tx.all(&OF_KEYS, &[&Json::of(asked)], used).await
        }
        EngineKind::Sqlite => {
            let mut known = Vec::new();
            for (user, key) in asked {
                let found = tx.optional(&OF_KEY, &[user, key], stored).await?;
                known.extend(found.map(|found| ((*user, key.clone()), found)));
            }
            Ok(known)
        }
    }
}

/// A buyer's reservations older than `before`, newest first.
pub(crate) async fn of_user(
    tx: &mut Tx<'_>,
    user: UserId,
    before: ReservationId,
    limit: u32,
) -> Result<Vec<Stored>, Error> {
    tx.all(&OF_USER, &[&user, &before, &limit], stored).await
}

/// A hold that has run out, or why it cannot be read.
pub(crate) struct Lapsed {
    /// Where it stands among the others.
    pub(crate) at: (Timestamp, ReservationId),
    pub(crate) hold: Result<Stored, Error>,
}

/// One row that cannot be read is no reason to leave the others.
fn lapsed_hold(row: &Row<'_>) -> Result<Lapsed, Error> {
    Ok(Lapsed { at: (row.get(9)?, row.get(0)?), hold: stored(row) })
}

/// A buyer's holds that have run out.
pub(crate) async fn lapsed_of_buyer(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Lapsed>, Error> {
    tx.all(&LAPSED_OF_BUYER, &[&user, &event, &now, &limit], lapsed_hold).await
}

/// Holds that have run out, oldest first; `after` is the last one that was seen.
pub(crate) async fn lapsed(
    tx: &mut Tx<'_>,
    now: Timestamp,
    after: Option<(Timestamp, ReservationId)>,
    limit: u32,
) -> Result<Vec<Lapsed>, Error> {
    let (expired_at, id) =
        after.unwrap_or((Timestamp::from_micros(0), ReservationId::from_uuid(Uuid::nil())));
    tx.all(&LAPSED, &[&now, &expired_at, &id, &limit], lapsed_hold).await
}

/// The status column.
#[derive(Clone, Copy)]
struct Status(ReservationStatus);

impl Status {
    const WORDS: [(ReservationStatus, &'static str); 7] = [
        (ReservationStatus::Pending, "pending"),
        (ReservationStatus::Paying, "paying"),
        (ReservationStatus::Confirmed, "confirmed"),
        (ReservationStatus::Expired, "expired"),
        (ReservationStatus::Cancelled, "cancelled"),
        (ReservationStatus::Refunding, "refunding"),
        (ReservationStatus::Refunded, "refunded"),
    ];
}

impl Scalar for Status {
    fn to_value(&self) -> Value<'_> {
        let word = Self::WORDS.iter().find(|(status, _)| *status == self.0);
        Value::Text(word.expect("every status has a word").1.into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        let text = String::from_value(value)?;
        let known = Self::WORDS.iter().find(|(_, word)| *word == text);
        known.map(|(status, _)| Self(*status)).ok_or(WrongValue { wanted: "a reservation's status" })
    }
}

/// What goes into a JSON column.
#[derive(Clone)]
pub(crate) struct Json(String);

impl Json {
    pub(crate) fn of<T: Serialize + ?Sized>(document: &T) -> Self {
        let json = serde_json::to_string(document);
        Self(json.expect("what a reservation keeps is plain data and always serialises"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scalar for Json {
    fn to_value(&self) -> Value<'_> {
        Value::Json((&*self.0).into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        String::from_value(value).map(Self)
    }
}

/// What a JSON column holds.
struct Document<T>(T);

impl<T: Serialize + DeserializeOwned + Send + Sync> Scalar for Document<T> {
    fn to_value(&self) -> Value<'_> {
        Value::Json(Json::of(&self.0).0.into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        let read = serde_json::from_str(&String::from_value(value)?);
        read.map(Self).map_err(|_| WrongValue { wanted: "the document that a reservation keeps" })
    }
}
