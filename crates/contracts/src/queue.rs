//! The waiting room of one event (Tier 2).

mod entries;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{CommonError, EventId, Refusal, Timestamp, UserId};
use urr_rpc::{Kind, ServiceError, service};
use uuid::Uuid;

pub use self::entries::{MyEntries, QueueEntries, QueueEntry};
use crate::auth::Sensitive;

/// Upper bound of a threshold, to catch typing errors. Far beyond what one sale can serve.
pub const MAX_THRESHOLD: u32 = 1_000_000;

/// Operator actions per reply.
pub const MAX_ACTIONS: u32 = 100;

/// In this time a full line advances by a few thousand users.
const FULL_RETRY: Duration = Duration::from_secs(30);

/// Long enough not to overload a struggling store, short enough for a waiting user.
const AWAY_RETRY: Duration = Duration::from_secs(3);

service! {
    /// The waiting room of one event (Tier 2).
    pub trait Queue as "queue" -> Error {
        /// Puts the calling user in line, or admits them if there is room and the line is empty.
        @idempotent async fn check(CheckIn) -> EntryStatus;
        /// Returns the state of the calling user and keeps their place alive.
        @idempotent async fn status(StatusOf) -> EntryStatus;
        /// Gives up the calling user's place or slot.
        @idempotent async fn leave(LeaveLine) -> Left;
        /// Returns the queue entries of the calling user. Does not count as activity.
        @idempotent async fn entries(MyEntries) -> QueueEntries;
        /// Returns whether a slot is valid, and keeps it alive. For the guards of the sale.
        @idempotent async fn slot(SlotOf) -> SlotState;
        /// Returns the state of a room. For admins.
        @idempotent async fn room(RoomOf) -> RoomState;
        /// Sets the maximum number of admitted users. For admins.
        @idempotent async fn set_threshold(SetThreshold) -> RoomState;
        /// Pauses or resumes admissions. For admins.
        @idempotent async fn pause(PauseRoom) -> RoomState;
        /// Removes all users from a room and invalidates their tickets. For admins.
        async fn clear(ClearRoom) -> RoomState;
        /// Returns operator actions in a room, newest first. For admins.
        @idempotent async fn audit(AuditOf) -> Audit;
    }
}

/// Requests a place in line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckIn {
    /// Event of the room.
    pub event: EventId,
    /// Queue ticket from an earlier visit. Ignored if it belongs to another user.
    pub ticket: Option<Sensitive>,
    /// Tier 1 pass. Its position carries over.
    pub pass: Option<Sensitive>,
    /// When Tier 1 was opened, if it is open. Passes from an earlier opening are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_since: Option<Timestamp>,
    /// Whether the caller needs a valid pass or an existing place to get a place in line.
    #[serde(default)]
    pub only_resume: bool,
}

/// Requests the caller's state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StatusOf {
    /// Event of the room.
    pub event: EventId,
}

/// State of a user in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryStatus {
    /// Event of the room.
    pub event: EventId,
    /// Details of the event; `None` if the catalog does not answer.
    pub info: Option<EventInfo>,
    /// Start of the sale, if it is in the future. No admissions before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<Timestamp>,
    /// Whether the user waits, is admitted, or neither.
    #[serde(rename = "standing")]
    pub state: EntryState,
    /// Number of waiting users.
    pub waiting: u64,
    /// Number of admitted users.
    pub active: u64,
    /// Maximum number of admitted users.
    pub threshold: u32,
    /// Whether an operator has paused admissions.
    pub paused: bool,
    /// Seconds until the next poll.
    pub next_poll_secs: u32,
    /// Why tokens sent by the caller were ignored. The state is the one without them.
    pub refused: Vec<TokenRefusal>,
}

/// Details of an event for waiting users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventInfo {
    /// Name.
    pub title: String,
    /// Name of the artist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artist: Option<String>,
}

/// Why a token was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TokenRefusal {
    /// The queue ticket has no valid signature, or is another kind of token.
    #[serde(rename = "queue.ticket_invalid")]
    TicketInvalid,
    /// The queue ticket is older than a day.
    #[serde(rename = "queue.ticket_expired")]
    TicketExpired,
    /// The queue ticket is for another user or another event.
    #[serde(rename = "queue.ticket_foreign")]
    TicketForeign,
    /// The queue ticket is from before an operator cleared the room.
    #[serde(rename = "queue.ticket_void")]
    TicketVoid,
    /// The place of the queue ticket was already used for a slot, which has ended.
    #[serde(rename = "queue.ticket_used")]
    TicketUsed,
    /// The Tier 1 pass has no valid signature, or is another kind of token.
    #[serde(rename = "queue.pass_invalid")]
    PassInvalid,
    /// The Tier 1 pass has expired, or is from an earlier opening of its room.
    #[serde(rename = "queue.pass_expired")]
    PassExpired,
    /// The pass is for another event, or another user has used it and the caller has a place
    /// without it.
    #[serde(rename = "queue.pass_foreign")]
    PassForeign,
    /// The place of the Tier 1 pass was already used for a slot, which has ended.
    #[serde(rename = "queue.pass_used")]
    PassUsed,
}

