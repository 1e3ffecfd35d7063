//! Encoding of messages as Kafka records: JSON payload, key, and the headers `messageId` and
//! `type`.

use rdkafka::message::{Header, Headers as _, Message as _, OwnedHeaders};
use serde::Deserialize;
use urr_kernel::{MessageId, Timestamp};

use crate::Message;

/// Unique id, by which consumers detect duplicates.
const MESSAGE_ID: &str = "messageId";
/// Type of the message.
const TYPE: &str = "type";
/// Error of a dead letter.
const CAUSE: &str = "cause";
/// Which group gave up on a dead letter.
const GROUP: &str = "group";
/// Number of attempts before the group gave up.
const ATTEMPTS: &str = "attempts";
/// Where the dead letter was read from.
const ORIGINAL_TOPIC: &str = "originalTopic";
const ORIGINAL_PARTITION: &str = "originalPartition";
const ORIGINAL_OFFSET: &str = "originalOffset";

/// Longer error chains are cut, because headers count against the record size.
const MAX_CAUSE_BYTES: usize = 4_096;

/// Topic, partition and offset of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RecordOffset {
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) offset: i64,
}

/// A received record, decoded or not.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) record_offset: RecordOffset,
    pub(super) content: Result<Message, Unreadable>,
}

/// A record that cannot be decoded. Its bytes are copied to the dead letters.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) reason: String,
    pub(super) key: Option<Vec<u8>>,
    pub(super) payload: Option<Vec<u8>>,
}

impl Received {
    pub(super) fn from_record(record: &rdkafka::message::BorrowedMessage<'_>) -> Self {
        let record_offset = RecordOffset {
            topic: record.topic().to_owned(),
            partition: record.partition(),
            offset: record.offset(),
        };
        let content = read(record).map_err(|reason| Unreadable {
            reason,
            key: record.key().map(<[u8]>::to_vec),
            payload: record.payload().map(<[u8]>::to_vec),
        });
        Self { record_offset, content }
    }
}

/// Fields common to all payloads. Used if another producer left out the headers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Common {
    message_id: Option<MessageId>,
    #[serde(rename = "type")]
    kind: Option<String>,
    timestamp: Option<Timestamp>,
}

fn read(record: &rdkafka::message::BorrowedMessage<'_>) -> Result<Message, String> {
    let payload = record.payload().ok_or("the record has no payload")?;
    let payload =
        std::str::from_utf8(payload).map_err(|error| format!("the payload is not UTF-8: {error}"))?;
    let common: Common =
        serde_json::from_str(payload).map_err(|error| format!("the payload is not a message: {error}"))?;
    let header = |name: &str| {
        let mut headers = record.headers()?.iter();
        let found = headers.find(|header| header.key == name)?;
        std::str::from_utf8(found.value?).ok()
    };
    let id = match header(MESSAGE_ID) {
        Some(id) => id.parse().map_err(|_| format!("{id:?} is not a message id"))?,
        None => common.message_id.ok_or("the record has no messageId")?,
    };
    let kind = header(TYPE).map(str::to_owned).or(common.kind).ok_or("the record has no type")?;
    let sent = || record.timestamp().to_millis().map(|ms| Timestamp::from_micros(ms.saturating_mul(1_000)));
    Ok(Message {
        id,
        topic: record.topic().to_owned(),
        key: record.key().map(|key| String::from_utf8_lossy(key).into_owned()).unwrap_or_default(),
        kind,
        payload: payload.to_owned(),
        at: common.timestamp.or_else(sent).unwrap_or(Timestamp::from_micros(0)),
    })
}

pub(super) fn headers(message: &Message) -> OwnedHeaders {
    OwnedHeaders::new()
        .insert(Header { key: MESSAGE_ID, value: Some(&message.id.to_string()) })
        .insert(Header { key: TYPE, value: Some(&message.kind) })
}

pub(super) fn dead_letter_headers(
    headers: OwnedHeaders,
    group: &str,
    record_offset: &RecordOffset,
    cause: &str,
    attempts: u32,
) -> OwnedHeaders {
    let cause = &cause[..cause.floor_char_boundary(MAX_CAUSE_BYTES)];
    headers
        .insert(Header { key: CAUSE, value: Some(cause) })
        .insert(Header { key: GROUP, value: Some(group) })
        .insert(Header { key: ATTEMPTS, value: Some(&attempts.to_string()) })
        .insert(Header { key: ORIGINAL_TOPIC, value: Some(&record_offset.topic) })
        .insert(Header { key: ORIGINAL_PARTITION, value: Some(&record_offset.partition.to_string()) })
        .insert(Header { key: ORIGINAL_OFFSET, value: Some(&record_offset.offset.to_string()) })
}

/// The dead-letter topic of `topic`.
pub(super) fn dead_letter_topic(topic: &str) -> String {
    format!("{topic}.dlq")
}
