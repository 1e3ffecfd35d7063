//! HTTP handlers of the operator API. The gateway and the service both check the role.

use axum::{extract::State, http::StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::vwr::{Action, ActionsOf, Error, GiveOrder, ListRooms, Order, Ordered, Room, RoomOf, Vwr};
use urr_http::{ADMIN, About, Caller, Json, Path, Problem, Routes};
use urr_kernel::{EventId, Timestamp};
use urr_rpc::{Ctx, problem};

use crate::{api::Api, live};

const OK: StatusCode = StatusCode::OK;

/// Default of `advance`.
const BATCH: u32 = 500;

/// Commands listed by `status`.
const LISTED: u32 = 20;

pub(crate) fn routes() -> Routes<Api> {
    let about = |summary| About::new(summary).path::<EventId>("id");
    Routes::new()
        .post("/api/admin/vwr/activate/{id}", ADMIN, activate)
        .about(about("Opens a room: visitors wait from now on").optional_body::<Opening>().answer::<Done>(OK))
        .post("/api/admin/vwr/deactivate/{id}", ADMIN, deactivate)
        .about(about("Closes a room: waiting visitors may enter").answer::<Done>(OK))
        .get("/api/admin/vwr/status/{id}", ADMIN, status)
        .about(about("A room and its latest commands").answer::<RoomJson>(OK))
        .post("/api/admin/vwr/advance/{id}", ADMIN, advance)
        .about(about("Admits more visitors at once").optional_body::<Batch>().answer::<LetOn>(OK))
        .put("/api/admin/vwr/rate/{id}", ADMIN, rate)
        .about(about("Sets the admissions per second").body::<Rate>().answer::<Done>(OK))
        .post("/api/admin/vwr/pause/{id}", ADMIN, pause)
        .about(about("Pauses admissions").answer::<Done>(OK))
        .post("/api/admin/vwr/resume/{id}", ADMIN, resume)
        .about(about("Resumes admissions").answer::<Done>(OK))
        .get("/api/admin/vwr/rooms", ADMIN, rooms)
        .about(About::new("Rooms that are open or were within the last day").answer::<Listed>(OK))
        .get("/api/admin/vwr/live/{id}", ADMIN.streaming(), live::listen)
        .about(
            about("The state of a room, each second, preceded by the last ten minutes")
                .events::<live::Sample>(),
        )
}

/// Optional body of `activate`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrOpening")]
struct Opening {
    /// Admissions per second.
    #[serde(default)]
    rate: Option<u32>,
    /// Whether visitors may enter while the store is unreachable.
    #[serde(default)]
    fail_open: Option<bool>,
}

/// Optional body of `advance`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrBatch")]
struct Batch {
    /// How many; default 500.
    #[serde(default)]
    batch_size: Option<u32>,
}

/// Body of `rate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "VwrRate")]
struct Rate {
    rate: u32,
}

/// Result of a command.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrDone")]
struct Done {
    event_id: EventId,
    status: &'static str,
    message: &'static str,
    #[serde(flatten)]
    room: Facts,
}

/// The state of a room.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrFacts")]
pub(crate) struct Facts {
    is_active: bool,
    paused: bool,
    rate: u32,
    fail_open: bool,
    epoch: u64,
    next_position: u64,
    serving_counter: u64,
    waiting: u64,
}

impl From<Room> for Facts {
    fn from(room: Room) -> Self {
        Self {
            is_active: room.active,
            paused: room.paused,
            rate: room.rate,
            fail_open: room.fail_open,
            epoch: room.epoch,
            next_position: room.tail,
            serving_counter: room.serving,
            waiting: room.waiting(),
        }
    }
}

async fn activate(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
    body: Option<Json<Opening>>,
) -> Result<Json<Done>, Problem> {
    let Opening { rate, fail_open } = body.map(|Json(opening)| opening).unwrap_or_default();
    let done = ("activated", "From now on people wait in line");
    give(&api, &ctx, caller, event, Order::Activate { rate, fail_open }, done).await
}

async fn deactivate(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
) -> Result<Json<Done>, Problem> {
    let done = ("deactivated", "Nobody has to wait any more");
    give(&api, &ctx, caller, event, Order::Deactivate, done).await
}

async fn rate(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
    Json(body): Json<Rate>,
) -> Result<Json<Done>, Problem> {
    let done = ("rate_changed", "The rate counts from now on");
    give(&api, &ctx, caller, event, Order::Rate { rate: body.rate }, done).await
}

async fn pause(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
) -> Result<Json<Done>, Problem> {
    give(&api, &ctx, caller, event, Order::Pause, ("paused", "Nobody is let on until further notice")).await
}

async fn resume(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
) -> Result<Json<Done>, Problem> {
    give(&api, &ctx, caller, event, Order::Resume, ("resumed", "People are let on again")).await
}

async fn give(
    api: &Api,
    ctx: &Ctx,
    caller: Caller,
    event: EventId,
    order: Order,
    (status, message): (&'static str, &'static str),
) -> Result<Json<Done>, Problem> {
    let Ordered { room, .. } = decide(api, ctx, caller, event, order).await?;
    Ok(Json(Done { event_id: event, status, message, room: room.into() }))
}

async fn decide(
    api: &Api,
    ctx: &Ctx,
    caller: Caller,
    event: EventId,
    order: Order,
) -> Result<Ordered, Problem> {
    caller.admin()?;
    api.0.order(ctx, GiveOrder { event, order }).await.map_err(|error| problem(&error))
}

/// Body of `advance`'s answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrAdvanced")]
struct LetOn {
    event_id: EventId,
    serving_counter: u64,
    advanced: u64,
    /// `advanced`, or `caught_up` if no visitor waited.
    status: &'static str,
}

async fn advance(
    State(api): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
    body: Option<Json<Batch>>,
) -> Result<Json<LetOn>, Problem> {
    let Batch { batch_size } = body.map(|Json(batch)| batch).unwrap_or_default();
    let order = Order::Advance { batch: batch_size.unwrap_or(BATCH) };
    let Ordered { room, advanced } = decide(&api, &ctx, caller, event, order).await?;
    let status = if advanced == 0 { "caught_up" } else { "advanced" };
    Ok(Json(LetOn { event_id: event, serving_counter: room.serving, advanced, status }))
}

/// Body of `status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrRoom")]
struct RoomJson {
    event_id: EventId,
    #[serde(flatten)]
    room: Facts,
    /// Newest first.
    actions: Vec<Action>,
}

async fn status(
    State(Api(vwr)): State<Api>,
    ctx: Ctx,
    caller: Caller,
    Path(event): Path<EventId>,
) -> Result<Json<RoomJson>, Problem> {
    caller.admin()?;
    let refused = |error: Error| problem(&error);
    let room = vwr.room(&ctx, RoomOf { event }).await.map_err(refused)?;
    let actions = vwr.actions(&ctx, ActionsOf { event, limit: LISTED }).await.map_err(refused)?.actions;
    Ok(Json(RoomJson { event_id: event, room: room.into(), actions }))
}

/// Body of `rooms`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VwrRooms")]
struct Listed {
    /// Latest first.
    rooms: Vec<ListedRoom>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrListedRoom")]
struct ListedRoom {
    event_id: EventId,
    opened_at: Timestamp,
    #[serde(flatten)]
    room: Facts,
}

async fn rooms(State(Api(vwr)): State<Api>, ctx: Ctx, caller: Caller) -> Result<Json<Listed>, Problem> {
    caller.admin()?;
    let mut rooms = vwr.rooms(&ctx, ListRooms {}).await.map_err(|error| problem(&error))?.rooms;
    rooms.sort_unstable_by_key(|room| std::cmp::Reverse((room.opened_at, room.event)));
    let listed =
        |room: Room| ListedRoom { event_id: room.event, opened_at: room.opened_at, room: room.into() };
    Ok(Json(Listed { rooms: rooms.into_iter().map(listed).collect() }))
}