/// Whether a user waits, is admitted, or neither.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "where", rename_all = "snake_case")]
pub enum EntryState {
    /// In line.
    Waiting {
        /// Position in line, from 1.
        position: u64,
        /// Estimated wait. `None` while admissions are stopped: paused, or a threshold of 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Wait>,
        /// Restores the place if the store loses it. Returned by `check`, not by `status`.
        ticket: Option<QueueTicket>,
    },
    /// Admitted.
    Active {
        /// Required to buy.
        entry_token: Sensitive,
        /// Expiry of the token.
        token_expires_at: Timestamp,
        /// Latest end of the slot, however active its owner is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot_ends_at: Option<Timestamp>,
    },
    /// Not in the room.
    Absent,
}

/// Token that restores a place in line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueTicket {
    /// The token.
    pub token: Sensitive,
    /// Expiry of the token.
    pub expires_at: Timestamp,
}

/// Estimated wait, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Most likely value.
    pub secs: u64,
    /// Lower bound.
    pub from_secs: u64,
    /// Upper bound.
    pub to_secs: u64,
}

/// Gives up a place or a slot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LeaveLine {
    /// Event of the room.
    pub event: EventId,
}

/// Result of [`LeaveLine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Whether the user had a place or a slot.
    pub was_here: bool,
}

/// Requests the state of a slot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SlotOf {
    /// Event of the room.
    pub event: EventId,
    /// The user.
    pub user: UserId,
    /// The slot.
    pub slot: Uuid,
}

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotState {
    /// Whether the slot is valid.
    pub open: bool,
}

/// Requests the state of a room.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RoomOf {
    /// Event of the room.
    pub event: EventId,
}

/// State of a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomState {
    /// Event of the room.
    pub event: EventId,
    /// Number of waiting users.
    pub waiting: u64,
    /// Number of admitted users.
    pub active: u64,
    /// Maximum number of admitted users.
    pub threshold: u32,
    /// Whether admissions are paused.
    pub paused: bool,
    /// Admissions per second over the last minute, once there is enough data.
    pub admitted_per_second: Option<f64>,
}

/// Sets the maximum number of admitted users.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SetThreshold {
    /// Event of the room.
    pub event: EventId,
    /// The new maximum.
    pub threshold: u32,
}

/// Pauses or resumes admissions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PauseRoom {
    /// Event of the room.
    pub event: EventId,
    /// `true` pauses, `false` resumes.
    pub paused: bool,
}

/// Removes all users from a room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClearRoom {
    /// Event of the room.
    pub event: EventId,
    /// The event's id again, to prevent clearing a room by accident.
    pub confirmed: Option<EventId>,
}

/// Requests operator actions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AuditOf {
    /// Event of the room.
    pub event: EventId,
}

/// Operator actions, newest first; at most [`MAX_ACTIONS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The actions.
    pub deeds: Vec<Deed>,
}

/// One operator action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// Time of the action.
    pub at: Timestamp,
    /// The operator; `None` for the platform itself.
    pub by: Option<UserId>,
    /// `threshold`, `pause`, `resume` or `clear`.
    pub what: String,
    /// The new threshold, if it was changed.
    pub number: Option<u32>,
    /// Whether it took effect; `false` if the room was unreachable.
    pub done: bool,
}

/// Errors of the queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Error {
    /// The event does not exist.
    #[error("There is no such event")]
    EventNotFound,
    /// The event was cancelled.
    #[error("This event was cancelled")]
    EventCancelled,
    /// The sale has ended.
    #[error("The sale of this event is over")]
    SaleEnded,
    /// The line has reached its maximum length.
    #[error("{max} people are waiting already; please try again in a moment")]
    LineFull {
        /// Maximum number of waiting users.
        max: u32,
    },
    /// The user is in too many rooms.
    #[error("You are waiting for {max} other events already; leave one of those lines first")]
    TooManyLines {
        /// Maximum number of rooms per user.
        max: u32,
    },
    /// The Tier 1 pass was used by another account.
    #[error(
        "Another account has used this browser's turn. Sign in to that account again, or wait in line once more with this one"
    )]
    PassTaken,
    /// Tier 1 is open, and the place of the caller's tokens is used or was cleared.
    #[error("Your place in this line is over. Please wait in line once more")]
    PlaceOver {
        /// Whether it was the place of their Tier 1 pass; they need a new one.
        turn_used: bool,
    },
    /// The threshold is out of range.
    #[error("A threshold is at most {max}")]
    BadThreshold {
        /// Highest threshold.
        max: u32,
    },
    /// Clearing a room requires a confirmation.
    #[error("Everybody in line loses their place: repeat the event's id as \"confirm\" in the body")]
    NotConfirmed {
        /// Number of waiting users who would be removed.
        waiting: u64,
        /// Number of admitted users who would be removed.
        active: u64,
    },
    /// An error of every service.
    #[error(transparent)]
    #[serde(untagged)]
    Common(#[from] CommonError),
}

impl Refusal for Error {}

impl ServiceError for Error {
    const DOMAIN: &'static str = "queue";

    fn kind(&self) -> Kind {
        match self {
            Self::EventNotFound => Kind::NotFound,
            Self::EventCancelled
            | Self::SaleEnded
            | Self::TooManyLines { .. }
            | Self::NotConfirmed { .. } => Kind::Conflict,
            Self::PassTaken | Self::PlaceOver { .. } => Kind::Forbidden,
            Self::BadThreshold { .. } => Kind::Invalid,
            Self::LineFull { .. } => Kind::Unavailable,
            Self::Common(error) => (*error).into(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::LineFull { .. } => Some(FULL_RETRY),
            Self::Common(CommonError::Unavailable) => Some(AWAY_RETRY),
            _ => None,
        }
    }
}
