//! Tests of Kafka only: broker outages, topics, rebalances.

use std::{sync::Mutex, time::Duration};

use rdkafka::{
    ClientConfig,
    mocking::MockCluster,
    producer::{DefaultProducerContext, FutureProducer, Producer as _},
    types::{RDKafkaApiKey, RDKafkaRespErr},
};
use urr_bus::{Bus, Error, Failure, KafkaConfig, Message, admin};
use urr_db::Tx;
use urr_testkit::{free_port, until, within};

use crate::{
    cases::backlog,
    rig::{Backend, LIMIT, Probe, Rig, SOON, counted},
};

type Mock = MockCluster<'static, DefaultProducerContext>;

/// A mock broker in this process, with its topics already created.
async fn mocked() -> (Mock, Rig) {
    let mock = MockCluster::new(1).unwrap();
    let rig = Rig::with_brokers(mock.bootstrap_servers()).await;
    for topic in [rig.topic.to_owned(), format!("{}.dlq", rig.topic)] {
        mock.create_topic(&topic, 3, 1).unwrap();
    }
    (mock, rig)
}

pub(crate) fn bus(rig: &Rig, options: &[(&str, &str)]) -> Bus {
    let mut config = KafkaConfig::new(rig.brokers.clone().unwrap());
    config.options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Bus::kafka(config, rig.limits.clone()).unwrap()
}

