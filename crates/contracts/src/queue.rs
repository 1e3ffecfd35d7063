//! The line in front of one event's seats.

mod entries;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{EventId, Timestamp, UserId};
use urr_rpc::{Kind, ServiceError, service};
use uuid::Uuid;

pub use self::entries::{MyEntries, QueueEntries, QueueEntry};
use crate::auth::Sensitive;

/// The most that may be in at once. Far beyond what one sale digests; a slip of the finger is refused.
pub const MAX_THRESHOLD: u32 = 1_000_000;

/// Actions of operators that are listed at most.
pub const MAX_ACTIONS: u32 = 100;

/// A line that is full moves by a few thousand people in this time.
const FULL_RETRY: Duration = Duration::from_secs(30);

/// Long enough not to press a store that struggles, short enough that nobody thinks they were forgotten.
const AWAY_RETRY: Duration = Duration::from_secs(3);

service! {
    /// The line in front of one event's seats.
    pub trait Queue as "queue" -> Error {
        /// Puts the calling user in line, or in if there is room and nobody waits. Asking again changes nothing.
        @idempotent async fn check(CheckIn) -> Place;
        /// How the calling user stands, which keeps their place alive.
        @idempotent async fn status(StatusOf) -> Place;
        /// The calling user goes, and their place or slot is free at once.
        @idempotent async fn leave(LeaveLine) -> Left;
        /// The events whose waiting rooms the calling user is in. Does not count as activity.
        @idempotent async fn entries(MyEntries) -> QueueEntries;
        /// Whether a user is in with a given slot, which keeps the slot alive. For the guards of the sale.
        @idempotent async fn slot(SlotOf) -> SlotState;
        /// What an operator sees of a room. For admins.
        @idempotent async fn room(RoomOf) -> RoomState;
        /// How many may be in at once. For admins.
        @idempotent async fn set_threshold(SetThreshold) -> RoomState;
        /// Lets nobody in until further notice, or goes on. For admins.
        @idempotent async fn pause(PauseRoom) -> RoomState;
        /// Sends everybody away. Their tickets are void. For admins.
        async fn clear(ClearRoom) -> RoomState;
        /// What operators did in a room, newest first. For admins.
        @idempotent async fn audit(AuditOf) -> Audit;
    }
}

/// Asks for a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckIn {
    /// In whose line.
    pub event: EventId,
    /// The ticket from an earlier time in this line, if the caller has one. One that is not theirs is worth nothing.
    pub ticket: Option<Sensitive>,
    /// The Tier 1 pass, if the caller has one. Its place carries over.
    pub pass: Option<Sensitive>,
    /// Since when Tier 1's line in front of the event is open, if it is. A pass of an earlier opening is worth nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_since: Option<Timestamp>,
    /// Whether nobody comes past that line without a turn in it or a place behind it: the caller gets the place that their tokens tell of,
    /// or none.
    #[serde(default)]
    pub only_resume: bool,
}

/// Asks how the caller stands.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StatusOf {
    /// In whose line.
    pub event: EventId,
}

/// How somebody stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// In whose line.
    pub event: EventId,
    /// What the event is, if the catalog could be asked.
    pub info: Option<EventInfo>,
    /// When the sale begins, if it has not. Nobody is let in before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<Timestamp>,
    /// Where.
    pub standing: Standing,
    /// How many wait.
    pub waiting: u64,
    /// How many are in.
    pub active: u64,
    /// How many may be.
    pub threshold: u32,
    /// Whether an operator lets nobody in at the moment.
    pub paused: bool,
    /// Ask again after so many seconds.
    pub next_poll_secs: u32,
    /// Why a token that the caller sent along was worth nothing. They stand where they would stand without it.
    pub refused: Vec<TokenRefusal>,
}

/// What somebody who waits wants to read about the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventInfo {
    /// Its name.
    pub title: String,
    /// Who performs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artist: Option<String>,
}

/// Why a token gave nobody a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TokenRefusal {
    /// The queue ticket is not ours, was changed, or is something else.
    #[serde(rename = "queue.ticket_invalid")]
    TicketInvalid,
    /// The queue ticket is older than a day.
    #[serde(rename = "queue.ticket_expired")]
    TicketExpired,
    /// The queue ticket is of another user or for another event.
    #[serde(rename = "queue.ticket_foreign")]
    TicketForeign,
    /// The queue ticket is from before an operator sent everybody away.
    #[serde(rename = "queue.ticket_void")]
    TicketVoid,
    /// The place that the queue ticket tells of was good for a slot, which has ended.
    #[serde(rename = "queue.ticket_used")]
    TicketUsed,
    /// The Tier 1 pass is not ours, was changed, or is something else.
    #[serde(rename = "queue.pass_invalid")]
    PassInvalid,
    /// The Tier 1 pass has expired, or is of an earlier opening of its room.
    #[serde(rename = "queue.pass_expired")]
    PassExpired,
    /// The Tier 1 pass is for another event, or another user has used it and the caller has a place without it.
    #[serde(rename = "queue.pass_foreign")]
    PassForeign,
    /// The place that the Tier 1 pass tells of was good for a slot, which has ended.
    #[serde(rename = "queue.pass_used")]
    PassUsed,
}

/// Where somebody stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "where", rename_all = "snake_case")]
pub enum Standing {
    /// In line.
    Waiting {
        /// The place, from one.
        position: u64,
        /// How long it will take at the present pace. Nothing while nobody is let in, paused or with a threshold of 0: nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Wait>,
        /// Brings the place back if the store loses it. A check gives one, a status does not.
        ticket: Option<PlaceTicket>,
    },
    /// In.
    Active {
        /// Opens the sale.
        entry_token: Sensitive,
        /// When the token stops opening it.
        token_expires_at: Timestamp,
        /// When the slot ends at the latest, however active its owner is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot_ends_at: Option<Timestamp>,
    },
    /// Neither.
    Absent,
}

