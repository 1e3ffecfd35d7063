//! The envelope of every message on the bus.

use serde::{Deserialize, Serialize};
use urr_kernel::{MessageId, Timestamp};

/// A fact with the id and time of its message. Serialised as one flat JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<E> {
    /// Unique per message; consumers use it to detect redeliveries.
    pub message_id: MessageId,
    /// The business transaction this belongs to, if one spans several messages.
    pub saga_id: Option<String>,
    /// When the fact became true.
    pub timestamp: Timestamp,
    /// The fact. Its `type` field says which.
    #[serde(flatten)]
    pub fact: E,
}
