//! Tier 1 of the waiting room: the line in front of everything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{EventId, Timestamp, VisitorId};
use urr_rpc::{Kind, ServiceError, service};

/// The most people a second that a room may let on.
pub const MAX_RATE: u32 = 1_000_000;

/// The most people that an operator may let on at once.
pub const MAX_BATCH: u32 = 1_000_000;

service! {
    /// The line in front of everything.
    pub trait Vwr as "vwr" -> Error {
        /// A place in line for a browser: the one it has, or the next.
        async fn assign(Assign) -> Assigned;
        /// Whether it is a ticket's turn.
        @idempotent async fn check(CheckTicket) -> Checked;
        /// One room.
        @idempotent async fn room(RoomOf) -> Room;
        /// Every room that is open or was a day ago: what guards go by.
        @idempotent async fn rooms(ListRooms) -> Rooms;
        /// Carries out what an operator decided.
        async fn order(GiveOrder) -> Ordered;
        /// What operators decided about a room, newest first.
        @idempotent async fn actions(ActionsOf) -> Actions;
    }
}

/// Asks for a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// In which line.
    pub event: EventId,
    /// For which browser.
    pub visitor: VisitorId,
    /// The ticket it may have already.
    pub ticket: Option<String>,
}

/// A place was given, or was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// What the browser keeps.
    pub ticket: String,
    /// How it stands.
    pub place: Place,
}

/// How somebody stands in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Counted from one, since the room was opened.
    pub position: u64,
    /// How far people have been let on.
    pub serving: u64,
    /// How many places were given.
    pub tail: u64,
    /// How many are before them.
    pub ahead: u64,
    /// How long that takes, in seconds. An hour, which means nothing, while nobody is let on.
    pub wait_secs: u64,
    /// Between how long and how long, once it has been measured.
    pub range: Option<WaitRange>,
    /// When to ask again, in seconds.
    pub next_poll_secs: u64,
    /// Nobody is let on at the moment.
    pub paused: bool,
}

/// A wait in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitRange {
    /// If it goes well.
    pub low: u64,
    /// If it does not.
    pub high: u64,
}

/// Shows a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckTicket {
    /// In which line.
    pub event: EventId,
    /// What the browser was given.
    pub ticket: String,
    /// Which browser it is.
    pub visitor: Option<VisitorId>,
    /// The pass it may have already.
    pub pass: Option<String>,
}

/// Whether it is somebody's turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Checked {
    /// Not yet.
    Waiting {
        /// How they stand.
        place: Place,
    },
    /// Come in.
    Admitted {
        /// How they stood.
        place: Place,
        /// The Tier 1 pass.
        token: String,
        /// Until when it is good.
        expires_at: Timestamp,
    },
}

/// Asks for one room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomOf {
    /// Of which event.
    pub event: EventId,
}

/// Asks for all rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRooms {}

/// All rooms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rooms {
    /// Open ones, and those that were a day ago.
    pub rooms: Vec<Room>,
}

/// A room in front of an event, as it is or was at most a second ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Of which event.
    pub event: EventId,
    /// Which opening this is. Places of an earlier one are void.
    pub epoch: u64,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Whether anybody has to wait.
    pub active: bool,
    /// Whether nobody is let on.
    pub paused: bool,
    /// How many are let on per second.
    pub rate: u32,
    /// Whether everybody comes in while the store does not answer.
    pub fail_open: bool,
    /// How many places were given.
    pub tail: u64,
    /// Up to which place people were let on. Never more than `tail`, and never less than before.
    pub serving: u64,
}

impl Room {
    /// How many wait.
    pub const fn waiting(&self) -> u64 {
        self.tail.saturating_sub(self.serving)
    }
}

/// An operator's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiveOrder {
    /// About which event's room.
    pub event: EventId,
    /// What.
    pub order: Order,
}

/// What an operator may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// From now on people wait. A room that is open stays as it is, apart from what is said here.
    Activate {
        /// How many per second; as before, or the default, if nothing is said.
        rate: Option<u32>,
        /// Whether everybody comes in while the store does not answer; as before, or not.
        fail_open: Option<bool>,
    },
    /// From now on nobody waits.
    Deactivate,
    /// Lets that many more on, at once.
    Advance {
        /// How many.
        batch: u32,
    },
    /// How many per second.
    Rate {
        /// That many.
        rate: u32,
    },
    /// Nobody is let on until further notice.
    Pause,
    /// People are let on again.
    Resume,
}

/// What has become of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The room afterwards.
    pub room: Room,
    /// How many were let on by it.
    pub advanced: u64,
}

/// Asks what operators did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionsOf {
    /// About which event's room.
    pub event: EventId,
    /// At most so many, and never more than a hundred.
    pub limit: u32,
}

/// What operators did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actions {
    /// Newest first.
    pub actions: Vec<Action>,
}

/// One decision, as it was written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VwrAction")]
pub struct Action {
    /// When.
    pub at: Timestamp,
    /// Whose it was; nobody's if the platform did it itself.
    pub actor: Option<urr_kernel::UserId>,
    /// What.
    pub what: String,
    /// With which number, if it has one.
    pub number: Option<i64>,
}

/// Why Tier 1 refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// The event never had a room.
    #[error("VWR not found for this event")]
    RoomNotFound,
    /// Nobody has to wait.
    #[error("VWR is not active for this event")]
    NotActive,
    /// The ticket is not one of ours, has expired, is for another event or from before the room was opened again.
    #[error("Position not found. Request a new position.")]
    PositionNotFound,
    /// The ticket was given to another browser.
    #[error("This place in line belongs to another browser")]
    NotYourPlace,
    /// Only admins may do this.
    #[error("Only an admin may do this")]
    AdminRequired,
    /// A rate out of range.
    #[error("A rate is at most {max} people per second")]
    BadRate {
        /// The most it may be.
        max: u32,
    },
    /// A batch out of range.
    #[error("A batch has 1 to {max} people")]
    BadBatch {
        /// The most it may have.
        max: u32,
    },
    /// The line's store does not answer, or more people came at once than can be counted.
    #[error("The waiting room cannot answer right now; please try again in a moment")]
    Unavailable,
    /// A bug.
    #[error("Something went wrong on our side")]
    Internal,
}

impl ServiceError for Error {
    const DOMAIN: &'static str = "vwr";

    fn kind(&self) -> Kind {
        match self {
            Self::RoomNotFound | Self::NotActive | Self::PositionNotFound => Kind::NotFound,
            Self::NotYourPlace | Self::AdminRequired => Kind::Forbidden,
            Self::BadRate { .. } | Self::BadBatch { .. } => Kind::Invalid,
            Self::Unavailable => Kind::Unavailable,
            Self::Internal => Kind::Internal,
        }
    }

    fn unavailable() -> Self {
        Self::Unavailable
    }
}
