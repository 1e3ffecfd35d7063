//! SQL for batches of claims, and the mapping of their rows. One statement per engine, because this
//! is the hot path: PostgreSQL gets one statement for many rows to save round trips; SQLite runs in
//! this process and gets one per row.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::json;
use urr_contracts::tickets::Reservation;
use urr_db::{EngineKind, Error, JsonText, Row, Tx, statements};
use urr_kernel::{EventId, Krw, ReservationId, Scalar, SeatId, Timestamp, UserId};

use crate::{gate::Owner, holds::store::lock_buyer};

statements! {
    /// Whether an unexpired hold or a sale covers a seat, and its fence. A hold that is being paid
    /// for has no expiry.
    LOOK = sqlite "
        select state = 'sold' or (state = 'held' and (expires_at is null or expires_at > $3)), fence from seats
         where event_id = $1 and seat_id = $2";

    /// Which of many seats are covered. The list is a JSON array.
    TAKEN_ALL = postgres "
        select seat_id from seats
         where event_id = $1 and seat_id in (select wanted::uuid from jsonb_array_elements_text($2::jsonb) wanted)
           and (state = 'sold' or (state = 'held' and (expires_at is null or expires_at > $3)))";

    /// Claims one seat unless an unexpired hold or a sale covers it.
    CLAIM_ONE = sqlite "
        insert into seats (event_id, seat_id, state, reservation_id, fence, expires_at)
        values ($1, $2, 'held', $3, 1, $4)
        on conflict (event_id, seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
         where seats.state = 'available' or (seats.state = 'held' and seats.expires_at <= $5)";

    /// The same for many seats, in id order and in one round trip. The list is a JSON array.
    CLAIM_ALL = postgres "
        insert into seats (event_id, seat_id, state, reservation_id, fence, expires_at)
        select $1, wanted.seat, 'held', wanted.reservation, 1, wanted.expires_at
          from jsonb_to_recordset($2::jsonb) wanted (seat uuid, reservation uuid, expires_at timestamptz) order by wanted.seat
        on conflict (event_id, seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
         where seats.state = 'available' or (seats.state = 'held' and seats.expires_at <= $3)
        returning seat_id, fence";

    /// Adds seats to a buyer's count unless that would exceed the limit.
    COUNT_IN = sqlite "
        insert into buyers (event_id, user_id, live_seats) values ($1, $2, $3)
        on conflict (event_id, user_id) do update
           set live_seats = buyers.live_seats + excluded.live_seats
         where buyers.live_seats + excluded.live_seats <= $4";

    /// The same for many buyers, in id order. Locks all of them, including those who would exceed
    /// the limit.
    COUNT_IN_ALL = postgres "
        insert into buyers (event_id, user_id, live_seats)
        select $1, (buyer->>0)::uuid, (buyer->>1)::bigint from jsonb_array_elements($2::jsonb) buyer order by (buyer->>0)::uuid
        on conflict (event_id, user_id) do update
           set live_seats = buyers.live_seats + excluded.live_seats
         where buyers.live_seats + excluded.live_seats <= $3
        returning user_id";

    /// Seat counts of buyers whose rows are already locked. The list is a JSON array.
    HELD_BY_ALL = postgres "
        select user_id, live_seats from buyers
         where event_id = $1 and user_id in (select buyer::uuid from jsonb_array_elements_text($2::jsonb) buyer)";

    /// Inserts a reservation unless the buyer has already used the key.
    INSERT = sqlite "
        insert into reservations (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                  expires_at, created_at, updated_at, idempotency_key)
        values ($1, $2, $3, $4, $5, 'pending', $6, $7, $8, $9, $10, $10, $11)
        on conflict (user_id, idempotency_key) do nothing";

    /// The same for many, ordered by buyer.
    INSERT_ALL = postgres "
        insert into reservations (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                  expires_at, created_at, updated_at, idempotency_key)
        select id, number, user_id, event_id, event_card::jsonb, 'pending', total_krw, seats, gate_owner,
               expires_at, created_at, created_at, idempotency_key
          from jsonb_to_recordset($1::jsonb) new
               (id uuid, number text, user_id uuid, event_id uuid, event_card text, total_krw bigint, seats jsonb, gate_owner uuid,
                expires_at timestamptz, created_at timestamptz, idempotency_key text)
         order by user_id
        on conflict (user_id, idempotency_key) do nothing
        returning id";
}

/// A requested seat.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Wanted {
    pub(crate) seat: SeatId,
    pub(crate) reservation: ReservationId,
    pub(crate) expires_at: Timestamp,
}

/// State of seats, read before they are claimed.
#[derive(Debug, Default)]
pub(crate) struct SeatStates {
    /// Seats that are taken. On PostgreSQL others may be taken by the time they are claimed.
    pub(crate) taken: HashSet<SeatId>,
    /// Fences of seats that were claimed before. SQLite only: no other transaction can write before
    /// this one ends.
    fences: HashMap<SeatId, i64>,
}

/// Reads the state of seats.
pub(crate) async fn look(
    tx: &mut Tx<'_>,
    event: EventId,
    seats: &[SeatId],
    now: Timestamp,
) -> Result<SeatStates, Error> {
    let mut seen = SeatStates::default();
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let taken: Vec<SeatId> =
                tx.all(&TAKEN_ALL, &[&event, &JsonText::of(seats), &now], |row| row.get(0)).await?;
            seen.taken.extend(taken);
        }
        EngineKind::Sqlite => {
            for seat in seats {
                let look = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
                let Some((is_taken, fence)) = tx.optional(&LOOK, &[&event, seat, &now], look).await? else {
                    continue;
                };
                if is_taken {
                    seen.taken.insert(*seat);
                } else {
                    seen.fences.insert(*seat, fence);
                }
            }
        }
    }
    Ok(seen)
}

