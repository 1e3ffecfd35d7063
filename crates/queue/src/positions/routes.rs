//! HTTP handlers and the JSON format of the public API. No rules, no SQL.

use axum::{
    extract::State,
    response::{AppendHeaders, IntoResponse as _, Response},
};
use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::{
    auth::Sensitive,
    queue::{
        CheckIn, EntryState, EntryStatus, Error, EventInfo, LeaveLine, MyEntries, Queue, QueueEntry,
        StatusOf, TokenRefusal,
    },
};
use urr_http::{About, Class, Json, LineSince, OnlyResume, Path, Problem, Query, Routes, StatusCode, USER};
use urr_kernel::{EventId, Timestamp};
use urr_passes::queue_ticket;
use urr_rpc::{Ctx, problem};

use crate::api::{Api, Line, cookie, pass};

const OK: StatusCode = StatusCode::OK;

pub(crate) fn routes() -> Routes<Api> {
    let about = |summary| About::new(summary).path::<EventId>("id");
    Routes::new()
        .post("/api/queue/check/{id}", USER.limit(Class::Queue).after_line(urr_http::Line::Path), check)
        .about(
            about("Joins the queue of an event, or returns the caller's position")
                .query::<Arrival>()
                .answer::<EntryJson>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .get("/api/queue/status/{id}", USER.limit(Class::Queue), status)
        .about(
            about("The caller's position; counts as a heartbeat")
                .answer::<EntryJson>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .post("/api/queue/heartbeat/{id}", USER.limit(Class::Queue), heartbeat)
        .about(
            about("Heartbeat: keeps the caller's position")
                .answer::<Beat>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .post("/api/queue/leave/{id}", USER.limit(Class::Queue), leave)
        .about(about("Gives up the caller's position or slot").answer::<Message>(OK))
        .get("/api/queue/my", USER.limit(Class::Queue), mine)
        .about(About::new("The events whose waiting rooms the caller is in").answer::<Mine>(OK))
}

/// Query of `POST /api/queue/check/{id}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arrival {
    /// Accepted for older clients and ignored: positions come from signed tokens only.
    #[serde(default)]
    #[expect(dead_code, reason = "documents an accepted parameter that is ignored")]
    vwr_position: Option<String>,
}

async fn check(
    State(api): State<Api>,
    ctx: Ctx,
    headers: HeaderMap,
    LineSince(line_since): LineSince,
    OnlyResume(only_resume): OnlyResume,
    Path(event): Path<EventId>,
    Query(_): Query<Arrival>,
) -> Result<Response, Problem> {
    let (ticket, pass) = (cookie(&headers, queue_ticket::COOKIE), pass(&headers, event));
    let request = CheckIn { event, ticket, pass, line_since, only_resume };
    let place = match api.0.check(&ctx, request).await {
        Ok(place) => place,
        Err(error @ Error::PassTaken) => {
            let taken = problem(&error).field("redirectTo", format!("/vwr/{event}"));
            return Ok((AppendHeaders(api.forget_turn(event)), taken).into_response());
        }
        Err(error @ Error::PlaceOver { turn_used }) => {
            // Delete the cookies that led here, or the browser would send them again. An unused
            // Tier 1 turn is kept: it leads back here with a position.
            let over = problem(&error).field("redirectTo", format!("/vwr/{event}"));
            let turn = turn_used.then(|| api.forget_turn(event)).into_iter().flatten();
            return Ok((AppendHeaders(api.forget(event).into_iter().chain(turn)), over).into_response());
        }
        Err(error) => return Err(problem(&error)),
    };
    let mut cookies: Vec<Line> = Vec::new();
    match &place.state {
        EntryState::Waiting { ticket, .. } => {
            cookies.extend(ticket.iter().flat_map(|ticket| api.keep_ticket(event, ticket)));
        }
        EntryState::Active { entry_token, token_expires_at, .. } => {
            cookies.extend(api.keep_entry(event, entry_token, *token_expires_at));
            cookies.extend(api.forget_ticket(event));
        }
        EntryState::Absent => {}
    }
    Ok((AppendHeaders(cookies), Json(EntryJson::from(place))).into_response())
}

async fn status(State(api): State<Api>, ctx: Ctx, Path(event): Path<EventId>) -> Result<Response, Problem> {
    let place = api.0.status(&ctx, StatusOf { event }).await.map_err(|error| problem(&error))?;
    let mut cookies: Vec<Line> = Vec::new();
    if let EntryState::Active { entry_token, token_expires_at, .. } = &place.state {
        cookies.extend(api.keep_entry(event, entry_token, *token_expires_at));
        cookies.extend(api.forget_ticket(event));
    }
    Ok((AppendHeaders(cookies), Json(EntryJson::from(place))).into_response())
}

async fn heartbeat(
    State(api): State<Api>,
    ctx: Ctx,
    Path(event): Path<EventId>,
) -> Result<Json<Beat>, Problem> {
    let place = api.0.status(&ctx, StatusOf { event }).await.map_err(|error| problem(&error))?;
    let status = Status::of(&place.state);
    Ok(Json(Beat { status, queued: status == Status::Queued }))
}

/// Also called when a page is closed: with cookies only, and with whatever body the browser sends.
async fn leave(State(api): State<Api>, ctx: Ctx, Path(event): Path<EventId>) -> Result<Response, Problem> {
    api.0.leave(&ctx, LeaveLine { event }).await.map_err(|error| problem(&error))?;
    Ok((AppendHeaders(api.forget(event)), Json(Message { message: "Left queue" })).into_response())
}

/// Body of `GET /api/queue/my`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueEntries")]
struct Mine {
    entries: Vec<MyEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "QueueEntry")]
struct MyEntry {
    event_id: EventId,
    /// Left out if the catalog does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_info: Option<EventInfo>,
    /// `queued` or `active`.
    status: Status,
}

async fn mine(State(api): State<Api>, ctx: Ctx) -> Result<Json<Mine>, Problem> {
    let found = api.0.entries(&ctx, MyEntries {}).await.map_err(|error| problem(&error))?;
    let entry = |entry: QueueEntry| MyEntry {
        event_id: entry.event,
        event_info: entry.info,
        status: if entry.active { Status::Active } else { Status::Queued },
    };
    Ok(Json(Mine { entries: found.entries.into_iter().map(entry).collect() }))
}

/// The caller's status, in the API's spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "QueueStatus")]
enum Status {
    Queued,
    Active,
    NotInQueue,
}

impl Status {
    fn of(state: &EntryState) -> Self {
        match state {
            EntryState::Waiting { .. } => Self::Queued,
            EntryState::Active { .. } => Self::Active,
            EntryState::Absent => Self::NotInQueue,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueHeartbeat")]
struct Beat {
    status: Status,
    queued: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueMessage")]
struct Message {
    message: &'static str,
}

/// The caller's position in the queue.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "QueuePlace")]
struct EntryJson {
    status: Status,
    queued: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    #[serde(flatten)]
    waiting: Option<Waiting>,
    #[serde(flatten)]
    active: Option<Active>,
    /// Seconds until the next request is useful.
    next_poll: u32,
    /// Most users with a slot at once.
    threshold: u32,
    /// Users with a slot.
    current_users: u64,
    /// Users waiting.
    queue_size: u64,
    /// Whether an operator has paused admissions.
    paused: bool,
    /// When the sale begins, if it has not. There are no admissions before.
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Timestamp>,
    event_info: EventInfo,
    /// Codes of tokens that were sent and did not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<TokenRefusal>,
}

/// Fields for waiting users.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Waiting {
    /// Counted from one.
    position: u64,
    people_ahead: u64,
    people_behind: u64,
    /// Seconds. Left out while admissions are stopped (paused, or a threshold of 0).
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_wait: Option<u64>,
    /// Left out when `estimatedWait` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_wait_range: Option<Range>,
}

/// Lower and upper bound, in seconds.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WaitRange")]
struct Range {
    from: u64,
    to: u64,
}

/// Fields for admitted users.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Active {
    /// Send it as `x-queue-entry-token` with requests that buy.
    entry_token: Sensitive,
    entry_token_expires_at: Timestamp,
    /// When the slot ends at the latest, also for an active user.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot_ends_at: Option<Timestamp>,
}

impl From<EntryStatus> for EntryJson {
    fn from(place: EntryStatus) -> Self {
        let status = Status::of(&place.state);
        let size = place.waiting;
        let (mut waiting, mut active) = (None, None);
        match place.state {
            EntryState::Waiting { position, wait, .. } => {
                waiting = Some(Waiting {
                    position,
                    people_ahead: position.saturating_sub(1),
                    people_behind: size.saturating_sub(position),
                    estimated_wait: wait.map(|wait| wait.secs),
                    estimated_wait_range: wait.map(|wait| Range { from: wait.from_secs, to: wait.to_secs }),
                });
            }
            EntryState::Active { entry_token, token_expires_at, slot_ends_at } => {
                active = Some(Active { entry_token, entry_token_expires_at: token_expires_at, slot_ends_at });
            }
            EntryState::Absent => {}
        }
        let unknown = || EventInfo { title: "Unknown".to_owned(), artist: None };
        Self {
            status,
            queued: status == Status::Queued,
            message: match status {
                Status::Queued => None,
                Status::Active => Some("Entry allowed"),
                Status::NotInQueue => Some("Not in queue"),
            },
            waiting,
            active,
            next_poll: place.next_poll_secs,
            threshold: place.threshold,
            current_users: place.active,
            queue_size: size,
            paused: place.paused,
            opens_at: place.opens_at,
            event_info: place.info.unwrap_or_else(unknown),
            refused: place.refused,
        }
    }
}
