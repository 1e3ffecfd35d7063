//! Seats, holds and reservations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{EventId, Krw, ReservationId, SeatId, Timestamp, UserId};
use urr_rpc::{Kind, ServiceError, service};

use crate::catalog::EventCard;

/// Reservations one page may list.
pub const MAX_RESERVATIONS_PER_PAGE: u32 = 100;

/// Where facts about reservations are published, keyed by reservation id.
pub const RESERVATION_EVENTS: &str = "reservation-events";

service! {
    /// Seats, holds and reservations.
    pub trait Tickets as "tickets" -> Error {
        /// Holds every named seat for the calling user, or none of them.
        async fn hold(HoldSeats) -> Reservation;
        /// Gives a pending reservation's seats back.
        @idempotent async fn release(ReleaseHold) -> Reservation;
        /// One of the calling user's reservations.
        @idempotent async fn reservation(ReservationOf) -> Reservation;
        /// The calling user's reservations, newest first.
        @idempotent async fn reservations(ListReservations) -> Reservations;
        /// The state of every seat of an event.
        @idempotent async fn seat_map(SeatMapOf) -> SeatMap;
    }
}

/// Where a reservation is in its life. Each change is one conditional update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReservationStatus {
    /// Holds its seats and waits for payment.
    Pending,
    /// A payment is under way: its seats are never given away.
    Paying,
    /// Paid.
    Confirmed,
    /// The hold ran out.
    Expired,
    /// The buyer gave it up.
    Cancelled,
    /// The money is on its way back.
    Refunding,
    /// The money is back.
    Refunded,
}

/// What a fan sees of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeatStatus {
    /// Can be held.
    Available,
    /// Somebody holds it and may yet give it up.
    Locked,
    /// Sold.
    Reserved,
}

/// Holds seats for the calling user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldSeats {
    /// Which event.
    pub event: EventId,
    /// Which seats, without repeats.
    pub seats: Vec<SeatId>,
    /// Makes a repeat of the same request get the same answer. Scoped to the user.
    pub idempotency_key: Option<String>,
}

/// Gives a hold up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseHold {
    /// Which reservation.
    pub reservation: ReservationId,
}

/// Asks for one reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationOf {
    /// Which reservation.
    pub reservation: ReservationId,
}

/// Asks for a page of the caller's reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReservations {
    /// Only those older than this one: the last of the page before.
    pub before: Option<ReservationId>,
    /// 1 to [`MAX_RESERVATIONS_PER_PAGE`].
    pub limit: u32,
}

/// A page of reservations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservations {
    /// Newest first.
    pub reservations: Vec<Reservation>,
}

/// One buyer's claim on seats, with the prices it was made at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Which reservation.
    pub id: ReservationId,
    /// What people read to each other on the phone.
    pub number: String,
    /// Whose it is.
    pub user: UserId,
    /// For which event.
    pub event: EventId,
    /// What its ticket says about the event, as it was when the reservation was made.
    pub card: EventCard,
    /// Where it is in its life.
    pub status: ReservationStatus,
    /// Sum of the seats' frozen prices.
    pub total: Krw,
    /// When the hold ends, while it is pending.
    pub expires_at: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its seats, in id order.
    pub seats: Vec<ReservedSeat>,
}

/// A seat as it was when the reservation was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedSeat {
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
    /// What stands on the ticket.
    pub label: String,
    /// Frozen price.
    pub price: Krw,
    /// The claim's number on this seat.
    pub fence: i64,
}

/// Asks for the map of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatMapOf {
    /// Which event.
    pub event: EventId,
}

/// Every seat of an event with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatMap {
    /// Which event.
    pub event: EventId,
    /// Its name.
    pub title: String,
    /// Changes whenever any seat's state does.
    pub version: String,
    /// In the order of the hall.
    pub seats: Vec<MapSeat>,
}

/// One seat on the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MapSeat {
    /// Which seat.
    pub id: SeatId,
    /// Block of the hall.
    pub section: String,
    /// Price class.
    pub grade: String,
    /// Row within the hall.
    pub row_number: u32,
    /// Number within the row.
    pub seat_number: u32,
    /// What stands on the ticket.
    pub seat_label: String,
    /// What it costs.
    pub price: Krw,
    /// Whether it can be held.
    pub status: SeatStatus,
}

