//! Messages, and the facts in them.

use urr_kernel::{Envelope, Fact, MessageId, Timestamp};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Unique id; consumers use it to skip duplicates.
    pub id: MessageId,
    /// The topic.
    pub topic: String,
    /// The ordering key: messages of one topic and key are delivered in the order they were written,
    /// if the writers held a lock on the entity it names.
    pub key: String,
    /// The type of event, such as `RESERVATION_CREATED`.
    pub kind: String,
    /// JSON text.
    pub payload: String,
    /// When it happened.
    pub at: Timestamp,
}

impl Message {
    /// The message of a fact.
    pub fn new<F: Fact>(id: MessageId, fact: F, at: Timestamp) -> Self {
        let (kind, key) = (fact.kind().to_owned(), fact.key());
        let envelope = Envelope { message_id: id, saga_id: None, timestamp: at, fact };
        let payload = serde_json::to_string(&envelope).expect("facts are plain data, which serialises");
        Self { id, topic: F::TOPIC.to_owned(), key, kind, payload, at }
    }

    /// The fact of the message; `None` for a type that this version does not know. Unknown fields
    /// are ignored.
    pub fn fact<F: Fact>(&self) -> Result<Option<F>, serde_json::Error> {
        if self.topic != F::TOPIC || !F::KINDS.contains(&&*self.kind) {
            return Ok(None);
        }
        serde_json::from_str(&self.payload).map(Some)
    }
}
