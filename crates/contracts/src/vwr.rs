//! Tier 1 of the waiting room: a line in front of the whole site, before sign-in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{CommonError, EventId, Refusal, Timestamp, VisitorId};
use urr_rpc::{Kind, ServiceError, service};

/// Highest admission rate of a room, per second.
pub const MAX_RATE: u32 = 1_000_000;

/// Most visitors an operator may admit at once.
pub const MAX_BATCH: u32 = 1_000_000;

service! {
    /// Tier 1: a line in front of the whole site.
    pub trait Vwr as "vwr" -> Error {
        /// Returns the browser's place in line, or assigns the next one.
        async fn assign(Assign) -> Assigned;
        /// Returns whether a ticket is admitted.
        @idempotent async fn check(CheckTicket) -> Checked;
        /// Returns one room.
        @idempotent async fn room(RoomOf) -> Room;
        /// Returns all rooms that are open or were open within the last day, for the guards.
        @idempotent async fn rooms(ListRooms) -> Rooms;
        /// Executes an operator's order.
        async fn order(GiveOrder) -> Ordered;
        /// Returns operator actions in a room, newest first.
        @idempotent async fn actions(ActionsOf) -> Actions;
    }
}

/// Requests a place in line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// Event of the room.
    pub event: EventId,
    /// Id of the browser.
    pub visitor: VisitorId,
    /// The browser's current ticket, if any.
    pub ticket: Option<String>,
}

/// An assigned place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// Signed ticket, stored by the browser.
    pub ticket: String,
    /// State of the place.
    pub place: PositionStatus,
}

/// State of a place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionStatus {
    /// Position, from 1, since the room was opened.
    pub position: u64,
    /// Highest admitted position.
    pub serving: u64,
    /// Highest assigned position.
    pub tail: u64,
    /// Number of visitors ahead.
    pub ahead: u64,
    /// Estimated wait in seconds. Always one hour while admissions are stopped.
    pub wait_secs: u64,
    /// Range of the wait, once it has been measured.
    pub range: Option<WaitRange>,
    /// Seconds until the next poll.
    pub next_poll_secs: u64,
    /// Whether admissions are paused.
    pub paused: bool,
}

/// Range of a wait, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitRange {
    /// Lower bound.
    pub low: u64,
    /// Upper bound.
    pub high: u64,
}

/// Presents a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckTicket {
    /// Event of the room.
    pub event: EventId,
    /// The browser's ticket.
    pub ticket: String,
    /// Id of the browser.
    pub visitor: Option<VisitorId>,
    /// The browser's current pass, if any.
    pub pass: Option<String>,
}

/// Result of [`CheckTicket`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Checked {
    /// Still waiting.
    Waiting {
        /// State of the place.
        place: PositionStatus,
    },
    /// Admitted.
    Admitted {
        /// State of the place.
        place: PositionStatus,
        /// The Tier 1 pass.
        token: String,
        /// Expiry of the pass.
        expires_at: Timestamp,
    },
}

/// Requests one room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomOf {
    /// Event of the room.
    pub event: EventId,
}

/// Requests all rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRooms {}

/// All rooms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rooms {
    /// Rooms that are open or were open within the last day.
    pub rooms: Vec<Room>,
}

/// State of an event's room, at most a second old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Event of the room.
    pub event: EventId,
    /// Number of this opening. Places of earlier openings are invalid.
    pub epoch: u64,
    /// Time of this opening.
    pub opened_at: Timestamp,
    /// Whether visitors have to wait.
    pub active: bool,
    /// Whether admissions are paused.
    pub paused: bool,
    /// Admissions per second.
    pub rate: u32,
    /// Whether all visitors are admitted while the store is unreachable.
    pub fail_open: bool,
    /// Highest assigned position.
    pub tail: u64,
    /// Highest admitted position. Never above `tail`, and never decreases.
    pub serving: u64,
}

impl Room {
    /// Number of waiting visitors.
    pub const fn waiting(&self) -> u64 {
        self.tail.saturating_sub(self.serving)
    }
}

/// An operator's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiveOrder {
    /// Event of the room.
    pub event: EventId,
    /// The order.
    pub order: Order,
}

/// Orders an operator can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Opens the room. If it is already open, changes only the given settings.
    Activate {
        /// Admissions per second; unchanged, or the default, if absent.
        rate: Option<u32>,
        /// Admit all visitors while the store is unreachable; unchanged, or `false`, if absent.
        fail_open: Option<bool>,
    },
    /// Closes the room: visitors no longer wait.
    Deactivate,
    /// Admits more visitors at once.
    Advance {
        /// Number of visitors.
        batch: u32,
    },
    /// Changes the admission rate.
    Rate {
        /// Admissions per second.
        rate: u32,
    },
    /// Pauses admissions.
    Pause,
    /// Resumes admissions.
    Resume,
}

/// Result of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The room after the order.
    pub room: Room,
    /// Number of visitors admitted by it.
    pub advanced: u64,
}

/// Requests operator actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionsOf {
    /// Event of the room.
    pub event: EventId,
    /// Maximum number of actions, at most 100.
    pub limit: u32,
}

/// Operator actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actions {
    /// Newest first.
    pub actions: Vec<Action>,
}

/// One operator action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrAction")]
pub struct Action {
    /// Time of the action.
    pub at: Timestamp,
    /// The operator; `None` for the platform itself.
    pub actor: Option<urr_kernel::UserId>,
    /// Kind of action.
    pub what: String,
    /// Its number, if it has one.
    pub number: Option<i64>,
}

/// Errors of Tier 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// The event has never had a room.
    #[error("VWR not found for this event")]
    RoomNotFound,
    /// The room is closed: visitors do not wait.
    #[error("VWR is not active for this event")]
    NotActive,
    /// The ticket is invalid or expired, for another event, or from an earlier opening.
    #[error("Position not found. Request a new position.")]
    PositionNotFound,
    /// The ticket was assigned to another browser.
    #[error("This place in line belongs to another browser")]
    NotYourPlace,
    /// The rate is out of range.
    #[error("A rate is at most {max} people per second")]
    BadRate {
        /// Highest rate.
        max: u32,
    },
    /// The batch is out of range.
    #[error("A batch has 1 to {max} people")]
    BadBatch {
        /// Largest batch.
        max: u32,
    },
    /// An error of every service.
    #[error(transparent)]
    #[serde(untagged)]
    Common(#[from] CommonError),
}

impl Refusal for Error {}

impl ServiceError for Error {
    const DOMAIN: &'static str = "vwr";

    fn kind(&self) -> Kind {
        match self {
            Self::RoomNotFound | Self::NotActive | Self::PositionNotFound => Kind::NotFound,
            Self::NotYourPlace => Kind::Forbidden,
            Self::BadRate { .. } | Self::BadBatch { .. } => Kind::Invalid,
            Self::Common(error) => (*error).into(),
        }
    }
}
