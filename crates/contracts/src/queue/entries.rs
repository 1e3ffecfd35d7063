//! The queue entries of one user.

use serde::{Deserialize, Serialize};
use urr_kernel::EventId;

use super::EventInfo;

/// Lists the calling user's queue entries.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MyEntries {}

/// The calling user's queue entries, in no particular order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntries {
    /// One per event.
    pub entries: Vec<QueueEntry>,
}

/// A place in line or a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// The event.
    pub event: EventId,
    /// Title and artist; `None` if the catalog does not answer.
    pub info: Option<EventInfo>,
    /// Whether the user was admitted and holds a slot; otherwise they wait.
    pub active: bool,
}
