//! HTTP handlers of the operator API. No rules, no SQL.

use axum::{extract::State, response::Response};
use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::queue::{AuditOf, ClearRoom, PauseRoom, Queue, RoomOf, RoomState, SetThreshold};
use urr_http::{ADMIN, About, Caller, Class, Json, Path, Problem, Query, Routes, StatusCode};
use urr_kernel::{EventId, Timestamp, UserId};
use urr_rpc::{Ctx, problem};

use super::{live::Sample, may_watch};
use crate::api::Api;

const OK: StatusCode = StatusCode::OK;

pub(crate) fn routes() -> Routes<Api> {
    let about = |summary| About::new(summary).path::<EventId>("id");
    Routes::new()
        .get("/api/queue/admin/{id}", ADMIN.limit(Class::Queue), look)
        .about(about("The state of a room").answer::<RoomJson>(OK))
        .put("/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue), put_threshold)
        .about(about("Sets the number of slots").body::<Threshold>().answer::<RoomJson>(OK))
        .post("/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue), post_threshold)
        .about(
            about("Sets the number of slots, in the form older clients use")
                .query::<Threshold>()
                .answer::<RoomJson>(OK),
        )
        .post("/api/queue/admin/pause/{id}", ADMIN.limit(Class::Queue), pause)
        .about(about("Pauses admissions").answer::<RoomJson>(OK))
        .post("/api/queue/admin/resume/{id}", ADMIN.limit(Class::Queue), resume)
        .about(about("Resumes admissions").answer::<RoomJson>(OK))
        .post("/api/queue/admin/clear/{id}", ADMIN.limit(Class::Queue), clear)
        .about(
            about("Removes all users and voids their tickets")
                .optional_body::<Confirmed>()
                .answer::<Cleared>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .get("/api/queue/admin/audit/{id}", ADMIN.limit(Class::Queue), audit)
        .about(about("Operator actions in a room, newest first").answer::<Actions>(OK))
        .get("/api/queue/admin/live/{id}", ADMIN.limit(Class::Queue).streaming(), live)
        .about(about("The state of a room, each second, preceded by the last ten minutes").events::<Sample>())
}

type Answer<T = RoomJson> = Result<Json<T>, Problem>;

async fn look(State(api): State<Api>, ctx: Ctx, caller: Caller, Path(event): Path<EventId>) -> Answer {
    caller.admin()?;
    shown(api.0.room(&ctx, RoomOf { event }).await)
}

/// The number of slots.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "QueueThreshold")]
struct Threshold {
    threshold: u32,
}

async fn put_threshold(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
    Json(Threshold { threshold }): Json<Threshold>,
) -> Answer {
    caller.admin()?;
    shown(api.0.set_threshold(&ctx, SetThreshold { event, threshold }).await)
}

async fn post_threshold(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
    Query(Threshold { threshold }): Query<Threshold>,
) -> Answer {
    caller.admin()?;
    shown(api.0.set_threshold(&ctx, SetThreshold { event, threshold }).await)
}

async fn pause(State(api): State<Api>, ctx: Ctx, caller: Caller, Path(event): Path<EventId>) -> Answer {
    caller.admin()?;
    shown(api.0.pause(&ctx, PauseRoom { event, paused: true }).await)
}

async fn resume(State(api): State<Api>, ctx: Ctx, caller: Caller, Path(event): Path<EventId>) -> Answer {
    caller.admin()?;
    shown(api.0.pause(&ctx, PauseRoom { event, paused: false }).await)
}

/// Clearing requires the event's id twice. Without it nothing changes, and the answer says how many
/// users are affected.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ClearQueue")]
struct Confirmed {
    /// The event's id again.
    confirm: Option<EventId>,
}

async fn clear(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
    body: Option<Json<Confirmed>>,
) -> Answer<Cleared> {
    caller.admin()?;
    let confirmed = body.and_then(|Json(Confirmed { confirm })| confirm);
    let cleared = api.0.clear(&ctx, ClearRoom { event, confirmed }).await;
    let room = cleared.map_err(|error| problem(&error))?.into();
    Ok(Json(Cleared { message: "Queue cleared", room }))
}

async fn audit(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
) -> Answer<Actions> {
    caller.admin()?;
    let audit = api.0.audit(&ctx, AuditOf { event }).await.map_err(|error| problem(&error))?;
    let action = |action: urr_contracts::queue::Deed| Deed {
        at: action.at,
        user_id: action.by,
        action: action.what,
        threshold: action.number,
        done: action.done,
    };
    Ok(Json(Actions { event_id: event, actions: audit.deeds.into_iter().map(action).collect() }))
}

async fn live(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.admin()?;
    may_watch(&api.0, &ctx, event).await.map_err(|error| problem(&error))?;
    api.0.watched.live.listen(event, &headers)
}

fn shown(room: Result<RoomState, urr_contracts::queue::Error>) -> Answer {
    room.map(|room| Json(room.into())).map_err(|error| problem(&error))
}

/// The state of a room.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "QueueRoom")]
pub(crate) struct RoomJson {
    event_id: EventId,
    /// Users waiting.
    queue_size: u64,
    /// Users with a slot.
    current_users: u64,
    /// Most users with a slot at once.
    threshold: u32,
    /// Free slots.
    available: u64,
    paused: bool,
    /// Admissions per second over the last minute, once measured.
    admitted_per_second: Option<f64>,
}

impl From<RoomState> for RoomJson {
    fn from(room: RoomState) -> Self {
        Self {
            event_id: room.event,
            queue_size: room.waiting,
            current_users: room.active,
            threshold: room.threshold,
            available: u64::from(room.threshold).saturating_sub(room.active),
            paused: room.paused,
            admitted_per_second: room.admitted_per_second,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueCleared")]
struct Cleared {
    message: &'static str,
    #[serde(flatten)]
    room: RoomJson,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "QueueActions")]
struct Actions {
    event_id: EventId,
    actions: Vec<Deed>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "QueueAction")]
struct Deed {
    at: Timestamp,
    /// The operator's account; null for the platform itself.
    user_id: Option<UserId>,
    /// `threshold`, `pause`, `resume` or `clear`.
    action: String,
    threshold: Option<u32>,
    /// Whether it took effect. `false`: the room could not be reached.
    done: bool,
}
