//! Events, their sale windows, and the seats of their halls.

mod error;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use urr_kernel::{EventId, Krw, LayoutId, SeatId, TicketTypeId, Timestamp};
use urr_rpc::service;

pub use error::Error;

/// Most events one page may list.
pub const MAX_EVENTS_PER_PAGE: u32 = 100;
/// Seats one call returns. At about 150 bytes of JSON each, a page stays under 1.5 MB.
pub const MAX_SEATS_PER_PAGE: u32 = 10_000;
/// Seats one look-up may ask about: far more than the [`MAX_SEATS_SETTING`] a reservation may hold.
pub const MAX_SEATS_PER_LOOKUP: usize = 64;
/// The most an event may allow per reservation or per buyer. A school class books by telephone.
pub const MAX_SEATS_SETTING: u32 = 10;

service! {
    /// Events, sale windows and seats.
    pub trait Catalog as "catalog" -> Error {
        /// What a sale must know about an event before it claims anything.
        @idempotent async fn sale(SaleOf) -> Sale;
        /// The seats of an event in the order of the hall, a page at a time. They never change once made.
        @idempotent async fn seats(SeatsOf) -> SeatsPage;
        /// Which events the named seats belong to. Unknown seats are left out.
        @idempotent async fn find_seats(FindSeats) -> FoundSeats;
        /// Events for the public, next sale first.
        @idempotent async fn events(ListEvents) -> EventsPage;
        /// One event for the public.
        @idempotent async fn event(EventOf) -> EventDetail;
        /// The halls an event can be made for. Admins only.
        @idempotent async fn layouts(ListLayouts) -> Layouts;
        /// Puts a new event on the calendar, with every seat of its hall. Admins only.
        async fn create_event(CreateEvent) -> EventDetail;
        /// Takes an event off sale for good. Admins only.
        @idempotent async fn cancel_event(CancelEvent) -> EventDetail;
    }
}

/// Where an event is in its life. Computed from its times by the server's clock; only `cancelled` is a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventStatus {
    /// The sale has not begun.
    Upcoming,
    /// Seats can be bought now.
    OnSale,
    /// The sale or the performance is over.
    Ended,
    /// Called off.
    Cancelled,
}

/// Asks for [`Sale`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SaleOf {
    /// Which event.
    pub event: EventId,
}

/// The rules of one event's sale.
#[expect(clippy::struct_field_names, reason = "its times have the same names in every request and answer")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    /// Which event.
    pub event: EventId,
    /// What a ticket says about it.
    pub card: EventCard,
    /// Whether it was called off.
    pub cancelled: bool,
    /// Seats can be claimed from this instant on.
    pub sale_start_at: Timestamp,
    /// Seats can be claimed before this instant.
    pub sale_end_at: Timestamp,
    /// How many seats one reservation may hold.
    pub max_seats_per_reservation: u32,
    /// How many seats one buyer may hold at a time.
    pub max_seats_per_user: u32,
    /// How many seats the hall has; zero for a standing event.
    pub seats: u32,
}

/// What a ticket says about its event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCard {
    /// Its name.
    pub title: String,
    /// Where.
    pub venue: String,
    /// Street address of the venue.
    pub address: Option<String>,
    /// When the performance begins.
    pub event_at: Timestamp,
}

/// Asks for a page of seats.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SeatsOf {
    /// Which event.
    pub event: EventId,
    /// Place in the hall's order of the first seat wanted, from 0.
    pub from: u32,
}

/// One place of a hall, as sold for one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Which seat.
    pub id: SeatId,
    /// Block of the hall.
    pub section: String,
    /// Price class.
    pub grade: String,
    /// Row within the hall.
    pub row: u32,
    /// Number within the row.
    pub number: u32,
    /// What stands on the ticket: `VIP-1-7`.
    pub label: String,
    /// What it costs.
    pub price: Krw,
}

/// A page of seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatsPage {
    /// At most [`MAX_SEATS_PER_PAGE`] seats.
    pub seats: Vec<Seat>,
    /// Where the next page begins, if there is one.
    pub next: Option<u32>,
}

/// Asks where seats belong.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindSeats {
    /// At most [`MAX_SEATS_PER_LOOKUP`].
    pub seats: Vec<SeatId>,
}

/// Where seats belong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSeats {
    /// Known seats with their event.
    pub seats: Vec<(SeatId, EventId)>,
}

/// Asks for a page of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEvents {
    /// Only events in this state.
    pub status: Option<EventStatus>,
    /// Only events whose title, artist, venue or address contains this text.
    pub search: Option<String>,
    /// From 1.
    pub page: u32,
    /// 1 to [`MAX_EVENTS_PER_PAGE`].
    pub limit: u32,
}

