//! Statements and rows of holds; nothing else.

use std::collections::HashSet;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use urr_contracts::tickets::{Reservation, ReservationStatus};
use urr_db::{EngineKind, Error, Row, Tx, statements};
use urr_kernel::{EventId, Krw, ReservationId, Scalar, SeatId, Timestamp, UserId, Value, WrongValue};

use crate::gate::Owner;

statements! {
    /// Claims one seat unless a live hold or a sale covers it.
    CLAIM_ONE = sqlite "
        insert into seats (event_id, seat_id, state, reservation_id, fence, expires_at)
        values ($1, $2, 'held', $3, 1, $4)
        on conflict (event_id, seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
         where seats.state = 'available' or (seats.state = 'held' and seats.expires_at <= $5)";

    /// The fence of a claim just made.
    FENCE = sqlite "select fence from seats where event_id = $1 and seat_id = $2";

    /// The same for many seats, in id order and in one round trip to the server. The list is a JSON array.
    CLAIM_ALL = postgres "
        insert into seats (event_id, seat_id, state, reservation_id, fence, expires_at)
        select $1, wanted.seat, 'held', wanted.reservation, 1, wanted.expires_at
          from jsonb_to_recordset($2::jsonb) wanted (seat uuid, reservation uuid, expires_at timestamptz) order by wanted.seat
        on conflict (event_id, seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
         where seats.state = 'available' or (seats.state = 'held' and seats.expires_at <= $3)
        returning seat_id, fence";

    /// Frees one seat if it is still under the claim that the fence names.
    FREE = "
        update seats set state = 'available', reservation_id = null, expires_at = null
         where event_id = $1 and seat_id = $2 and fence = $3 and reservation_id = $4 and state = 'held'";

    /// Adds seats to a buyer's count unless that would pass the limit.
    COUNT_IN = sqlite "
        insert into buyers (event_id, user_id, live_seats) values ($1, $2, $3)
        on conflict (event_id, user_id) do update
           set live_seats = buyers.live_seats + excluded.live_seats
         where buyers.live_seats + excluded.live_seats <= $4";

    /// The same for many buyers, in id order. All are locked, also those who would pass the limit.
    COUNT_IN_ALL = postgres "
        insert into buyers (event_id, user_id, live_seats)
        select $1, (buyer->>0)::uuid, (buyer->>1)::bigint from jsonb_array_elements($2::jsonb) buyer order by (buyer->>0)::uuid
        on conflict (event_id, user_id) do update
           set live_seats = buyers.live_seats + excluded.live_seats
         where buyers.live_seats + excluded.live_seats <= $3
        returning user_id";

    /// Takes seats off a buyer's count.
    COUNT_OUT = "update buyers set live_seats = live_seats - $3 where event_id = $1 and user_id = $2";

    /// How many seats a buyer has. On PostgreSQL it also takes the buyer's lock, the first one in the order of locks;
    /// SQLite has one writer and no row locks.
    LOCK_BUYER =
        sqlite "select live_seats from buyers where event_id = $1 and user_id = $2"
        postgres "select live_seats from buyers where event_id = $1 and user_id = $2 for update";

    /// Keeps what was claimed, unless the buyer's key is known.
    INSERT = sqlite "
        insert into reservations (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                  expires_at, created_at, updated_at, idempotency_key)
        values ($1, $2, $3, $4, $5, 'pending', $6, $7, $8, $9, $10, $10, $11)
        on conflict (user_id, idempotency_key) do nothing";

    /// The same for many, in the order of their buyers.
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

    /// Leaves `pending`, unless somebody was faster.
    LEAVE_PENDING = "update reservations set status = $2, updated_at = $3 where id = $1 and status = 'pending'";

    /// One reservation.
    GET = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where id = $1";

    /// What a buyer's key was used for.
    OF_KEY = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where user_id = $1 and idempotency_key = $2";

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

    /// Holds that have run out, oldest first.
    LAPSED = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where status = 'pending' and expires_at <= $1 order by expires_at limit $2";
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

/// A seat that somebody wants.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Wanted {
    pub(crate) seat: SeatId,
    pub(crate) reservation: ReservationId,
    pub(crate) expires_at: Timestamp,
}

/// Claims seats, which come in id order. Answers with the fences of those that were free; the others are somebody else's.
pub(crate) async fn claim(
    tx: &mut Tx<'_>,
    event: EventId,
    wanted: &[Wanted],
    now: Timestamp,
) -> Result<Vec<(SeatId, i64)>, Error> {
    debug_assert!(
        wanted.is_sorted_by_key(|wanted| wanted.seat),
        "claims in one order cannot wait for each other"
    );
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let params: &[&dyn Scalar] = &[&event, &Json::of(wanted), &now];
            tx.all(&CLAIM_ALL, params, |row| Ok((row.get(0)?, row.get(1)?))).await
        }
        EngineKind::Sqlite => {
            let mut claimed = Vec::with_capacity(wanted.len());
            for Wanted { seat, reservation, expires_at } in wanted {
                if tx.execute(&CLAIM_ONE, &[&event, seat, reservation, expires_at, &now]).await? == 1 {
                    claimed.push((*seat, tx.one(&FENCE, &[&event, seat], |row| row.get(0)).await?));
                }
            }
            Ok(claimed)
        }
    }
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

/// Adds to the counts of buyers, who come in id order. Answers with those for whom it does not pass the limit.
pub(crate) async fn count_in(
    tx: &mut Tx<'_>,
    event: EventId,
    buyers: &[(UserId, u32)],
    max: u32,
) -> Result<HashSet<UserId>, Error> {
    debug_assert!(buyers.is_sorted(), "buyers in one order cannot wait for each other");
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let counted = tx.all(&COUNT_IN_ALL, &[&event, &Json::of(buyers), &max], |row| row.get(0)).await?;
            Ok(counted.into_iter().collect())
        }
        EngineKind::Sqlite => {
            let mut counted = HashSet::with_capacity(buyers.len());
            for (user, seats) in buyers {
                if tx.execute(&COUNT_IN, &[&event, user, seats, &max]).await? == 1 {
                    counted.insert(*user);
                }
            }
            Ok(counted)
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

/// A new reservation, with what only its row says.
pub(crate) struct Kept<'c> {
    pub(crate) new: &'c Reservation,
    pub(crate) card: &'c Json,
    pub(crate) gate_owner: Owner,
    pub(crate) key: Option<&'c str>,
}

/// Keeps new reservations. Those that are not among the answer were not kept, for their buyers have used the key before.
pub(crate) async fn insert(tx: &mut Tx<'_>, rows: &[Kept<'_>]) -> Result<HashSet<ReservationId>, Error> {
    debug_assert!(rows.iter().all(|Kept { new, .. }| {
        Krw::sum(new.seats.iter().map(|seat| seat.price)).is_ok_and(|sum| sum == new.total)
    }));
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let rows: Vec<_> = rows.iter().map(document).collect();
            let kept = tx.all(&INSERT_ALL, &[&Json::of(&rows)], |row| row.get(0)).await?;
            Ok(kept.into_iter().collect())
        }
        EngineKind::Sqlite => {
            let mut kept = HashSet::with_capacity(rows.len());
            for Kept { new, card, gate_owner, key } in rows {
                let (seats, gate_owner) = (Json::of(&new.seats), gate_owner.as_uuid());
                let (id, times) = (&new.id, (&new.expires_at, &new.created_at));
                let params: &[&dyn Scalar] = &[
                    id,
                    &new.number,
                    &new.user,
                    &new.event,
                    *card,
                    &new.total,
                    &seats,
                    &gate_owner,
                    times.0,
                    times.1,
                    key,
                ];
                if tx.execute(&INSERT, params).await? == 1 {
                    kept.insert(new.id);
                }
            }
            Ok(kept)
        }
    }
}

