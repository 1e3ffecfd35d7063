//! Seats, holds and reservations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{CommonError, EventId, Krw, Refusal, ReservationId, SeatId, Timestamp, UserId, fact};
use urr_rpc::{Kind, ServiceError, service};

use crate::catalog::EventCard;

/// Reservations per page.
pub const MAX_RESERVATIONS_PER_PAGE: u32 = 100;

/// Topic of facts about reservations, keyed by reservation id.
pub const RESERVATION_EVENTS: &str = "reservation-events";

service! {
    /// Seats, holds and reservations.
    pub trait Tickets as "tickets" -> Error {
        /// Holds all of the given seats for the calling user, or none of them.
        async fn hold(HoldSeats) -> Reservation;
        /// Releases the seats of a pending reservation.
        @idempotent async fn release(ReleaseHold) -> Reservation;
        /// Returns one reservation of the calling user.
        @idempotent async fn reservation(ReservationOf) -> Reservation;
        /// Returns the reservations of the calling user, newest first.
        @idempotent async fn reservations(ListReservations) -> Reservations;
        /// Returns the state of every seat of an event.
        @idempotent async fn seat_map(SeatMapOf) -> SeatMap;
    }
}

/// Status of a reservation. Each transition is one conditional update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReservationStatus {
    /// Seats are held until paid or expired.
    Pending,
    /// A payment is in progress; the seats do not expire.
    Paying,
    /// Paid.
    Confirmed,
    /// The hold expired.
    Expired,
    /// The buyer cancelled.
    Cancelled,
    /// A refund is in progress.
    Refunding,
    /// The refund is complete.
    Refunded,
}

/// Public status of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeatStatus {
    /// Free.
    Available,
    /// Held or being paid for; may become free again.
    Locked,
    /// Sold.
    Reserved,
}

/// Holds seats for the calling user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldSeats {
    /// The event.
    pub event: EventId,
    /// The seats, without duplicates.
    pub seats: Vec<SeatId>,
    /// A retry with the same key gets the reservation made with it, in its current state. Scoped to
    /// the user.
    pub idempotency_key: Option<String>,
}

/// Releases a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseHold {
    /// The reservation.
    pub reservation: ReservationId,
}

/// Requests one reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationOf {
    /// The reservation.
    pub reservation: ReservationId,
}

/// Requests one page of the caller's reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReservations {
    /// Only reservations older than this one: the last of the previous page.
    pub before: Option<ReservationId>,
    /// 1 to [`MAX_RESERVATIONS_PER_PAGE`].
    pub limit: u32,
}

/// One page of reservations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservations {
    /// Newest first.
    pub reservations: Vec<Reservation>,
}

/// One buyer's claim on seats, with the prices at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Id of the reservation.
    pub id: ReservationId,
    /// Human-readable reservation number.
    pub number: String,
    /// The buyer.
    pub user: UserId,
    /// The event.
    pub event: EventId,
    /// Details of the event printed on the ticket, as of the time of the reservation.
    pub card: EventCard,
    /// Status of the reservation.
    pub status: ReservationStatus,
    /// Sum of the seat prices.
    pub total: Krw,
    /// Expiry of the hold, while it is pending.
    pub expires_at: Timestamp,
    /// Creation time.
    pub created_at: Timestamp,
    /// The seats, in id order.
    pub seats: Vec<ReservedSeat>,
}

/// A seat as of the time of the reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedSeat {
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
    /// Label printed on the ticket.
    pub label: String,
    /// Price at the time of the reservation.
    pub price: Krw,
    /// Fence of this claim on the seat.
    pub fence: i64,
}

/// Requests the seat map of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatMapOf {
    /// The event.
    pub event: EventId,
}

/// Every seat of an event with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatMap {
    /// The event.
    pub event: EventId,
    /// Name.
    pub title: String,
    /// Changes whenever the status of any seat changes.
    pub version: String,
    /// In the order of the seat plan.
    pub seats: Vec<MapSeat>,
}

/// One seat on the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MapSeat {
    /// The seat.
    pub id: SeatId,
    /// Section of the hall.
    pub section: String,
    /// Price grade.
    pub grade: String,
    /// Row within the hall.
    pub row_number: u32,
    /// Number within the row.
    pub seat_number: u32,
    /// Label printed on the ticket.
    pub seat_label: String,
    /// Price.
    pub price: Krw,
    /// Public status.
    pub status: SeatStatus,
}