/// Returns the seat counts of buyers who would exceed the limit.
pub(crate) async fn held_by(
    tx: &mut Tx<'_>,
    event: EventId,
    buyers: &[UserId],
) -> Result<HashMap<UserId, u32>, Error> {
    if tx.engine_kind() == EngineKind::Postgres && !buyers.is_empty() {
        let map = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        return Ok(tx.all(&HELD_BY_ALL, &[&event, &JsonText::of(buyers)], map).await?.into_iter().collect());
    }
    let mut held = HashMap::new();
    for user in buyers {
        held.insert(*user, lock_buyer(tx, event, *user).await?);
    }
    Ok(held)
}

/// Claims seats, which must be sorted by id, after a [`look`] at them in the same transaction.
/// Returns the fences of those that were free; others hold the rest.
pub(crate) async fn claim(
    tx: &mut Tx<'_>,
    event: EventId,
    wanted: &[Wanted],
    seen: &SeatStates,
    now: Timestamp,
) -> Result<Vec<(SeatId, i64)>, Error> {
    debug_assert!(
        wanted.is_sorted_by_key(|wanted| wanted.seat),
        "seats must be locked in id order, otherwise claims can deadlock"
    );
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let params: &[&dyn Scalar] = &[&event, &JsonText::of(wanted), &now];
            tx.all(&CLAIM_ALL, params, |row| Ok((row.get(0)?, row.get(1)?))).await
        }
        EngineKind::Sqlite => {
            let mut rows: Vec<[&dyn Scalar; 5]> = Vec::with_capacity(wanted.len());
            for Wanted { seat, reservation, expires_at } in wanted {
                rows.push([&event, seat, reservation, expires_at, &now]);
            }
            let changed = tx.execute_each(&CLAIM_ONE, &rows).await?;
            let claimed = wanted.iter().zip(changed).filter(|(_, changed)| *changed == 1);
            // The same value that the statement computes.
            let fence = |seat| seen.fences.get(&seat).map_or(1, |before| before + 1);
            Ok(claimed.map(|(wanted, _)| (wanted.seat, fence(wanted.seat))).collect())
        }
    }
}

/// Adds to the counts of buyers, who must be sorted by id. Returns the buyers who stay within the
/// limit.
pub(crate) async fn count_in(
    tx: &mut Tx<'_>,
    event: EventId,
    buyers: &[(UserId, u32)],
    max: u32,
) -> Result<HashSet<UserId>, Error> {
    debug_assert!(buyers.is_sorted(), "buyers in one order cannot wait for each other");
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let counted =
                tx.all(&COUNT_IN_ALL, &[&event, &JsonText::of(buyers), &max], |row| row.get(0)).await?;
            Ok(counted.into_iter().collect())
        }
        EngineKind::Sqlite => {
            let mut rows: Vec<[&dyn Scalar; 4]> = Vec::with_capacity(buyers.len());
            for (user, seats) in buyers {
                rows.push([&event, user, seats, &max]);
            }
            let changed = tx.execute_each(&COUNT_IN, &rows).await?;
            let counted = buyers.iter().zip(changed).filter(|(_, changed)| *changed == 1);
            Ok(counted.map(|((user, _), _)| *user).collect())
        }
    }
}

/// A row to insert: the reservation and the columns that only this crate uses.
pub(crate) struct NewReservationRow<'c> {
    pub(crate) new: &'c Reservation,
    pub(crate) card: &'c JsonText,
    pub(crate) gate_owner: Owner,
    pub(crate) key: Option<&'c str>,
}

/// Inserts reservations. Those not in the result were not inserted: their buyers have already used
/// the key.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    rows: &[NewReservationRow<'_>],
) -> Result<HashSet<ReservationId>, Error> {
    debug_assert!(rows.iter().all(|NewReservationRow { new, .. }| {
        Krw::sum(new.seats.iter().map(|seat| seat.price)).is_ok_and(|sum| sum == new.total)
    }));
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let rows: Vec<_> = rows.iter().map(document).collect();
            let kept = tx.all(&INSERT_ALL, &[&JsonText::of(&rows)], |row| row.get(0)).await?;
            Ok(kept.into_iter().collect())
        }
        EngineKind::Sqlite => {
            let own = |row: &NewReservationRow<'_>| (JsonText::of(&row.new.seats), row.gate_owner.as_uuid());
            let own: Vec<_> = rows.iter().map(own).collect();
            let mut params: Vec<[&dyn Scalar; 11]> = Vec::with_capacity(rows.len());
            for (NewReservationRow { new, card, key, .. }, (seats, owner)) in rows.iter().zip(&own) {
                let Reservation { id, number, user, event, total, expires_at, created_at, .. } = *new;
                params
                    .push([id, number, user, event, *card, total, seats, owner, expires_at, created_at, key]);
            }
            let changed = tx.execute_each(&INSERT, &params).await?;
            let kept = rows.iter().zip(changed).filter(|(_, changed)| *changed == 1);
            Ok(kept.map(|(row, _)| row.new.id).collect())
        }
    }
}

/// A row as JSON, for the statement that inserts many.
fn document(NewReservationRow { new, card, gate_owner, key }: &NewReservationRow<'_>) -> serde_json::Value {
    json!({
        "id": new.id, "number": new.number, "user_id": new.user, "event_id": new.event, "event_card": card.as_str(),
        "total_krw": new.total, "seats": new.seats, "gate_owner": gate_owner.as_uuid(), "expires_at": new.expires_at,
        "created_at": new.created_at, "idempotency_key": key,
    })
}
