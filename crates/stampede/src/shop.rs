//! The public API as buyers and operators use it.

use std::collections::HashMap;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::{Clock, EventId, Ids, ReservationId, SeatId, Timestamp, UserId};

use crate::{
    http::{Answer, Connection, Lost, Request},
    program::Launch,
};

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct Buyer {
    /// The user id.
    pub user: UserId,
    /// The access token.
    pub token: String,
}

impl Buyer {
    /// A new user with a token that this launch's servers accept.
    pub async fn new(launch: &Launch, role: &str) -> anyhow::Result<Self> {
        let user = Ids::random(Clock::system()).next();
        Ok(Self { user, token: launch.token(user, role).await? })
    }

    /// Many new users. Each token is one run of the binary, so a few run concurrently.
    pub async fn many(launch: &Launch, count: usize) -> anyhow::Result<Vec<Self>> {
        const SIDE_BY_SIDE: usize = 4;
        let (mut buyers, mut making) = (Vec::with_capacity(count), JoinSet::new());
        while buyers.len() < count {
            while making.len() < SIDE_BY_SIDE && buyers.len() + making.len() < count {
                let launch = launch.clone();
                making.spawn(async move { Self::new(&launch, "user").await });
            }
            buyers.push(making.join_next().await.context("a task of a buyer is missing")???);
        }
        Ok(buyers)
    }
}

/// A reservation in the public API.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// The id.
    pub id: ReservationId,
    /// The status.
    pub status: String,
    /// When the hold expires.
    #[serde(alias = "expires_at")]
    pub expires_at: Timestamp,
    /// Its seats: `seats` in the response to a hold, `items` elsewhere.
    #[serde(alias = "items")]
    pub seats: Vec<ReservedSeat>,
}

/// A reserved seat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservedSeat {
    /// The seat.
    #[serde(alias = "seatId")]
    pub id: SeatId,
    /// The fence of the claim.
    pub fencing_token: i64,
}

impl Reservation {
    /// Reads the response to a hold, a release or a lookup.
    pub fn from_answer(answer: &Answer) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct One {
            reservation: Reservation,
        }
        Ok(answer.read::<One>()?.reservation)
    }

    /// Seats and fences.
    pub fn fences(&self) -> Vec<(SeatId, i64)> {
        self.seats.iter().map(|seat| (seat.id, seat.fencing_token)).collect()
    }

    #[cfg(test)]
    pub(crate) fn made_up(
        id: ReservationId,
        status: &str,
        seats: &[(SeatId, i64)],
        expires_at: Timestamp,
    ) -> Self {
        let seats =
            seats.iter().map(|(id, fencing_token)| ReservedSeat { id: *id, fencing_token: *fencing_token });
        Self { id, status: status.to_owned(), expires_at, seats: seats.collect() }
    }
}

/// The parameters of a new event.
#[derive(Clone, Copy, Debug)]
pub struct NewEvent {
    /// Minimum number of seats, if a hall has as many.
    pub seats: u64,
    /// Seconds until the sale opens; negative if it has.
    pub opens_in_secs: i64,
}

/// Creates an event in the smallest hall with enough seats, or in the largest.
pub async fn create_event(
    connection: &mut Connection,
    admin: &Buyer,
    new: NewEvent,
) -> anyhow::Result<EventId> {
    let answer = connection.send(&Request::get("/api/admin/seat-layouts").by(&admin.token)).await?;
    ensure!(answer.status == 200, "layouts: {}", answer.show());
    let layouts = answer.json()["layouts"].as_array().cloned().context("`layouts` is not a list")?;
    let size = |layout: &Value| layout["total_seats"].as_u64().or(layout["totalSeats"].as_u64()).unwrap_or(0);
    let fitting = layouts.iter().filter(|layout| size(layout) >= new.seats).min_by_key(|layout| size(layout));
    let layout = fitting
        .or(layouts.iter().max_by_key(|layout| size(layout)))
        .context("the catalog has no seat layout")?;
    let hour = 3_600_000_000;
    let opens = Timestamp::from_micros(Clock::system().now().as_micros() + new.opens_in_secs * 1_000_000);
    let later = |hours: i64| Timestamp::from_micros(opens.as_micros() + hours * hour);
    let body = json!({
        "title": "A night to remember", "venue": "The hall", "seatLayoutId": layout["id"],
        "saleStartDate": opens, "saleEndDate": later(24), "eventDate": later(48),
    });
    let answer = connection.send(&Request::post("/api/admin/events", &body).by(&admin.token)).await?;
    ensure!(answer.status == 201, "event: {}", answer.show());
    let id = answer.json()["event"]["id"].as_str().context("the new event has no id")?.parse()?;
    Ok(id)
}

/// The seat map of an event: every seat with its status, in the order of the seat plan.
pub async fn seat_map(connection: &mut Connection, event: EventId) -> anyhow::Result<Vec<(SeatId, String)>> {
    #[derive(Deserialize)]
    struct Map {
        seats: Vec<Seat>,
    }
    #[derive(Deserialize)]
    struct Seat {
        id: SeatId,
        status: String,
    }
    let answer = connection.send(&Request::get(&format!("/api/seats/events/{event}"))).await?;
    ensure!(answer.status == 200, "map: {}", answer.show());
    Ok(answer.read::<Map>()?.seats.into_iter().map(|seat| (seat.id, seat.status)).collect())
}

/// The seat map by seat id.
pub async fn seat_states(
    connection: &mut Connection,
    event: EventId,
) -> anyhow::Result<HashMap<SeatId, String>> {
    Ok(seat_map(connection, event).await?.into_iter().collect())
}

/// Holds seats.
pub async fn hold(
    connection: &mut Connection,
    token: &str,
    event: EventId,
    seats: &[SeatId],
    key: &str,
) -> Result<Answer, Lost> {
    let body = json!({ "eventId": event, "seatIds": seats, "idempotencyKey": key });
    connection.send(&Request::post("/api/seats/reserve", &body).by(token)).await
}

/// Releases a hold.
pub async fn release(
    connection: &mut Connection,
    token: &str,
    reservation: ReservationId,
) -> Result<Answer, Lost> {
    let path = format!("/api/reservations/{reservation}/cancel");
    connection.send(&Request { method: "POST", path: &path, token: Some(token), ..Request::default() }).await
}

/// Loads one reservation.
pub async fn reservation(
    connection: &mut Connection,
    token: &str,
    id: ReservationId,
) -> Result<Answer, Lost> {
    connection.send(&Request::get(&format!("/api/reservations/{id}")).by(token)).await
}

/// All reservations of a buyer that still hold their seats.
pub async fn live_reservations(connection: &mut Connection, token: &str) -> anyhow::Result<Vec<Reservation>> {
    #[derive(Deserialize)]
    struct Many {
        reservations: Vec<Reservation>,
    }
    let answer = connection.send(&Request::get("/api/reservations/my").by(token)).await?;
    ensure!(answer.status == 200, "my reservations: {}", answer.show());
    let mut many = answer.read::<Many>()?.reservations;
    many.retain(|reservation| reservation.status == "pending");
    Ok(many)
}

/// Reserved seats of an event by the catalog's count, which follows the messages on the bus.
pub async fn places_reserved(connection: &mut Connection, event: EventId) -> anyhow::Result<u64> {
    let answer = connection.send(&Request::get(&format!("/api/events/{event}"))).await?;
    ensure!(answer.status == 200, "event: {}", answer.show());
    answer.json()["event"]["places_reserved"].as_u64().context("the event has no `places_reserved`")
}