/// A fact about a reservation, published on [`RESERVATION_EVENTS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum ReservationFact {
    /// Seats are held for a buyer.
    #[serde(rename = "RESERVATION_CREATED")]
    Created {
        /// The reservation.
        reservation_id: ReservationId,
        /// The user.
        user_id: UserId,
        /// The event.
        event_id: EventId,
        /// Total price.
        total_amount: Krw,
        /// Number of seats.
        seat_count: u32,
        /// Expiry of the hold.
        expires_at: Timestamp,
    },
    /// The reservation was paid.
    #[serde(rename = "RESERVATION_CONFIRMED")]
    Confirmed {
        /// The reservation.
        reservation_id: ReservationId,
        /// The user.
        user_id: UserId,
        /// The event.
        event_id: EventId,
        /// The amount paid.
        total_amount: Krw,
        /// How it was paid.
        payment_method: String,
    },
    /// The reservation ended and its seats are free again.
    #[serde(rename = "RESERVATION_CANCELLED")]
    Cancelled {
        /// The reservation.
        reservation_id: ReservationId,
        /// The user.
        user_id: UserId,
        /// The event.
        event_id: EventId,
        /// Number of seats.
        seat_count: u32,
        /// Reason.
        reason: CancelReason,
    },
}

fact! {
    ReservationFact on RESERVATION_EVENTS by reservation_id {
        Created = "RESERVATION_CREATED",
        Confirmed = "RESERVATION_CONFIRMED",
        Cancelled = "RESERVATION_CANCELLED",
    }
}

/// Why a reservation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The hold expired.
    Expired,
    /// The buyer cancelled.
    User,
}

/// Errors of tickets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// No seats were given.
    #[error("Please select at least one seat")]
    NoSeats,
    /// More seats than one reservation may have.
    #[error("At most {max} seats can be reserved together")]
    TooManySeats {
        /// Maximum seats per reservation.
        max: u32,
    },
    /// A seat was given twice.
    #[error("A seat was selected twice")]
    DuplicateSeats {
        /// The seats.
        seats: Vec<SeatId>,
    },
    /// The event does not exist.
    #[error("There is no such event")]
    EventNotFound,
    /// The event was cancelled.
    #[error("This event has been cancelled")]
    EventCancelled,
    /// The event is standing and has no seats.
    #[error("This event does not have seat selection")]
    NoSeatMap,
    /// The sale has not started.
    #[error("The sale opens at {opens_at}")]
    SaleNotOpen {
        /// Start of the sale.
        opens_at: Timestamp,
    },
    /// The sale has ended.
    #[error("The sale ended at {ended_at}")]
    SaleEnded {
        /// End of the sale.
        ended_at: Timestamp,
    },
    /// The seats do not exist.
    #[error("A selected seat does not exist")]
    SeatsNotFound {
        /// The seats.
        seats: Vec<SeatId>,
    },
    /// The seats belong to another event.
    #[error("A selected seat belongs to another event")]
    SeatsOfAnotherEvent {
        /// The seats.
        seats: Vec<SeatId>,
    },
    /// Another buyer holds or has bought the seats.
    #[error("A selected seat was just taken by somebody else; please choose another one")]
    SeatsTaken {
        /// The seats.
        seats: Vec<SeatId>,
    },
    /// The buyer would exceed the seat limit of the event.
    #[error("You can hold at most {max} seats of this event at a time")]
    UserLimit {
        /// Maximum seats per buyer.
        max: u32,
        /// Seats the buyer already holds.
        held: u32,
    },
    /// The key is empty, too long or not printable.
    #[error("An idempotency key has 1 to 64 printable ASCII characters")]
    BadIdempotencyKey,
    /// The request has several different keys, in headers or in the body.
    #[error("The request has two different idempotency keys")]
    IdempotencyKeysDiffer,
    /// The key was already used for another request.
    #[error("This idempotency key was already used for a different request")]
    IdempotencyKeyReused,
    /// The reservation does not exist or belongs to another user.
    #[error("Reservation not found")]
    ReservationNotFound,
    /// The reservation is not pending, so it cannot be released.
    #[error("This reservation can no longer be released")]
    NotPending {
        /// Current status.
        current: ReservationStatus,
    },
    /// The page size is out of range.
    #[error("A page has 1 to {max} reservations")]
    BadPage {
        /// Maximum page size.
        max: u32,
    },
    /// An error of every service.
    #[error(transparent)]
    #[serde(untagged)]
    Common(#[from] CommonError),
}

impl Refusal for Error {}

impl ServiceError for Error {
    const DOMAIN: &'static str = "tickets";

    fn kind(&self) -> Kind {
        match self {
            Self::NoSeats
            | Self::TooManySeats { .. }
            | Self::DuplicateSeats { .. }
            | Self::SeatsOfAnotherEvent { .. }
            | Self::BadIdempotencyKey
            | Self::IdempotencyKeysDiffer
            | Self::BadPage { .. } => Kind::Invalid,
            Self::EventNotFound
            | Self::NoSeatMap
            | Self::SeatsNotFound { .. }
            | Self::ReservationNotFound => Kind::NotFound,
            Self::EventCancelled
            | Self::SaleNotOpen { .. }
            | Self::SaleEnded { .. }
            | Self::SeatsTaken { .. }
            | Self::UserLimit { .. }
            | Self::NotPending { .. } => Kind::Conflict,
            Self::IdempotencyKeyReused => Kind::Unprocessable,
            Self::Common(error) => (*error).into(),
        }
    }
}
