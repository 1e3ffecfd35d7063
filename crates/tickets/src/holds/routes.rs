//! HTTP routes of holds and reservations. No rules, no SQL.

use axum::{extract::State, http::HeaderMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::tickets::{
    Error, HoldSeats, ListReservations, MAX_RESERVATIONS_PER_PAGE, ReleaseHold, Reservation, ReservationOf,
    ReservationStatus, ReservedSeat, Tickets,
};
use urr_http::{
    About, Class, EntryGuard, Json, Line, PUBLIC, Path, Problem, Query, Routes, StatusCode, USER,
};
use urr_kernel::{EventId, Krw, ReservationId, SeatId, Timestamp, limits::MAX_IDEMPOTENCY_KEY_LEN};
use urr_rpc::{Ctx, problem};

use super::rules;
use crate::api::Api;

const OK: StatusCode = StatusCode::OK;

/// Header for clients and proxies that retry requests without reading their bodies.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .post("/api/seats/reserve", USER.limit(Class::Booking).after_line(Line::Body), reserve)
        .about(
            About::new("Holds seats for the caller")
                .body::<Reserve>()
                .header::<IdempotencyKey>(
                    IDEMPOTENCY_KEY,
                    "What `idempotencyKey` of the body is as well. If a request has both, they are the same.",
                )
                .answer::<Answer<HeldReservation>>(OK)
                .refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY]),
        )
        .get("/api/reservations/my", USER, my_reservations)
        .about(About::new("The caller's reservations, newest first").query::<Page>().answer::<Many>(OK))
        .get("/api/reservations/{id}", USER, reservation)
        .about(About::new("One reservation of the caller").path::<ReservationId>("id").answer::<One>(OK))
        .post("/api/reservations/{id}/cancel", USER.limit(Class::Booking), cancel)
        .about(
            About::new("Gives seats back")
                .path::<ReservationId>("id")
                .answer::<Answer<ReservationJson>>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .get("/api/time", PUBLIC, time)
        .about(About::new("The server's clock, for countdowns").answer::<Time>(OK))
}

/// Body of `POST /api/seats/reserve`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ReserveSeats")]
struct Reserve {
    event_id: EventId,
    seat_ids: Vec<SeatId>,
    #[serde(default)]
    idempotency_key: Option<IdempotencyKey>,
}

/// A request with a used key gets the reservation made with it, in its current state.
// The schema is for the API document only; the rules validate the key.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
struct IdempotencyKey(
    #[schemars(length(min = 1, max = MAX_IDEMPOTENCY_KEY_LEN), regex(pattern = "^[!-~]+$"))] String,
);

async fn reserve(
    State(Api(tickets)): State<Api>,
    ctx: Ctx,
    guard: EntryGuard,
    headers: HeaderMap,
    Json(body): Json<Reserve>,
) -> Result<Json<Answer<HeldReservation>>, Problem> {
    guard.check(body.event_id)?;
    let in_body = body.idempotency_key.map(|IdempotencyKey(key)| key);
    let idempotency_key = one_key(&headers, in_body).map_err(|error| problem(&error))?;
    let request = HoldSeats { event: body.event_id, seats: body.seat_ids, idempotency_key };
    let held = tickets.hold(&ctx, request).await.map_err(|error| problem(&error))?;
    // The answer to a retry shows the current status of the reservation.
    let message = match held.status {
        ReservationStatus::Pending => "Seats reserved temporarily",
        _ => "This reservation was made before and has moved on",
    };
    Ok(Json(Answer { message, reservation: held.into() }))
}

/// Returns the idempotency key of a request, from the body and any number of headers. Two different
/// keys are rejected: a proxy that retries the request may use either.
fn one_key(headers: &HeaderMap, in_body: Option<String>) -> Result<Option<String>, Error> {
    let mut found = in_body;
    for value in headers.get_all(IDEMPOTENCY_KEY) {
        let key = value.to_str().ok().filter(|key| rules::is_key(key)).ok_or(Error::BadIdempotencyKey)?;
        match &found {
            Some(other) if other != key => return Err(Error::IdempotencyKeysDiffer),
            Some(_) => {}
            None => found = Some(key.to_owned()),
        }
    }
    Ok(found)
}

async fn cancel(
    State(Api(tickets)): State<Api>,
    ctx: Ctx,
    Path(reservation): Path<ReservationId>,
) -> Result<Json<Answer<ReservationJson>>, Problem> {
    let released =
        tickets.release(&ctx, ReleaseHold { reservation }).await.map_err(|error| problem(&error))?;
    Ok(Json(Answer { message: "Reservation cancelled", reservation: released.into() }))
}

async fn reservation(
    State(Api(tickets)): State<Api>,
    ctx: Ctx,
    Path(reservation): Path<ReservationId>,
) -> Result<Json<One>, Problem> {
    let found = tickets.reservation(&ctx, ReservationOf { reservation }).await;
    Ok(Json(One { reservation: found.map_err(|error| problem(&error))?.into() }))
}