/// Notices an outage after one second instead of ten.
pub(crate) const IMPATIENT: [(&str, &str); 1] = [("message.timeout.ms", "1000")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_wait_during_a_broker_outage_and_are_sent_after_it() {
    within(LIMIT, async {
        let (mock, rig) = mocked().await;
        let probe = rig.group();
        let tasks = rig.start_with(&bus(&rig, &IMPATIENT), &[&probe]);
        rig.publish_one("a", "before").await;
        probe.has_effects(1).await;

        mock.broker_down(1).unwrap();
        rig.publish_one("a", "meanwhile").await;
        until(SOON, async || claimed(&rig).await == 1).await;
        until(SOON, async || claimed(&rig).await == 0).await;
        assert_eq!(backlog(&rig).await, 1, "the message waits in the outbox");
        until(SOON, async || counted("urr_bus_unread_total", probe.group) > 0).await;
        assert!(
            admin::unpublished(&rig.source(), 0, 10).await.unwrap().is_empty(),
            "the message is not given up"
        );

        mock.broker_up(1).unwrap();
        probe.has_effects(2).await;
        until(SOON, async || backlog(&rig).await == 0).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["before", "meanwhile"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bus_starts_without_a_broker_and_catches_up() {
    within(LIMIT, async {
        let (mock, rig) = mocked().await;
        mock.broker_down(1).unwrap();
        let probe = rig.group();
        let bus = bus(&rig, &IMPATIENT);
        let tasks = rig.start_with(&bus, &[&probe]);
        rig.publish_many(1, 3).await;
        assert_eq!(backlog(&rig).await, 3);
        let health = bus.health().unwrap();
        assert!(health.check().await.unwrap_err().starts_with("Kafka does not answer"));

        mock.broker_up(1).unwrap();
        probe.has_effects(3).await;
        until(SOON, async || health.check().await.is_ok()).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["0", "1", "2"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_does_not_wait_for_an_unreachable_broker() {
    within(LIMIT, async {
        // There is no listener, so an admin request takes its full timeout of five seconds.
        let rig = Rig::with_brokers(format!("127.0.0.1:{}", free_port())).await;
        let probe = rig.group();
        rig.publish_one("a", "waits").await;
        let tasks = rig.start(&[&probe]);
        until(SOON, async || claimed(&rig).await == 1).await;
        tasks.shutdown(Duration::from_secs(3)).await.unwrap();
        assert_eq!(claimed(&rig).await, 0, "the claim is released at shutdown");
        assert_eq!(backlog(&rig).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_move_during_offset_fetch_leaves_no_partition_unread() {
    within(LIMIT, async {
        let (mock, rig) = mocked().await;
        mock.request_errors(RDKafkaApiKey::OffsetFetch, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_COORDINATOR]);
        let probe = rig.group();
        let tasks = rig.start(&[&probe]);
        rig.publish_many(10, 30).await;
        probe.has_effects(30).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(counted("urr_bus_members_replaced_total", probe.group), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_is_replaced_after_a_fatal_error() {
    within(LIMIT, async {
        let (mock, rig) = mocked().await;
        let probe = rig.group();
        let tasks = rig.start_with(&bus(&rig, &IMPATIENT), &[&probe]);
        rig.publish_one("a", "before").await;
        probe.has_effects(1).await;
        // A fatal error for an idempotent producer: it and the broker disagree about what was
        // written.
        let lost_count = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
        mock.request_errors(RDKafkaApiKey::Produce, &[lost_count]);
        rig.publish_one("a", "after").await;
        probe.has_effects(2).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["before", "after"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_message_is_set_aside_and_can_be_republished() {
    let Some(rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        let probe = rig.group();
        let small = bus(&rig, &[("message.max.bytes", "1000")]);
        let tasks = rig.start_with(&small, &[&probe]);
        let large = "x".repeat(2_000);
        rig.publish(&[rig.message("a", &large), rig.message("a", "small")]).await;
        until(SOON, async || {
            rig.clock.advance(Duration::from_secs(1));
            !admin::unpublished(&rig.source(), 0, 10).await.unwrap().is_empty()
        })
        .await;
        probe.has_effects(1).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["small"]);

        let dead = admin::unpublished(&rig.source(), 0, 10).await.unwrap();
        assert!(dead[0].error.contains("too large"), "{}", dead[0].error);
        let tasks = rig.start(&[&probe]);
        assert!(admin::publish_again(&rig.source(), dead[0].seq, &rig.clock).await.unwrap());
        assert!(!admin::publish_again(&rig.source(), dead[0].seq, &rig.clock).await.unwrap());
        probe.has_effects(2).await;
        tasks.shutdown(SOON).await.unwrap();
        assert_eq!(probe.notes().await, ["small", large.as_str()]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_consumer_keeps_its_partitions() {
    let Some(mut rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        // Two waits of 4 s exceed the 6 s after which a member that does not poll is removed.
        rig.limits.retries = [Duration::from_secs(4); 3];
        let slow = [("session.timeout.ms", "6000"), ("max.poll.interval.ms", "6000")];
        let probe = rig.group().that(|message, tries| match () {
            () if message.key == "slow" && tries < 4 => Err(Failure::Retry("not yet".into())),
            () => Ok(()),
        });
        let tasks = rig.start_with(&bus(&rig, &slow), &[&probe]);
        let message = rig.publish_one("slow", "slow").await;
        probe.has_effects(1).await;
        tasks.shutdown(SOON).await.unwrap();
        // One batch attempt and three single ones. A removed member would have started again.
        assert_eq!(probe.calls(&message), 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_pauses_fetching_and_loses_nothing() {
    let Some(rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        const COUNT: usize = 400;
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let gate = Mutex::new(Some(gate));
        let probe = rig.group().that(move |_, _| {
            // The first message blocks until everything is published.
            if let Some(gate) = gate.lock().unwrap().take() {
                let _ = gate.recv_timeout(Duration::from_secs(8));
            }
            Ok(())
        });
        // Much less than there is to read.
        let small = [("queued.max.messages.kbytes", "1"), ("fetch.message.max.bytes", "1000")];
        let tasks = rig.start_with(&bus(&rig, &small), &[&probe]);
        rig.publish_many(1, COUNT).await;
        until(SOON, async || backlog(&rig).await == 0).await;
        open.send(()).unwrap();
        probe.has_effects(COUNT).await;
        tasks.shutdown(SOON).await.unwrap();
        let expected: Vec<String> = (0..COUNT).map(|n| n.to_string()).collect();
        assert_eq!(probe.notes().await, expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rebalances_cause_no_duplicate_effects() {
    let Some(rig) = Rig::new(Backend::KafkaPostgres).await else { return };
    within(LIMIT, async {
        const KEYS: usize = 12;
        let mut probe = rig.group();
        let stays = rig.start(&[&probe]);
        for _ in 0..3 {
            probe = probe.elsewhere(&rig);
            let passing = rig.start(&[&probe]);
            let seen = probe.effects().await.len();
            let messages: Vec<Message> =
                (0..120).map(|n| rig.message(&format!("key-{}", n % KEYS), &n.to_string())).collect();
            rig.publish(&messages).await;
            probe.has_effects(seen + 60).await;
            passing.shutdown(SOON).await.unwrap();
        }
        probe.has_effects(360).await;
        stays.shutdown(SOON).await.unwrap();
        assert_eq!(probe.effects().await.len(), 360);
        assert!(probe.dead_letters().await.is_empty());
        assert_in_order_per_key(&probe).await;
    })
    .await;
}

async fn assert_in_order_per_key(probe: &Probe) {
    let effects = probe.effects().await;
    let mut last: std::collections::BTreeMap<&str, (usize, i64)> = std::collections::BTreeMap::new();
    for (key, note) in &effects {
        let note: i64 = note.parse().unwrap();
        let (round, before) = last.get(key.as_str()).copied().unwrap_or((0, -1));
        // Each round starts at zero.
        let round = if note > before { round } else { round + 1 };
        assert!(round < 3, "{key} went back to {note} after {before}");
        last.insert(key, (round, note));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_created_with_three_partitions_and_a_dlq() {
    let Some(rig) = Rig::new(Backend::KafkaSqlite).await else { return };
    within(LIMIT, async {
        let probe = rig.group();
        let bus = rig.bus();
        let tasks = rig.start_with(&bus, &[&probe]);
        rig.publish_one("a", "first").await;
        probe.has_effects(1).await;
        tasks.shutdown(SOON).await.unwrap();
        let producer: FutureProducer = client(&rig).create().unwrap();
        for topic in [rig.topic.to_owned(), format!("{}.dlq", rig.topic)] {
            let metadata = producer.client().fetch_metadata(Some(&topic), SOON).unwrap();
            assert_eq!(metadata.topics()[0].partitions().len(), 3, "{topic}");
        }
        assert_eq!(bus.health().unwrap().check().await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn invalid_settings_are_refused_without_leaking_values() {
    let refused = |name: &str, value: &str| {
        let mut config = KafkaConfig::new(format!("127.0.0.1:{}", free_port()));
        config.options.insert(name.to_owned(), value.to_owned());
        let Err(Error::Settings(text)) = Bus::kafka(config, crate::rig::quick()) else {
            panic!("{name} was accepted");
        };
        text
    };
    assert!(refused("acks", "1").contains("acks"));
    assert!(refused("enable.auto.commit", "true").contains("enable.auto.commit"));
    let text = refused("linger.ms", "hunter2");
    assert!(text.contains("linger.ms") && !text.contains("hunter2"), "{text}");
    let text = refused("no.such.option", "hunter2");
    assert!(text.contains("no.such.option") && !text.contains("hunter2"), "{text}");
}

urr_db::statements! {
    /// Rows claimed by a relay and not yet published.
    CLAIMED = "select count(*) from outbox where due_at > $1 and published_at is null";
}

async fn claimed(rig: &Rig) -> i64 {
    let now = rig.clock.now();
    let count = async |tx: &mut Tx<'_>| tx.one(&CLAIMED, &[&now], |row| row.get(0)).await;
    rig.shop().read("test.claimed", count).await.unwrap_or_else(|error: urr_db::Error| panic!("{error:?}"))
}

pub(crate) fn client(rig: &Rig) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", rig.brokers.as_deref().unwrap());
    config
}
