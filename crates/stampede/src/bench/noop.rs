//! The baseline: a no-op handler behind the same gateway, guards, parser and serializer as a hold.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_http::{Caller, Class, Json, Line, Problem, Routes, USER};
use urr_kernel::{Clock, EventId, Ids, ReservationId, SeatId, Timestamp, UserId};
use urr_rpc::{Ctx, handler_state};

/// The path of the real handler, so that the same guards apply.
pub(super) const PATH: &str = "/api/seats/reserve";

struct Parts {
    clock: Clock,
    ids: Ids,
}

handler_state! {
    /// State of the handler.
    struct Api(Parts);
}

/// The body of a hold.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reserve {
    event_id: EventId,
    seat_ids: Vec<SeatId>,
    #[serde(default)]
    idempotency_key: Option<String>,
}

/// A response as large as that of a hold.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    message: &'static str,
    reservation: ReservationJson,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReservationJson {
    id: ReservationId,
    user: UserId,
    event_id: EventId,
    event_title: &'static str,
    idempotency_key: Option<String>,
    expires_at: Timestamp,
    seats: Vec<Seat>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Seat {
    id: SeatId,
    section: &'static str,
    grade: &'static str,
    label: &'static str,
    price: u32,
    fencing_token: i64,
}

async fn noop(
    State(Api(parts)): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Json(body): Json<Reserve>,
) -> Result<Json<Answer>, Problem> {
    let seats = body.seat_ids.into_iter().map(|id| Seat {
        id,
        section: "Ground",
        grade: "Ground",
        label: "Ground-100-100",
        price: 165_000,
        fencing_token: 1,
    });
    let reservation = ReservationJson {
        id: ReservationId::from_uuid(ctx.request_id.as_uuid()),
        user: caller.user()?,
        event_id: body.event_id,
        event_title: "A night to remember",
        idempotency_key: body.idempotency_key,
        expires_at: parts.clock.now(),
        seats: seats.collect(),
    };
    Ok(Json(Answer { message: "Seats reserved temporarily", reservation }))
}

/// The no-op handler, to be served in place of the real one.
pub(super) fn routes(clock: &Clock, ids: &Ids) -> Routes {
    let policy = USER.limit(Class::Booking).after_line(Line::Body);
    Routes::new()
        .post(PATH, policy, noop)
        .with_state(Api(Arc::new(Parts { clock: clock.clone(), ids: ids.clone() })))
}
