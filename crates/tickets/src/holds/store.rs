//! SQL for holds and reservations, and the mapping of their rows. Holds end in batches, in the hot
//! path: PostgreSQL gets one statement for many rows, SQLite one per row.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;
use urr_contracts::tickets::{Reservation, ReservationStatus};
use urr_db::{EngineKind, EnumText, Error, Json, JsonText, Row, Tx, statements};
use urr_kernel::{EventId, ReservationId, Scalar, SeatId, Timestamp, UserId};
use uuid::Uuid;

use crate::gate::Owner;

statements! {
    /// Frees a seat if its fence is still the given one.
    FREE = "
        update seats set state = 'available', reservation_id = null, expires_at = null
         where event_id = $1 and seat_id = $2 and fence = $3 and reservation_id = $4 and state = 'held'";

    /// The same for many seats, in lock order. The list is a JSON array.
    FREE_ALL = postgres "
        with mine as (
            select seats.event_id, seats.seat_id
              from seats join jsonb_to_recordset($1::jsonb) given (event uuid, seat uuid, fence bigint, reservation uuid)
                on seats.event_id = given.event and seats.seat_id = given.seat
             where seats.fence = given.fence and seats.reservation_id = given.reservation and seats.state = 'held'
             order by seats.event_id, seats.seat_id for update of seats)
        update seats set state = 'available', reservation_id = null, expires_at = null
          from mine where seats.event_id = mine.event_id and seats.seat_id = mine.seat_id";

    /// Subtracts seats from a buyer's count.
    COUNT_OUT = "update buyers set live_seats = live_seats - $3 where event_id = $1 and user_id = $2";

    /// The same for many buyers, who must be locked and unique. The list is a JSON array.
    COUNT_OUT_ALL = postgres "
        update buyers set live_seats = live_seats - (given->>2)::bigint
          from jsonb_array_elements($1::jsonb) given
         where event_id = (given->>0)::uuid and user_id = (given->>1)::uuid";

    /// Seat count of a buyer. On PostgreSQL this also locks the buyer, which is first in the lock
    /// order; SQLite has a single writer and no row locks.
    LOCK_BUYER = locking "select live_seats from buyers where event_id = $1 and user_id = $2";

    /// Locks many buyers, in lock order. The list is a JSON array.
    LOCK_BUYERS = postgres "
        select 1 from buyers join jsonb_array_elements($1::jsonb) given
            on event_id = (given->>0)::uuid and user_id = (given->>1)::uuid
         order by event_id, user_id for update of buyers";

    /// Changes the status from `pending`, unless another transaction already did.
    LEAVE_PENDING = sqlite "
        update reservations set status = $2, updated_at = $3 where id = $1 and status = 'pending'";

    /// The same for many, in lock order. The list is a JSON array.
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

    /// The reservation made with a buyer's idempotency key.
    OF_KEY = sqlite "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where user_id = $1 and idempotency_key = $2";

    /// Reservations made with many buyers' keys, and the keys. The list is a JSON array.
    OF_KEYS = postgres "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at,
               idempotency_key
          from reservations
         where (user_id, idempotency_key) in
               (select (asked->>0)::uuid, asked->>1 from jsonb_array_elements($1::jsonb) asked)";

    /// Reservations of a buyer before a given one, newest first.
    OF_USER = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where user_id = $1 and id < $2 order by id desc limit $3";

    /// Overdue holds of a buyer that are still pending.
    LAPSED_OF_BUYER = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations
         where user_id = $1 and event_id = $2 and status = 'pending' and expires_at <= $3
         order by id limit $4";

    /// Overdue holds after a given one, oldest first.
    LAPSED = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations
         where status = 'pending' and expires_at <= $1 and (expires_at, id) > ($2, $3)
         order by expires_at, id limit $4";
}

/// A reservation with the columns that only this crate uses.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) reservation: Reservation,
    pub(crate) gate_owner: Owner,
}

fn stored(row: &Row<'_>) -> Result<Stored, Error> {
    let Json(card) = row.get(4)?;
    let EnumText(status) = row.get(5)?;
    let Json(seats) = row.get(7)?;
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

/// Frees a seat. Returns `false`, without a change, if the fence is stale.
pub(crate) async fn free(
    tx: &mut Tx<'_>,
    event: EventId,
    seat: SeatId,
    fence: i64,
    of: ReservationId,
) -> Result<bool, Error> {
    Ok(tx.execute(&FREE, &[&event, &seat, &fence, &of]).await? == 1)
}

/// A seat of a reservation. Sorts in lock order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Held {
    pub(crate) event: EventId,
    pub(crate) seat: SeatId,
    pub(crate) fence: i64,
    pub(crate) reservation: ReservationId,
}

