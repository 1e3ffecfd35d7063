//! Events, their sale windows, and the seats of their halls.

mod error;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use urr_kernel::{EventId, Krw, LayoutId, SeatId, TicketTypeId, Timestamp};
use urr_rpc::service;

pub use error::Error;

/// Events per page.
pub const MAX_EVENTS_PER_PAGE: u32 = 100;
/// Seats per page. At about 150 bytes of JSON each, a page stays under 1.5 MB.
pub const MAX_SEATS_PER_PAGE: u32 = 10_000;
/// Seats per lookup: far more than the [`MAX_SEATS_SETTING`] of a reservation.
pub const MAX_SEATS_PER_LOOKUP: usize = 64;
/// Upper bound of an event's seat limits. Larger groups book by telephone.
pub const MAX_SEATS_SETTING: u32 = 10;

service! {
    /// Events, sale windows and seats.
    pub trait Catalog as "catalog" -> Error {
        /// Returns the sale window and limits of an event.
        @idempotent async fn sale(SaleOf) -> Sale;
        /// Returns one page of an event's seats in the order of the seat plan. Seats never change.
        @idempotent async fn seats(SeatsOf) -> SeatsPage;
        /// Returns the event of each given seat. Unknown seats are omitted.
        @idempotent async fn find_seats(FindSeats) -> FoundSeats;
        /// Returns one page of events, earliest sale start first.
        @idempotent async fn events(ListEvents) -> EventsPage;
        /// Returns one event.
        @idempotent async fn event(EventOf) -> EventDetail;
        /// Returns the halls an event can be created in. Admins only.
        @idempotent async fn layouts(ListLayouts) -> Layouts;
        /// Creates an event with all of its seats or ticket types. Admins only.
        async fn create_event(CreateEvent) -> EventDetail;
        /// Cancels an event permanently. Admins only.
        @idempotent async fn cancel_event(CancelEvent) -> EventDetail;
    }
}

/// Status of an event. Computed from its sale window and the clock; only `cancelled` is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventStatus {
    /// The sale has not started.
    Upcoming,
    /// The sale is open.
    OnSale,
    /// The sale or the performance is over.
    Ended,
    /// The event was cancelled.
    Cancelled,
}

/// Requests [`Sale`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SaleOf {
    /// The event.
    pub event: EventId,
}

/// Sale window and limits of an event.
#[expect(clippy::struct_field_names, reason = "its times have the same names in every request and answer")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    /// The event.
    pub event: EventId,
    /// Details printed on a ticket.
    pub card: EventCard,
    /// Whether the event was cancelled.
    pub cancelled: bool,
    /// Start of the sale, inclusive.
    pub sale_start_at: Timestamp,
    /// End of the sale, exclusive.
    pub sale_end_at: Timestamp,
    /// Maximum seats per reservation.
    pub max_seats_per_reservation: u32,
    /// Maximum seats a buyer may hold at a time.
    pub max_seats_per_user: u32,
    /// Number of seats of the hall; zero for a standing event.
    pub seats: u32,
}

/// Details of an event printed on a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCard {
    /// Name.
    pub title: String,
    /// Name of the venue.
    pub venue: String,
    /// Street address of the venue.
    pub address: Option<String>,
    /// Start of the performance.
    pub event_at: Timestamp,
}

/// Requests one page of seats.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SeatsOf {
    /// The event.
    pub event: EventId,
    /// Ordinal of the first requested seat, from 0.
    pub from: u32,
}

/// One seat of a hall, as sold for one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The seat.
    pub id: SeatId,
    /// Section of the hall.
    pub section: String,
    /// Price grade.
    pub grade: String,
    /// Row within the hall.
    pub row: u32,
    /// Number within the row.
    pub number: u32,
    /// Label printed on the ticket, such as `VIP-1-7`.
    pub label: String,
    /// Price.
    pub price: Krw,
}

/// One page of seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatsPage {
    /// At most [`MAX_SEATS_PER_PAGE`] seats.
    pub seats: Vec<Seat>,
    /// Ordinal of the first seat of the next page, if there is one.
    pub next: Option<u32>,
}

/// Requests the events of seats.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindSeats {
    /// At most [`MAX_SEATS_PER_LOOKUP`].
    pub seats: Vec<SeatId>,
}

/// Events of seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSeats {
    /// Known seats with their events.
    pub seats: Vec<(SeatId, EventId)>,
}

/// Requests one page of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEvents {
    /// Only events with this status.
    pub status: Option<EventStatus>,
    /// Only events whose title, artist, venue or address contains this text.
    pub search: Option<String>,
    /// From 1.
    pub page: u32,
    /// 1 to [`MAX_EVENTS_PER_PAGE`].
    pub limit: u32,
}