/// Brings a place in line back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceTicket {
    /// The token.
    pub token: Sensitive,
    /// Until when it does.
    pub expires_at: Timestamp,
}

/// How long somebody will wait, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Probably.
    pub secs: u64,
    /// At least.
    pub from_secs: u64,
    /// At most.
    pub to_secs: u64,
}

/// Gives a place or a slot up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LeaveLine {
    /// In whose line.
    pub event: EventId,
}

/// Whether there was anything to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// There was.
    pub was_here: bool,
}

/// Asks about a slot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SlotOf {
    /// Of which event.
    pub event: EventId,
    /// Whose.
    pub user: UserId,
    /// Which.
    pub slot: Uuid,
}

/// Whether a slot goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotState {
    /// It does.
    pub open: bool,
}

/// Asks what a room holds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RoomOf {
    /// Of which event.
    pub event: EventId,
}

/// What a room holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomState {
    /// Of which event.
    pub event: EventId,
    /// How many wait.
    pub waiting: u64,
    /// How many are in.
    pub active: u64,
    /// How many may be.
    pub threshold: u32,
    /// Whether nobody is let in.
    pub paused: bool,
    /// People let in per second over the last minute, once there is enough to tell.
    pub admitted_per_second: Option<f64>,
}

/// Says how many may be in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SetThreshold {
    /// Of which event.
    pub event: EventId,
    /// That many.
    pub threshold: u32,
}

/// Stops or goes on letting people in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PauseRoom {
    /// Of which event.
    pub event: EventId,
    /// Stop, or go on.
    pub paused: bool,
}

/// Sends everybody away.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClearRoom {
    /// Of which event.
    pub event: EventId,
    /// The event's id once more, so that nobody clears a line by accident, or another than they meant.
    pub confirmed: Option<EventId>,
}

/// Asks what operators did.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AuditOf {
    /// In which room.
    pub event: EventId,
}

/// What operators did, newest first; the last [`MAX_ACTIONS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Each of them.
    pub deeds: Vec<Deed>,
}

/// One thing an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// When.
    pub at: Timestamp,
    /// Who. Nobody: the platform itself.
    pub by: Option<UserId>,
    /// What: `threshold`, `pause`, `resume` or `clear`.
    pub what: String,
    /// With which number: the new threshold.
    pub number: Option<u32>,
    /// Whether it took effect. `false`: they asked for it, and the room could not be reached.
    pub done: bool,
}

/// Why the line refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Error {
    /// No such event.
    #[error("There is no such event")]
    EventNotFound,
    /// Called off.
    #[error("This event was cancelled")]
    EventCancelled,
    /// Nothing is left to wait for.
    #[error("The sale of this event is over")]
    SaleEnded,
    /// Nobody is signed in.
    #[error("Please sign in to join the line")]
    SignInRequired,
    /// Only admins may do this.
    #[error("Only an admin may do this")]
    AdminRequired,
    /// The line is as long as it may be.
    #[error("{max} people are waiting already; please try again in a moment")]
    LineFull {
        /// How many may wait.
        max: u32,
    },
    /// The user stands in too many lines.
    #[error("You are waiting for {max} other events already; leave one of those lines first")]
    TooManyLines {
        /// In how many one may stand.
        max: u32,
    },
    /// The Tier 1 pass that came along is another account's.
    #[error(
        "Another account has used this browser's turn. Sign in to that account again, or wait in line once more with this one"
    )]
    PassTaken,
    /// Tier 1 is open, and the place of which the caller's tokens tell is used or was cleared away.
    #[error("Your place in this line is over. Please wait in line once more")]
    PlaceOver {
        /// Whether it was that of their turn in Tier 1: they need another one.
        turn_used: bool,
    },
    /// More than may ever be in at once.
    #[error("A threshold is at most {max}")]
    BadThreshold {
        /// The most.
        max: u32,
    },
    /// Whoever clears a line says twice which.
    #[error("Everybody in line loses their place: repeat the event's id as \"confirm\" in the body")]
    NotConfirmed {
        /// How many would.
        waiting: u64,
        /// And how many are in.
        active: u64,
    },
    /// The line cannot be asked right now. Nobody loses a place.
    #[error("The line is not available at the moment; your place is kept, please try again")]
    Unavailable,
    /// A bug.
    #[error("Something went wrong on our side")]
    Internal,
}

impl ServiceError for Error {
    const DOMAIN: &'static str = "queue";

    fn kind(&self) -> Kind {
        match self {
            Self::EventNotFound => Kind::NotFound,
            Self::EventCancelled
            | Self::SaleEnded
            | Self::TooManyLines { .. }
            | Self::NotConfirmed { .. } => Kind::Conflict,
            Self::SignInRequired => Kind::Unauthenticated,
            Self::AdminRequired | Self::PassTaken | Self::PlaceOver { .. } => Kind::Forbidden,
            Self::BadThreshold { .. } => Kind::Invalid,
            Self::LineFull { .. } | Self::Unavailable => Kind::Unavailable,
            Self::Internal => Kind::Internal,
        }
    }

    fn unavailable() -> Self {
        Self::Unavailable
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::LineFull { .. } => Some(FULL_RETRY),
            Self::Unavailable => Some(AWAY_RETRY),
            _ => None,
        }
    }
}