/// Frees seats, which must be in lock order. A stale fence changes nothing: the seat was claimed
/// again after the hold expired, and stays with its new holder.
pub(crate) async fn free_all(tx: &mut Tx<'_>, seats: &[Held]) -> Result<(), Error> {
    debug_assert!(seats.is_sorted(), "seats must be in lock order, otherwise transactions can deadlock");
    match tx.engine_kind() {
        EngineKind::Postgres => tx.execute(&FREE_ALL, &[&JsonText::of(seats)]).await.map(|_| ()),
        EngineKind::Sqlite => {
            let mut rows: Vec<[&dyn Scalar; 4]> = Vec::with_capacity(seats.len());
            for Held { event, seat, fence, reservation } in seats {
                rows.push([event, seat, fence, reservation]);
            }
            tx.execute_each(&FREE, &rows).await.map(|_| ())
        }
    }
}

/// Subtracts from a buyer's count. A count below zero is a bug, and a table constraint rejects it.
pub(crate) async fn count_out(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
    seats: u32,
) -> Result<(), Error> {
    tx.execute(&COUNT_OUT, &[&event, &user, &seats]).await?;
    Ok(())
}

/// Locks the buyer and returns their seat count.
pub(crate) async fn lock_buyer(tx: &mut Tx<'_>, event: EventId, user: UserId) -> Result<u32, Error> {
    let held: Option<u32> = tx.optional(&LOCK_BUYER, &[&event, &user], |row| row.get(0)).await?;
    Ok(held.unwrap_or(0))
}

/// The same for many buyers, who must be locked and unique.
pub(crate) async fn count_out_all(
    tx: &mut Tx<'_>,
    buyers: &BTreeMap<(EventId, UserId), u32>,
) -> Result<(), Error> {
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let given: Vec<_> = buyers.iter().map(|((event, user), seats)| (event, user, seats)).collect();
            tx.execute(&COUNT_OUT_ALL, &[&JsonText::of(&given)]).await.map(|_| ())
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

/// Locks buyers on PostgreSQL; does nothing on SQLite.
pub(crate) async fn lock_buyers(tx: &mut Tx<'_>, buyers: &BTreeSet<(EventId, UserId)>) -> Result<(), Error> {
    if tx.engine_kind() == EngineKind::Postgres {
        tx.all(&LOCK_BUYERS, &[&JsonText::of(buyers)], |_| Ok(())).await?;
    }
    Ok(())
}

/// Moves reservations out of `pending`. Those not in the result were no longer pending.
pub(crate) async fn leave_pending(
    tx: &mut Tx<'_>,
    ids: &[ReservationId],
    to: ReservationStatus,
    now: Timestamp,
) -> Result<HashSet<ReservationId>, Error> {
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let params: &[&dyn Scalar] = &[&JsonText::of(ids), &EnumText(to), &now];
            Ok(tx.all(&LEAVE_PENDING_ALL, params, |row| row.get(0)).await?.into_iter().collect())
        }
        EngineKind::Sqlite => {
            let to = EnumText(to);
            let mut rows: Vec<[&dyn Scalar; 3]> = Vec::with_capacity(ids.len());
            for id in ids {
                rows.push([id, &to, &now]);
            }
            let changed = tx.execute_each(&LEAVE_PENDING, &rows).await?;
            Ok(ids.iter().zip(changed).filter(|(_, changed)| *changed == 1).map(|(id, _)| *id).collect())
        }
    }
}

/// Returns one reservation.
pub(crate) async fn get(tx: &mut Tx<'_>, id: ReservationId) -> Result<Option<Stored>, Error> {
    tx.optional(&GET, &[&id], stored).await
}

/// Returns the reservations made with the given keys. Unused keys are omitted.
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
            tx.all(&OF_KEYS, &[&JsonText::of(asked)], used).await
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

/// Returns the reservations of a buyer older than `before`, newest first.
pub(crate) async fn of_user(
    tx: &mut Tx<'_>,
    user: UserId,
    before: ReservationId,
    limit: u32,
) -> Result<Vec<Stored>, Error> {
    tx.all(&OF_USER, &[&user, &before, &limit], stored).await
}

/// An overdue hold, or the error from decoding its row.
pub(crate) struct Lapsed {
    /// Sort key.
    pub(crate) at: (Timestamp, ReservationId),
    pub(crate) hold: Result<Stored, Error>,
}

/// Decoding errors are returned per row, so that one damaged row does not block the others.
fn lapsed_hold(row: &Row<'_>) -> Result<Lapsed, Error> {
    Ok(Lapsed { at: (row.get(9)?, row.get(0)?), hold: stored(row) })
}

/// Returns the overdue holds of a buyer.
pub(crate) async fn lapsed_of_buyer(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Lapsed>, Error> {
    tx.all(&LAPSED_OF_BUYER, &[&user, &event, &now, &limit], lapsed_hold).await
}

/// Returns overdue holds, oldest first, starting after `after`.
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
