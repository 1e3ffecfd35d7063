//! Kafka dead-letter topics and records of other producers.

use rdkafka::{
    Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions},
    consumer::{BaseConsumer, Consumer as _},
    message::{Headers as _, OwnedHeaders},
    producer::{FutureProducer, FutureRecord},
};
use urr_bus::Failure;
use urr_testkit::{until, within};

use crate::{
    kafka::{IMPATIENT, bus, client},
    rig::{Backend, LIMIT, Rig, SOON},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_go_to_the_dlq_topic_with_their_cause() {
    let Some(rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        let probe = rig.group().that(|_, _| Err(Failure::Retry("not today".into())));
        let tasks = rig.start(&[&probe]);
        let message = rig.publish_one("a", "hopeless").await;
        probe.has_dead_letters(1).await;
        let letter = dead_letter(&rig, 1).await.remove(0);
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(letter.payload, message.payload.as_bytes());
        assert_eq!(letter.key, b"a");
        let id = message.id.to_string();
        for (name, value) in [
            ("messageId", id.as_str()),
            ("type", "NOTED"),
            ("cause", "the message could not be applied: not today"),
            ("group", probe.group),
            ("attempts", "4"),
            ("originalTopic", rig.topic),
            ("originalOffset", "0"),
        ] {
            assert_eq!(letter.header(name), Some(value), "{name}");
        }
        assert!(letter.header("originalPartition").is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_dlq_topic_is_created_again() {
    let Some(rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        let tasks = rig.start_with(&bus(&rig, &IMPATIENT), &[&rig.group()]);
        rig.publish_one("a", "not JSON comes next").await;
        until(SOON, async || crate::cases::backlog(&rig).await == 0).await;
        let admin: AdminClient<_> = client(&rig).create().unwrap();
        let topic = format!("{}.dlq", rig.topic);
        admin.delete_topics(&[&topic], &AdminOptions::new()).await.unwrap().remove(0).unwrap();
        produce(&rig, b"not JSON", None).await;
        until(SOON, async || {
            let known = admin.inner().fetch_metadata(None, SOON).unwrap();
            known.topics().iter().any(|known| known.name() == topic)
        })
        .await;
        assert_eq!(dead_letter(&rig, 1).await[0].payload, b"not JSON");
        tasks.shutdown(SOON).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_records_are_applied_if_valid_and_set_aside_if_not() {
    let Some(rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        let probe = rig.group();
        let tasks = rig.start(&[&probe]);
        rig.publish_one("a", "ours").await;
        probe.has_effects(1).await;
        // Without headers, the payload supplies id and type.
        let stranger = rig.message("a", "a stranger's");
        let bad_header =
            OwnedHeaders::new().insert(rdkafka::message::Header { key: "messageId", value: Some("7") });
        produce(&rig, b"not JSON", None).await;
        produce(&rig, b"\xff\xfe", None).await;
        produce(&rig, br#"{"type":"NOTED"}"#, None).await;
        produce(&rig, stranger.payload.as_bytes(), Some(bad_header)).await;
        produce(&rig, stranger.payload.as_bytes(), None).await;
        probe.has_effects(2).await;
        let letters = dead_letter(&rig, 4).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["ours", "a stranger's"]);
        assert_eq!(letters[0].payload, b"not JSON");
        assert_eq!(letters[1].payload, b"\xff\xfe");
        let causes: Vec<&str> = letters.iter().map(|letter| letter.header("cause").unwrap()).collect();
        for (cause, expected) in causes.iter().zip([
            "the payload is not a message",
            "the payload is not UTF-8",
            "the record has no messageId",
            r#""7" is not a message id"#,
        ]) {
            assert!(cause.starts_with(expected), "{cause}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oversized_record_is_set_aside_without_its_content() {
    let Some(rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        let probe = rig.group();
        let tasks = rig.start_with(&bus(&rig, &[("message.max.bytes", "1000")]), &[&probe]);
        rig.publish_one("a", "first").await;
        probe.has_effects(1).await;
        let good = rig.message("a", "behind it");
        produce(&rig, &[b'x'; 2_000], None).await;
        produce(&rig, good.payload.as_bytes(), None).await;
        probe.has_effects(2).await;
        let letter = dead_letter(&rig, 1).await.remove(0);
        tasks.shutdown(SOON).await.unwrap();
        assert!(letter.payload.is_empty());
        let cause = letter.header("cause").unwrap();
        assert!(cause.contains("too large") && cause.contains("the payload is not a message"), "{cause}");
        assert_eq!(letter.header("originalTopic"), Some(rig.topic));
        assert_eq!(letter.header("originalPartition"), Some("0"));
        assert!(letter.header("originalOffset").is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_whose_key_is_invalid_text_is_set_aside() {
    let Some(rig) = Rig::new(Backend::KafkaPostgres).await else { return };
    within(LIMIT, async {
        let probe = rig.group();
        let tasks = rig.start(&[&probe]);
        rig.publish_one("a", "first").await;
        probe.has_effects(1).await;
        let [bad, good] = ["bad", "good"].map(|note| rig.message("a", note));
        produce_with_key(&rig, b"a\0b", bad.payload.as_bytes(), None).await;
        produce(&rig, good.payload.as_bytes(), None).await;
        probe.has_effects(2).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["first", "good"]);
        let letters = probe.dead_letters().await;
        assert_eq!(letters[0].message.id, bad.id);
        assert_eq!(letters[0].message.key, "a\u{fffd}b");
    })
    .await;
}

/// Produces a record like an unrelated producer, always to partition 0.
async fn produce(rig: &Rig, payload: &[u8], headers: Option<OwnedHeaders>) {
    produce_with_key(rig, b"a", payload, headers).await;
}

async fn produce_with_key(rig: &Rig, key: &[u8], payload: &[u8], headers: Option<OwnedHeaders>) {
    let producer: FutureProducer = client(rig).create().unwrap();
    let record = FutureRecord { headers, ..FutureRecord::to(rig.topic) };
    let record = record.key(key).payload(payload).partition(0);
    producer.send(record, SOON).await.unwrap();
}

struct Letter {
    key: Vec<u8>,
    payload: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl Letter {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads `count` records of the dead-letter topic.
#[expect(clippy::disallowed_methods, reason = "awaited by the test")]
async fn dead_letter(rig: &Rig, count: usize) -> Vec<Letter> {
    let (config, topic) = (client(rig).set("group.id", "test-reader").clone(), format!("{}.dlq", rig.topic));
    let reading = tokio::task::spawn_blocking(move || {
        let (reader, mut places): (BaseConsumer, _) = (config.create().unwrap(), TopicPartitionList::new());
        for partition in 0..3 {
            places.add_partition_offset(&topic, partition, Offset::Beginning).unwrap();
        }
        reader.assign(&places).unwrap();
        let mut letters = Vec::new();
        while letters.len() < count {
            let record = reader.poll(SOON).expect("a dead letter arrives").unwrap();
            let headers = record.headers().map_or_else(Vec::new, |headers| {
                let text =
                    |value: Option<&[u8]>| String::from_utf8(value.unwrap_or_default().to_vec()).unwrap();
                headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
            });
            letters.push(Letter {
                key: record.key().unwrap_or_default().to_vec(),
                payload: record.payload().unwrap_or_default().to_vec(),
                headers,
            });
        }
        letters
    });
    reading.await.unwrap()
}