/// A fact about a reservation, published on [`RESERVATION_EVENTS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum ReservationFact {
    /// Seats are held for a buyer.
    ReservationCreated {
        /// Which reservation.
        reservation_id: ReservationId,
        /// Whose.
        user_id: UserId,
        /// For which concert.
        event_id: EventId,
        /// What it costs.
        total_amount: Krw,
        /// How many seats.
        seat_count: u32,
        /// When the hold ends.
        expires_at: Timestamp,
    },
    /// The seats are free again.
    ReservationCancelled {
        /// Which reservation.
        reservation_id: ReservationId,
        /// Whose.
        user_id: UserId,
        /// For which concert.
        event_id: EventId,
        /// How many seats.
        seat_count: u32,
        /// Why.
        reason: CancelReason,
    },
}

impl ReservationFact {
    /// The value of the `type` field.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ReservationCreated { .. } => "RESERVATION_CREATED",
            Self::ReservationCancelled { .. } => "RESERVATION_CANCELLED",
        }
    }

    /// Which reservation the fact is about: the message's key, so that its facts stay in order.
    pub const fn reservation(&self) -> ReservationId {
        match self {
            Self::ReservationCreated { reservation_id, .. }
            | Self::ReservationCancelled { reservation_id, .. } => *reservation_id,
        }
    }
}

/// Why a reservation gave its seats back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The hold ran out.
    Expired,
    /// The buyer asked for it.
    User,
}

/// Why tickets refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// The list of seats is empty.
    #[error("Please select at least one seat")]
    NoSeats,
    /// More seats than one reservation may hold.
    #[error("At most {max} seats can be reserved together")]
    TooManySeats {
        /// How many may be.
        max: u32,
    },
    /// A seat is named twice.
    #[error("A seat was selected twice")]
    DuplicateSeats {
        /// Which ones.
        seats: Vec<SeatId>,
    },
    /// No such event.
    #[error("There is no such event")]
    EventNotFound,
    /// The event was called off.
    #[error("This event has been cancelled")]
    EventCancelled,
    /// A standing event.
    #[error("This event does not have seat selection")]
    NoSeatMap,
    /// Too early.
    #[error("The sale opens at {opens_at}")]
    SaleNotOpen {
        /// From when on seats can be held.
        opens_at: Timestamp,
    },
    /// Too late.
    #[error("The sale ended at {ended_at}")]
    SaleEnded {
        /// Until when seats could be held.
        ended_at: Timestamp,
    },
    /// Seats that do not exist.
    #[error("A selected seat does not exist")]
    SeatsNotFound {
        /// Which ones.
        seats: Vec<SeatId>,
    },
    /// Seats that exist, but elsewhere.
    #[error("A selected seat belongs to another event")]
    SeatsOfAnotherEvent {
        /// Which ones.
        seats: Vec<SeatId>,
    },
    /// Somebody was faster.
    #[error("A selected seat was just taken by somebody else; please choose another one")]
    SeatsTaken {
        /// Which ones.
        seats: Vec<SeatId>,
    },
    /// The buyer would hold more than the event allows.
    #[error("You can hold at most {max} seats of this event at a time")]
    UserLimit {
        /// How many may be held.
        max: u32,
        /// How many are held already.
        held: u32,
    },
    /// The key is empty, too long or not printable.
    #[error("An idempotency key has 1 to 64 printable ASCII characters")]
    BadIdempotencyKey,
    /// The request has several keys, in headers or in the body, and they differ.
    #[error("The request has two different idempotency keys")]
    IdempotencyKeysDiffer,
    /// The key was used for another request.
    #[error("This idempotency key was already used for a different request")]
    IdempotencyKeyReused,
    /// No such reservation, or not the caller's.
    #[error("Reservation not found")]
    ReservationNotFound,
    /// The reservation can no longer be given up.
    #[error("This reservation can no longer be released")]
    NotPending {
        /// Where it is now.
        current: ReservationStatus,
    },
    /// Nobody is signed in.
    #[error("Please sign in first")]
    SignInRequired,
    /// A page size out of range.
    #[error("A page has 1 to {max} reservations")]
    BadPage {
        /// The most one page may list.
        max: u32,
    },
    /// Something below is down.
    #[error("Tickets are not available at the moment; please try again")]
    Unavailable,
    /// A bug.
    #[error("Something went wrong on our side")]
    Internal,
}

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
            Self::SignInRequired => Kind::Unauthenticated,
            Self::Unavailable => Kind::Unavailable,
            Self::Internal => Kind::Internal,
        }
    }

    fn unavailable() -> Self {
        Self::Unavailable
    }
}
