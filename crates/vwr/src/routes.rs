//! The public routes, under both prefixes. No rules, no SQL.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{AppendHeaders, IntoResponse as _, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use urr_contracts::vwr::{
    Assign, Assigned, CheckTicket, Checked, Error, PositionStatus, Room, RoomOf, Vwr, WaitRange,
};
use urr_http::{About, Class, Json, PUBLIC, Path, Policy, Problem, Routes};
use urr_kernel::EventId;
use urr_rpc::{Ctx, problem};

use crate::{api::Api, cookies, line, rules::Pace, service::Service};

const OK: StatusCode = StatusCode::OK;

/// Polled by every waiting browser. Not rate limited: an answer costs less than counting, and many
/// phones share an address.
const POLLED: Policy = PUBLIC.unlimited();

/// The same four routes below a prefix.
macro_rules! named {
    ($routes:expr, $prefix:literal) => {
        $routes
            .post(concat!($prefix, "/assign/{id}"), PUBLIC.limit(Class::Arrivals), assign)
            .about(
                About::new("Gives this browser a position in line").path::<EventId>("id").answer::<Stood>(OK),
            )
            .get(concat!($prefix, "/check/{id}/{ticket}"), POLLED, check)
            .about(
                About::new("Whether a ticket's turn has come")
                    .path::<EventId>("id")
                    .answer::<CheckJson>(OK)
                    .refuses([StatusCode::FORBIDDEN]),
            )
            .get(concat!($prefix, "/serving/{id}"), POLLED, serving)
            .about(
                About::new("Progress of the line; shared by all visitors and cacheable for a second")
                    .path::<EventId>("id")
                    .answer::<Line>(OK),
            )
            .get(concat!($prefix, "/status/{id}"), POLLED, status)
            .about(About::new("A line's totals").path::<EventId>("id").answer::<Status>(OK))
    };
}
pub(crate) fn routes() -> Routes<Api> {
    named!(Routes::new(), "/vwr").merge(named!(Routes::new(), "/vwr-api/vwr"))
}

/// Body of `assign`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrPlace")]
struct Stood {
    /// The ticket, which `check` requires.
    request_id: String,
    position: u64,
    serving_counter: u64,
    total_in_queue: u64,
    ahead: u64,
    /// In seconds. Meaningless while `paused`.
    estimated_wait: u64,
    /// In seconds, once measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_range: Option<WaitRange>,
    /// In seconds.
    next_poll: u64,
    /// Whether admissions are paused.
    paused: bool,
}

impl Stood {
    fn new(request_id: String, place: &PositionStatus) -> Self {
        Self {
            request_id,
            position: place.position,
            serving_counter: place.serving,
            total_in_queue: place.tail,
            ahead: place.ahead,
            estimated_wait: place.wait_secs,
            wait_range: place.range,
            next_poll: place.next_poll_secs,
            paused: place.paused,
        }
    }
}

async fn assign(
    State(Api(vwr)): State<Api>,
    ctx: Ctx,
    Path(event): Path<EventId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (Assigned { ticket, place }, lines) = stand(&vwr, &ctx, event, &headers).await?;
    Ok((AppendHeaders(lines), Json(Stood::new(ticket, &place))).into_response())
}

/// The browser's position, and the cookies to set.
pub(crate) async fn stand(
    vwr: &Service,
    ctx: &Ctx,
    event: EventId,
    headers: &HeaderMap,
) -> Result<(Assigned, Vec<cookies::Line>), Problem> {
    let visitor = cookies::visitor(vwr, headers, event).unwrap_or_else(|| vwr.ids.next());
    let ticket = cookies::ticket(headers, event).map(str::to_owned);
    let assigned =
        vwr.assign(ctx, Assign { event, visitor, ticket }).await.map_err(|error| problem(&error))?;
    // Both are signed again each time, so that a position survives the rotation of secrets.
    let lines =
        vec![cookies::set_ticket(vwr, event, &assigned.ticket), cookies::set_visitor(vwr, event, visitor)];
    Ok((assigned, lines))
}

