//! What operators do, over HTTP. No rules, no SQL.

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
        .about(about("What a room holds").answer::<Shown>(OK))
        .put("/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue), put_threshold)
        .about(about("How many may be in at once").body::<Threshold>().answer::<Shown>(OK))
        .post("/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue), post_threshold)
        .about(
            about("How many may be in at once, as older clients say it")
                .query::<Threshold>()
                .answer::<Shown>(OK),
        )
        .post("/api/queue/admin/pause/{id}", ADMIN.limit(Class::Queue), pause)
        .about(about("Lets nobody in until further notice").answer::<Shown>(OK))
        .post("/api/queue/admin/resume/{id}", ADMIN.limit(Class::Queue), resume)
        .about(about("Lets people in again").answer::<Shown>(OK))
        .post("/api/queue/admin/clear/{id}", ADMIN.limit(Class::Queue), clear)
        .about(
            about("Sends everybody away; their tickets are void")
                .optional_body::<Confirmed>()
                .answer::<Cleared>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .get("/api/queue/admin/audit/{id}", ADMIN.limit(Class::Queue), audit)
        .about(about("What operators did in a room, newest first").answer::<Actions>(OK))
        .get("/api/queue/admin/live/{id}", ADMIN.limit(Class::Queue).streaming(), live)
        .about(about("What a room holds, each second, after the last ten minutes").events::<Sample>())
}

type Answer<T = Shown> = Result<Json<T>, Problem>;

async fn look(State(api): State<Api>, ctx: Ctx, caller: Caller, Path(event): Path<EventId>) -> Answer {
    caller.admin()?;
    shown(api.0.room(&ctx, RoomOf { event }).await)
}

/// The number of people who may be in.
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

/// Whoever clears a line says twice which. Without it nothing happens, and the answer says how many it is about.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ClearQueue")]
struct Confirmed {
    /// The event's id once more.
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

/// What a room holds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "QueueRoom")]
pub(crate) struct Shown {
    event_id: EventId,
    /// How many wait.
    queue_size: u64,
    /// How many are in.
    current_users: u64,
    /// How many may be.
    threshold: u32,
    /// How many more may come in now.
    available: u64,
    paused: bool,
    /// People let in per second over the last minute, once there is enough to tell.
    admitted_per_second: Option<f64>,
}

impl From<RoomState> for Shown {
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
    room: Shown,
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
    /// Whose account; none for the platform itself.
    user_id: Option<UserId>,
    /// `threshold`, `pause`, `resume` or `clear`.
    action: String,
    threshold: Option<u32>,
    /// Whether it took effect. `false`: it was asked for, and the room could not be reached.
    done: bool,
}