/// Asks for one event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EventOf {
    /// Which event.
    pub event: EventId,
}

/// Calls an event off.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CancelEvent {
    /// Which event.
    pub event: EventId,
}

/// One event in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSummary {
    /// Which event.
    pub id: EventId,
    /// Its name.
    pub title: String,
    /// What it is, in a few sentences.
    pub description: Option<String>,
    /// Where.
    pub venue: String,
    /// Street address of the venue.
    pub address: Option<String>,
    /// Who performs.
    pub artist_name: Option<String>,
    /// When the performance begins.
    pub event_at: Timestamp,
    /// When the sale begins.
    pub sale_start_at: Timestamp,
    /// When the sale ends.
    pub sale_end_at: Timestamp,
    /// Address of a picture.
    pub poster_image_url: Option<String>,
    /// Where it is in its life, by the server's clock.
    pub status: EventStatus,
    /// The hall's plan; none for a standing event.
    pub layout: Option<LayoutId>,
    /// Cheapest seat or ticket type.
    pub min_price: Option<Krw>,
    /// Dearest seat or ticket type.
    pub max_price: Option<Krw>,
    /// Kinds of admission; zero for a seated event.
    pub ticket_type_count: u32,
    /// Seats of the hall, or tickets of all types.
    pub places: u32,
    /// Places that live reservations cover, as far as the bus has told. For display, never for decisions.
    pub places_reserved: u32,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsPage {
    /// The events.
    pub events: Vec<EventSummary>,
    /// From 1.
    pub page: u32,
    /// Asked-for size of a page.
    pub limit: u32,
    /// How many events there are on all pages.
    pub total: u32,
}

/// A counted kind of admission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketType {
    /// Which type.
    pub id: TicketTypeId,
    /// Its name.
    pub name: String,
    /// What one costs.
    pub price: Krw,
    /// How many there are.
    pub total_quantity: u32,
    /// What it includes.
    pub description: String,
}

/// One event with everything the public may see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventDetail {
    /// The event.
    pub event: EventSummary,
    /// How many seats one reservation may hold.
    pub max_seats_per_reservation: u32,
    /// How many seats one buyer may hold at a time.
    pub max_seats_per_user: u32,
    /// Kinds of admission, dearest first.
    pub ticket_types: Vec<TicketType>,
    /// When it was put on the calendar.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// Asks for every layout.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ListLayouts {}

/// One block of a hall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Name of the block.
    pub name: String,
    /// Price class; the block's name unless given.
    #[serde(default)]
    pub grade: Option<String>,
    /// How many rows.
    pub rows: u32,
    /// Seats in each row.
    pub seats_per_row: u32,
    /// What each seat costs.
    pub price: Krw,
    /// Number of the first row.
    pub start_row: u32,
}

/// The plan of a hall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Which plan.
    pub id: LayoutId,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// How many seats it has.
    pub total_seats: u32,
    /// Its blocks.
    pub sections: Vec<Section>,
}

/// Every plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layouts {
    /// Smallest hall first.
    pub layouts: Vec<Layout>,
}

/// What makes a ticket type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewTicketType {
    /// Its name.
    pub name: String,
    /// What one costs.
    pub price: Krw,
    /// How many there are.
    pub total_quantity: u32,
    /// What it includes.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<String>")]
    pub description: String,
}

/// What makes an event: a layout for a seated one, ticket types for a standing one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateEvent {
    /// Its name.
    pub title: String,
    /// What it is.
    #[serde(default)]
    pub description: Option<String>,
    /// Where.
    pub venue: String,
    /// Street address.
    #[serde(default)]
    pub address: Option<String>,
    /// Who performs.
    #[serde(default)]
    pub artist_name: Option<String>,
    /// When the performance begins.
    #[serde(rename = "eventDate")]
    pub event_at: Timestamp,
    /// When the sale begins.
    #[serde(rename = "saleStartDate")]
    pub sale_start_at: Timestamp,
    /// When the sale ends.
    #[serde(rename = "saleEndDate")]
    pub sale_end_at: Timestamp,
    /// Address of a picture.
    #[serde(default)]
    pub poster_image_url: Option<String>,
    /// The hall's plan, for a seated event.
    #[serde(default, rename = "seatLayoutId")]
    pub layout: Option<LayoutId>,
    /// Kinds of admission, for a standing event.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<NewTicketType>>")]
    pub ticket_types: Vec<NewTicketType>,
    /// Seats per reservation, unless the default fits.
    #[serde(default)]
    pub max_seats_per_reservation: Option<u32>,
    /// Seats per buyer, unless the default fits.
    #[serde(default)]
    pub max_seats_per_user: Option<u32>,
}

/// Forms send `null` for what was left empty.
fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    value: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}