/// Body of `check`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrTurn")]
struct CheckJson {
    admitted: bool,
    position: u64,
    serving_counter: u64,
    total_in_queue: u64,
    ahead: u64,
    /// In seconds, while waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_wait: Option<u64>,
    /// In seconds, while waiting, once measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_range: Option<WaitRange>,
    /// In seconds, while waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_poll: Option<u64>,
    /// While waiting: whether admissions are paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    /// The Tier 1 pass, also in the cookie `urr-vwr-token-<event>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl CheckJson {
    fn waiting(place: &PositionStatus) -> Self {
        Self {
            admitted: false,
            estimated_wait: Some(place.wait_secs),
            wait_range: place.range,
            next_poll: Some(place.next_poll_secs),
            paused: Some(place.paused),
            ..Self::admitted(place, None)
        }
    }

    fn admitted(place: &PositionStatus, token: Option<String>) -> Self {
        Self {
            admitted: true,
            position: place.position,
            serving_counter: place.serving,
            total_in_queue: place.tail,
            ahead: place.ahead,
            estimated_wait: None,
            wait_range: None,
            next_poll: None,
            paused: None,
            token,
        }
    }
}

async fn check(
    State(Api(vwr)): State<Api>,
    Path((event, ticket)): Path<(EventId, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let checked = show(&vwr, event, ticket, &headers).map_err(|error| problem(&error))?;
    Ok(match checked {
        Checked::Waiting { place } => Json(CheckJson::waiting(&place)).into_response(),
        Checked::Admitted { place, token, expires_at } => {
            let line = cookies::set_pass(&vwr, event, &token, expires_at);
            (AppendHeaders([line]), Json(CheckJson::admitted(&place, Some(token)))).into_response()
        }
    })
}

/// Whether the browser's turn has come.
pub(crate) fn show(
    vwr: &Service,
    event: EventId,
    ticket: String,
    headers: &HeaderMap,
) -> Result<Checked, Error> {
    let visitor = cookies::visitor(vwr, headers, event);
    let pass = cookies::pass(headers, event).map(str::to_owned);
    line::check(vwr, &CheckTicket { event, ticket, visitor, pass })
}

/// Progress of the line, shared by all visitors.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrServing")]
struct Line {
    event_id: EventId,
    is_active: bool,
    paused: bool,
    /// Last position admitted.
    serving_counter: u64,
    /// Last position given.
    total_in_queue: u64,
    /// Admissions per second, as set by operators.
    rate: u32,
    /// Admissions per second, as measured: lower and upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_rate: Option<[f64; 2]>,
    /// Increases when the room is reopened; earlier positions are void.
    epoch: u64,
}

/// One second, for browsers and for a CDN: the CDN answers the crowd with one request per second to
/// us.
const A_SECOND: HeaderValue = HeaderValue::from_static("public, max-age=1");

async fn serving(State(Api(vwr)): State<Api>, Path(event): Path<EventId>) -> Result<Response, Problem> {
    let known = vwr.room_cache.room(event).and_then(|room| room.ok_or(Error::RoomNotFound));
    let (room, pace) = known.map_err(|error| problem(&error))?;
    Ok(([(header::CACHE_CONTROL, A_SECOND)], Json(Line::new(&room, pace))).into_response())
}

impl Line {
    fn new(room: &Room, pace: Option<Pace>) -> Self {
        // Two decimal places are precise enough.
        let rounded = |rate: f64| (rate * 100.0).round() / 100.0;
        Self {
            event_id: room.event,
            is_active: room.active,
            paused: room.paused,
            serving_counter: room.serving,
            total_in_queue: room.tail,
            rate: room.rate,
            measured_rate: pace.map(|pace| [rounded(pace.slow), rounded(pace.quick)]),
            epoch: room.epoch,
        }
    }
}

/// A line's totals.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrStatus")]
struct Status {
    event_id: EventId,
    is_active: bool,
    total_in_queue: u64,
    serving: u64,
    waiting_count: u64,
}

async fn status(
    State(Api(vwr)): State<Api>,
    ctx: Ctx,
    Path(event): Path<EventId>,
) -> Result<Response, Problem> {
    let room = vwr.room(&ctx, RoomOf { event }).await.map_err(|error| problem(&error))?;
    let status = Status {
        event_id: room.event,
        is_active: room.active,
        total_in_queue: room.tail,
        serving: room.serving,
        waiting_count: room.waiting(),
    };
    Ok(([(header::CACHE_CONTROL, A_SECOND)], Json(status)).into_response())
}
