//! HTTP routes of events. No rules, no SQL.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::IntoDeserializer as _};
use urr_contracts::catalog::{
    CancelEvent, Catalog, CreateEvent, EventDetail, EventOf, EventStatus, EventSummary, EventsPage,
    ListEvents, MAX_EVENTS_PER_PAGE, TicketType,
};
use urr_http::{ADMIN, About, Caller, Json, PUBLIC, Path, Problem, Query, Routes, StatusCode};
use urr_kernel::{EventId, Krw, LayoutId, TicketTypeId, Timestamp};
use urr_rpc::{Ctx, problem};

use crate::api::Api;

type Answer<T> = Result<Json<T>, Problem>;

const OK: StatusCode = StatusCode::OK;

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .get("/api/events", PUBLIC, list)
        .about(About::new("Events, by the start of their sale").query::<ListQuery>().answer::<ListBody>(OK))
        .get("/api/events/{id}", PUBLIC, detail)
        .about(About::new("One event").path::<EventId>("id").answer::<DetailBody>(OK))
        .post("/api/admin/events", ADMIN, create)
        .about(
            About::new("Makes an event")
                .body::<CreateEvent>()
                .answer::<ChangedBody>(StatusCode::CREATED)
                .refuses([StatusCode::NOT_FOUND]),
        )
        .post("/api/admin/events/{id}/cancel", ADMIN, cancel)
        .about(About::new("Calls an event off").path::<EventId>("id").answer::<ChangedBody>(OK))
}

#[derive(Deserialize, JsonSchema)]
struct ListQuery {
    /// Only events with this status. All events if absent or empty.
    #[serde(default, deserialize_with = "empty_is_none")]
    status: Option<EventStatus>,
    /// Part of a title, an artist, a venue or an address.
    q: Option<String>,
    /// Page number, from 1.
    #[serde(default = "first_page")]
    #[schemars(range(min = 1))]
    page: u32,
    /// Events per page.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = MAX_EVENTS_PER_PAGE))]
    limit: u32,
}

const fn first_page() -> u32 {
    1
}

const fn ten() -> u32 {
    10
}

/// Maps an empty status to `None`: that is what a form with "any status" selected sends.
fn empty_is_none<'de, D: Deserializer<'de>>(value: D) -> Result<Option<EventStatus>, D::Error> {
    let text = String::deserialize(value)?;
    if text.is_empty() {
        return Ok(None);
    }
    EventStatus::deserialize(text.as_str().into_deserializer()).map(Some)
}

async fn list(State(Api(catalog)): State<Api>, ctx: Ctx, Query(query): Query<ListQuery>) -> Answer<ListBody> {
    let ListQuery { status, q, page, limit } = query;
    let found = catalog.events(&ctx, ListEvents { status, search: q, page, limit }).await;
    Ok(Json(found.map_err(|error| problem(&error))?.into()))
}

async fn detail(State(Api(catalog)): State<Api>, ctx: Ctx, Path(event): Path<EventId>) -> Answer<DetailBody> {
    let found = catalog.event(&ctx, EventOf { event }).await.map_err(|error| problem(&error))?;
    let (event, ticket_types) = full(found);
    Ok(Json(DetailBody { event, ticket_types }))
}

/// Checks the role before the body: callers who are not admins learn nothing about its schema.
async fn create(
    State(Api(catalog)): State<Api>,
    ctx: Ctx,
    caller: Caller,
    body: Result<Json<CreateEvent>, Problem>,
) -> Result<(StatusCode, Json<ChangedBody>), Problem> {
    caller.admin()?;
    let Json(request) = body?;
    let created = catalog.create_event(&ctx, request).await.map_err(|error| problem(&error))?;
    let changed = ChangedBody { message: "Event created successfully", event: full(created).0 };
    Ok((StatusCode::CREATED, Json(changed)))
}