/// Requests one event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EventOf {
    /// The event.
    pub event: EventId,
}

/// Cancels an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CancelEvent {
    /// The event.
    pub event: EventId,
}

/// One event in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSummary {
    /// The event.
    pub id: EventId,
    /// Name.
    pub title: String,
    /// Description in a few sentences.
    pub description: Option<String>,
    /// Name of the venue.
    pub venue: String,
    /// Street address of the venue.
    pub address: Option<String>,
    /// Name of the artist.
    pub artist_name: Option<String>,
    /// Start of the performance.
    pub event_at: Timestamp,
    /// Start of the sale.
    pub sale_start_at: Timestamp,
    /// End of the sale.
    pub sale_end_at: Timestamp,
    /// URL of the poster.
    pub poster_image_url: Option<String>,
    /// Status by the server's clock.
    pub status: EventStatus,
    /// Seat plan; `None` for a standing event.
    pub layout: Option<LayoutId>,
    /// Lowest price of a seat or ticket type.
    pub min_price: Option<Krw>,
    /// Highest price of a seat or ticket type.
    pub max_price: Option<Krw>,
    /// Number of ticket types; zero for a seated event.
    pub ticket_type_count: u32,
    /// Number of seats, or of tickets of all types.
    pub places: u32,
    /// Places covered by active reservations. Eventually consistent: for display, not for
    /// decisions.
    pub places_reserved: u32,
}

/// One page of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsPage {
    /// The events.
    pub events: Vec<EventSummary>,
    /// From 1.
    pub page: u32,
    /// Requested size of a page.
    pub limit: u32,
    /// Number of events on all pages.
    pub total: u32,
}

/// A ticket type of a standing event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketType {
    /// Id of the ticket type.
    pub id: TicketTypeId,
    /// Name.
    pub name: String,
    /// Price of one ticket.
    pub price: Krw,
    /// Number of tickets.
    pub total_quantity: u32,
    /// What it includes.
    pub description: String,
}

/// One event with all public details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventDetail {
    /// The event.
    pub event: EventSummary,
    /// Maximum seats per reservation.
    pub max_seats_per_reservation: u32,
    /// Maximum seats a buyer may hold at a time.
    pub max_seats_per_user: u32,
    /// Ticket types, most expensive first.
    pub ticket_types: Vec<TicketType>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Requests all layouts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ListLayouts {}

/// One section of a hall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Name of the section.
    pub name: String,
    /// Price grade; the name of the section if absent.
    #[serde(default)]
    pub grade: Option<String>,
    /// Number of rows.
    pub rows: u32,
    /// Seats in each row.
    pub seats_per_row: u32,
    /// Price of each seat.
    pub price: Krw,
    /// Number of the first row.
    pub start_row: u32,
}

/// Seat plan of a hall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Id of the layout.
    pub id: LayoutId,
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Number of seats.
    pub total_seats: u32,
    /// Sections of the hall.
    pub sections: Vec<Section>,
}

/// All layouts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layouts {
    /// Smallest hall first.
    pub layouts: Vec<Layout>,
}

/// A new ticket type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewTicketType {
    /// Name.
    pub name: String,
    /// Price of one ticket.
    pub price: Krw,
    /// Number of tickets.
    pub total_quantity: u32,
    /// What it includes.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<String>")]
    pub description: String,
}

/// A new event, with a layout if it is seated or with ticket types if it is standing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateEvent {
    /// Name.
    pub title: String,
    /// Description.
    #[serde(default)]
    pub description: Option<String>,
    /// Name of the venue.
    pub venue: String,
    /// Street address.
    #[serde(default)]
    pub address: Option<String>,
    /// Name of the artist.
    #[serde(default)]
    pub artist_name: Option<String>,
    /// Start of the performance.
    #[serde(rename = "eventDate")]
    pub event_at: Timestamp,
    /// Start of the sale.
    #[serde(rename = "saleStartDate")]
    pub sale_start_at: Timestamp,
    /// End of the sale.
    #[serde(rename = "saleEndDate")]
    pub sale_end_at: Timestamp,
    /// URL of the poster.
    #[serde(default)]
    pub poster_image_url: Option<String>,
    /// Seat plan, for a seated event.
    #[serde(default, rename = "seatLayoutId")]
    pub layout: Option<LayoutId>,
    /// Ticket types, for a standing event.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<NewTicketType>>")]
    pub ticket_types: Vec<NewTicketType>,
    /// Maximum seats per reservation; a default if absent.
    #[serde(default)]
    pub max_seats_per_reservation: Option<u32>,
    /// Maximum seats per buyer; a default if absent.
    #[serde(default)]
    pub max_seats_per_user: Option<u32>,
}

/// Treats `null` as absent: forms send it for empty fields.
fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    value: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}