/// A row as a document, for a statement that takes many.
fn document(Kept { new, card, gate_owner, key }: &Kept<'_>) -> serde_json::Value {
    json!({
        "id": new.id, "number": new.number, "user_id": new.user, "event_id": new.event, "event_card": card.0,
        "total_krw": new.total, "seats": new.seats, "gate_owner": gate_owner.as_uuid(), "expires_at": new.expires_at,
        "created_at": new.created_at, "idempotency_key": key,
    })
}

/// Moves a reservation out of `pending`. `false`: it was not pending any more.
pub(crate) async fn leave_pending(
    tx: &mut Tx<'_>,
    id: ReservationId,
    to: ReservationStatus,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.execute(&LEAVE_PENDING, &[&id, &Status(to), &now]).await? == 1)
}

/// One reservation.
pub(crate) async fn get(tx: &mut Tx<'_>, id: ReservationId) -> Result<Option<Stored>, Error> {
    tx.optional(&GET, &[&id], stored).await
}

/// What a buyer's key was used for.
pub(crate) async fn of_key(tx: &mut Tx<'_>, user: UserId, key: &str) -> Result<Option<Stored>, Error> {
    tx.optional(&OF_KEY, &[&user, &key], stored).await
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

/// A buyer's holds that have run out.
pub(crate) async fn lapsed_of_buyer(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Stored>, Error> {
    tx.all(&LAPSED_OF_BUYER, &[&user, &event, &now, &limit], stored).await
}

/// Holds that have run out.
pub(crate) async fn lapsed(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> Result<Vec<Stored>, Error> {
    tx.all(&LAPSED, &[&now, &limit], stored).await
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