async fn cancel(
    State(Api(catalog)): State<Api>,
    ctx: Ctx,
    caller: Caller,
    event: Result<Path<EventId>, Problem>,
) -> Answer<ChangedBody> {
    caller.admin()?;
    let Path(event) = event?;
    let cancelled =
        catalog.cancel_event(&ctx, CancelEvent { event }).await.map_err(|error| problem(&error))?;
    Ok(Json(ChangedBody { message: "Event cancelled successfully", event: full(cancelled).0 }))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Events")]
struct ListBody {
    events: Vec<EventRow>,
    pagination: Pagination,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Pagination {
    page: u32,
    limit: u32,
    total: u32,
    total_pages: u32,
}

impl From<EventsPage> for ListBody {
    fn from(found: EventsPage) -> Self {
        let EventsPage { events, page, limit, total } = found;
        Self {
            events: events.into_iter().map(EventRow::from).collect(),
            pagination: Pagination { page, limit, total, total_pages: total.div_ceil(limit.max(1)) },
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Event")]
struct DetailBody {
    event: EventFull,
    ticket_types: Vec<TicketTypeRow>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChangedEvent")]
struct ChangedBody {
    message: &'static str,
    event: EventFull,
}

#[derive(Serialize, JsonSchema)]
struct EventRow {
    id: EventId,
    title: String,
    description: Option<String>,
    venue: String,
    address: Option<String>,
    event_date: Timestamp,
    sale_start_date: Timestamp,
    sale_end_date: Timestamp,
    poster_image_url: Option<String>,
    status: EventStatus,
    seat_layout_id: Option<LayoutId>,
    artist_name: Option<String>,
    ticket_type_count: u32,
    min_price: Option<Krw>,
    max_price: Option<Krw>,
    places: u32,
    places_reserved: u32,
}

impl From<EventSummary> for EventRow {
    fn from(event: EventSummary) -> Self {
        Self {
            id: event.id,
            title: event.title,
            description: event.description,
            venue: event.venue,
            address: event.address,
            event_date: event.event_at,
            sale_start_date: event.sale_start_at,
            sale_end_date: event.sale_end_at,
            poster_image_url: event.poster_image_url,
            status: event.status,
            seat_layout_id: event.layout,
            artist_name: event.artist_name,
            ticket_type_count: event.ticket_type_count,
            min_price: event.min_price,
            max_price: event.max_price,
            places: event.places,
            places_reserved: event.places_reserved,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct EventFull {
    #[serde(flatten)]
    row: EventRow,
    max_seats_per_reservation: u32,
    max_seats_per_user: u32,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(flatten)]
    older: Older,
}

/// Always empty; older clients expect these members to exist.
#[derive(Default, Serialize, JsonSchema)]
struct Older {
    artist_id: Option<&'static str>,
    created_by: Option<&'static str>,
    pre_scaled: bool,
}

#[derive(Serialize, JsonSchema)]
struct TicketTypeRow {
    id: TicketTypeId,
    name: String,
    price: Krw,
    total_quantity: u32,
    /// Equals the total quantity: standing tickets cannot be bought yet.
    available_quantity: u32,
    description: String,
}

impl From<TicketType> for TicketTypeRow {
    fn from(kind: TicketType) -> Self {
        let TicketType { id, name, price, total_quantity, description } = kind;
        Self { id, name, price, total_quantity, available_quantity: total_quantity, description }
    }
}

fn full(detail: EventDetail) -> (EventFull, Vec<TicketTypeRow>) {
    let EventDetail {
        event,
        max_seats_per_reservation,
        max_seats_per_user,
        ticket_types,
        created_at,
        updated_at,
    } = detail;
    let row = EventRow::from(event);
    let older = Older::default();
    let event =
        EventFull { row, max_seats_per_reservation, max_seats_per_user, created_at, updated_at, older };
    (event, ticket_types.into_iter().map(TicketTypeRow::from).collect())
}
