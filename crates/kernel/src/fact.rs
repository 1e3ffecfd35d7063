//! Facts that domains publish on the bus.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{MessageId, Timestamp};

/// What a domain publishes: an enum with `#[serde(tag = "type")]`.
pub trait Fact: Serialize + DeserializeOwned {
    /// The topic.
    const TOPIC: &'static str;
    /// The values of `type` that this version knows. Consumers skip others.
    const KINDS: &'static [&'static str];

    /// The value of `type`; one of [`Self::KINDS`].
    fn kind(&self) -> &'static str;

    /// The ordering key: facts with the same key are delivered in order.
    fn key(&self) -> String;
}

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