/// Query of `GET /api/reservations/my`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ReservationsPage")]
struct Page {
    /// Last reservation of the previous page; absent for the first page.
    before: Option<ReservationId>,
    /// Maximum number of reservations; the largest page if absent.
    #[schemars(range(min = 1, max = MAX_RESERVATIONS_PER_PAGE))]
    limit: Option<u32>,
}

async fn my_reservations(
    State(Api(tickets)): State<Api>,
    ctx: Ctx,
    Query(page): Query<Page>,
) -> Result<Json<Many>, Problem> {
    let request =
        ListReservations { before: page.before, limit: page.limit.unwrap_or(MAX_RESERVATIONS_PER_PAGE) };
    let found = tickets.reservations(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(Json(Many { reservations: found.reservations.into_iter().map(ReservationJson::from).collect() }))
}

/// Current time of the server, for countdowns in the browser.
async fn time(State(Api(tickets)): State<Api>) -> Json<Time> {
    Json(Time { time: tickets.clock.now() })
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{R}Answer")]
struct Answer<R> {
    message: &'static str,
    reservation: R,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OneReservation")]
struct One {
    reservation: ReservationJson,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reservations")]
struct Many {
    reservations: Vec<ReservationJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ServerTime")]
struct Time {
    time: Timestamp,
}

/// A reservation in the response to a hold: `camelCase`, as clients expect.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MadeReservation")]
struct HeldReservation {
    id: ReservationId,
    reservation_number: String,
    event_id: EventId,
    event_title: String,
    status: ReservationStatus,
    payment_status: &'static str,
    total_amount: Krw,
    expires_at: Timestamp,
    created_at: Timestamp,
    seats: Vec<MadeSeat>,
    /// Highest fence of the seats.
    fencing_token: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MadeSeat {
    id: SeatId,
    section: String,
    grade: String,
    row_number: u32,
    seat_number: u32,
    seat_label: String,
    price: Krw,
    fencing_token: i64,
}

impl From<Reservation> for HeldReservation {
    fn from(reservation: Reservation) -> Self {
        Self {
            id: reservation.id,
            reservation_number: reservation.number,
            event_id: reservation.event,
            event_title: reservation.card.title,
            status: reservation.status,
            payment_status: payment_status(reservation.status),
            total_amount: reservation.total,
            expires_at: reservation.expires_at,
            created_at: reservation.created_at,
            fencing_token: reservation.seats.iter().map(|seat| seat.fence).max().unwrap_or(0),
            seats: reservation.seats.into_iter().map(MadeSeat::from).collect(),
        }
    }
}

impl From<ReservedSeat> for MadeSeat {
    fn from(seat: ReservedSeat) -> Self {
        Self {
            id: seat.id,
            section: seat.section,
            grade: seat.grade,
            row_number: seat.row,
            seat_number: seat.number,
            seat_label: seat.label,
            price: seat.price,
            fencing_token: seat.fence,
        }
    }
}

/// A reservation in other responses: `snake_case` with its items, as clients expect.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reservation")]
struct ReservationJson {
    id: ReservationId,
    reservation_number: String,
    total_amount: Krw,
    status: ReservationStatus,
    payment_status: &'static str,
    /// Set after payment.
    payment_method: Option<String>,
    expires_at: Timestamp,
    created_at: Timestamp,
    event_id: EventId,
    event_title: String,
    venue: String,
    address: Option<String>,
    event_date: Timestamp,
    items: Vec<Item>,
}

/// One item of a reservation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ReservationItem")]
struct Item {
    /// Price grade of the seat. Named after the ticket type of standing events.
    ticket_type_name: String,
    quantity: u32,
    unit_price: Krw,
    subtotal: Krw,
    seat_id: SeatId,
    seat_label: String,
    section: String,
    row_number: u32,
    seat_number: u32,
    fencing_token: i64,
}

impl From<Reservation> for ReservationJson {
    fn from(reservation: Reservation) -> Self {
        Self {
            id: reservation.id,
            reservation_number: reservation.number,
            total_amount: reservation.total,
            status: reservation.status,
            payment_status: payment_status(reservation.status),
            payment_method: None,
            expires_at: reservation.expires_at,
            created_at: reservation.created_at,
            event_id: reservation.event,
            event_title: reservation.card.title,
            venue: reservation.card.venue,
            address: reservation.card.address,
            event_date: reservation.card.event_at,
            items: reservation.seats.into_iter().map(Item::from).collect(),
        }
    }
}

impl From<ReservedSeat> for Item {
    fn from(seat: ReservedSeat) -> Self {
        Self {
            ticket_type_name: seat.grade,
            quantity: 1,
            unit_price: seat.price,
            subtotal: seat.price,
            seat_id: seat.id,
            seat_label: seat.label,
            section: seat.section,
            row_number: seat.row,
            seat_number: seat.number,
            fencing_token: seat.fence,
        }
    }
}

/// Payment status for older clients, derived from the status of the reservation.
const fn payment_status(status: ReservationStatus) -> &'static str {
    match status {
        ReservationStatus::Confirmed => "completed",
        ReservationStatus::Refunding => "refund_requested",
        ReservationStatus::Refunded => "refunded",
        ReservationStatus::Pending
        | ReservationStatus::Paying
        | ReservationStatus::Expired
        | ReservationStatus::Cancelled => "pending",
    }
}
