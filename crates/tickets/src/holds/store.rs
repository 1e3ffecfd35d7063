//! Statements and rows of holds; nothing else.

use serde::{Serialize, de::DeserializeOwned};
use urr_contracts::tickets::{Reservation, ReservationStatus};
use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Krw, ReservationId, Scalar, SeatId, Timestamp, UserId, Value, WrongValue};

use crate::gate::Owner;

statements! {
    /// Claims one seat unless a live hold or a sale covers it. Answers with the new fence, or with nothing.
    CLAIM = "
        insert into seats (seat_id, event_id, state, reservation_id, fence, expires_at)
        values ($1, $2, 'held', $3, 1, $4)
        on conflict (seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
         where seats.state = 'available' or (seats.state = 'held' and seats.expires_at <= $5)
        returning fence";

    /// Frees one seat if it is still under the claim that the fence names.
    FREE = "
        update seats set state = 'available', reservation_id = null, expires_at = null
         where seat_id = $1 and fence = $2 and reservation_id = $3 and state = 'held'";

    /// Adds seats to a buyer's count unless that would pass the limit. Answers with the new count, or with nothing.
    COUNT_IN = "
        insert into buyers (event_id, user_id, live_seats) values ($1, $2, $3)
        on conflict (event_id, user_id) do update
           set live_seats = buyers.live_seats + excluded.live_seats
         where buyers.live_seats + excluded.live_seats <= $4
        returning live_seats";

    /// Takes seats off a buyer's count.
    COUNT_OUT = "update buyers set live_seats = live_seats - $3 where event_id = $1 and user_id = $2";

    /// How many seats a buyer has. On PostgreSQL it also takes the buyer's lock, the first one in the order of locks;
    /// SQLite has one writer and no row locks.
    LOCK_BUYER =
        sqlite "select live_seats from buyers where event_id = $1 and user_id = $2"
        postgres "select live_seats from buyers where event_id = $1 and user_id = $2 for update";

    /// Keeps what was claimed.
    INSERT = "
        insert into reservations (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                  expires_at, created_at, updated_at)
        values ($1, $2, $3, $4, $5, 'pending', $6, $7, $8, $9, $10, $10)";

    /// Leaves `pending`, unless somebody was faster.
    LEAVE_PENDING = "update reservations set status = $2, updated_at = $3 where id = $1 and status = 'pending'";

    /// One reservation.
    GET = "
        select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner, expires_at, created_at
          from reservations where id = $1";

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

    /// Remembers a key, unless it is known.
    KEEP_KEY = "
        insert into idempotency_keys (user_id, route, key, request_hash, reservation_id, created_at)
        values ($1, $2, $3, $4, $5, $6) on conflict (user_id, route, key) do nothing";

    /// What a key was used for.
    FIND_KEY = "
        select request_hash, reservation_id from idempotency_keys where user_id = $1 and route = $2 and key = $3";

    /// Forgets old keys, a batch at a time.
    FORGET_KEYS = "
        delete from idempotency_keys where (user_id, route, key) in
            (select user_id, route, key from idempotency_keys where created_at < $1 order by created_at limit $2)";
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

/// Claims a seat. `None`: somebody else has it.
pub(crate) async fn claim(
    tx: &mut Tx<'_>,
    event: EventId,
    seat: SeatId,
    reservation: ReservationId,
    (now, expires_at): (Timestamp, Timestamp),
) -> Result<Option<i64>, Error> {
    tx.optional(&CLAIM, &[&seat, &event, &reservation, &expires_at, &now], |row| row.get(0)).await
}

/// Frees a seat. `false`: the fence is stale, and nothing changed.
pub(crate) async fn free(
    tx: &mut Tx<'_>,
    seat: SeatId,
    fence: i64,
    of: ReservationId,
) -> Result<bool, Error> {
    Ok(tx.execute(&FREE, &[&seat, &fence, &of]).await? == 1)
}

/// Adds to a buyer's count. `false`: the limit would be passed.
pub(crate) async fn count_in(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
    seats: u32,
    max: u32,
) -> Result<bool, Error> {
    let count: Option<i64> = tx.optional(&COUNT_IN, &[&event, &user, &seats, &max], |row| row.get(0)).await?;
    Ok(count.is_some())
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

/// Keeps a new reservation.
pub(crate) async fn insert(tx: &mut Tx<'_>, new: &Reservation, gate_owner: Owner) -> Result<(), Error> {
    debug_assert_eq!(new.total, Krw::sum(new.seats.iter().map(|seat| seat.price)).unwrap_or_default());
    tx.execute(
        &INSERT,
        &[
            &new.id,
            &new.number,
            &new.user,
            &new.event,
            &Document(new.card.clone()),
            &new.total,
            &Document(new.seats.clone()),
            &gate_owner.as_uuid(),
            &new.expires_at,
            &new.created_at,
        ],
    )
    .await?;
    Ok(())
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

/// An idempotency key with its scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'k> {
    pub(crate) user: UserId,
    pub(crate) route: &'static str,
    pub(crate) text: &'k str,
}

/// What a key was used for.
#[derive(Clone, Debug)]
pub(crate) struct KeyUse {
    pub(crate) request_hash: Vec<u8>,
    pub(crate) reservation: ReservationId,
}

/// Remembers a key. `false`: it is known already.
pub(crate) async fn keep_key(
    tx: &mut Tx<'_>,
    key: Key<'_>,
    used: &KeyUse,
    now: Timestamp,
) -> Result<bool, Error> {
    let params: &[&dyn Scalar] =
        &[&key.user, &key.route, &key.text, &used.request_hash, &used.reservation, &now];
    Ok(tx.execute(&KEEP_KEY, params).await? == 1)
}

/// Looks a key up.
pub(crate) async fn find_key(tx: &mut Tx<'_>, key: Key<'_>) -> Result<Option<KeyUse>, Error> {
    tx.optional(&FIND_KEY, &[&key.user, &key.route, &key.text], |row| {
        Ok(KeyUse { request_hash: row.get(0)?, reservation: row.get(1)? })
    })
    .await
}

/// Forgets keys older than `before`. Answers with how many went.
pub(crate) async fn forget_keys(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> Result<u64, Error> {
    tx.execute(&FORGET_KEYS, &[&before, &limit]).await
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

/// A JSON column.
struct Document<T>(T);

impl<T: Serialize + DeserializeOwned + Send + Sync> Scalar for Document<T> {
    fn to_value(&self) -> Value<'_> {
        let json = serde_json::to_string(&self.0);
        Value::Json(json.expect("what a reservation keeps is plain data and always serialises").into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        let read = serde_json::from_str(&String::from_value(value)?);
        read.map(Self).map_err(|_| WrongValue { wanted: "the document that a reservation keeps" })
    }
}
