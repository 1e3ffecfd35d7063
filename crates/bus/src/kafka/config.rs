//! What is needed to reach a cluster, and the properties of the three clients made from it.

use std::{collections::BTreeMap, fmt};

use rdkafka::{ClientConfig, ClientContext, config::RDKafkaLogLevel, error::KafkaError};

/// How to reach a Kafka cluster.
#[derive(Clone)]
pub struct KafkaConfig {
    /// `host:port`, comma separated: where to ask for the rest of the cluster.
    pub brokers: String,
    /// Copies of each partition of topics we create. 3 survives a broker; 1 is for a single-node cluster.
    pub replication: i32,
    /// Further librdkafka properties, such as credentials. They win over ours; those that
    /// delivery rests on are refused.
    pub options: BTreeMap<String, String>,
}

impl fmt::Debug for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values of options may be secrets; their names are enough to see what was set.
        f.debug_struct("KafkaConfig")
            .field("brokers", &self.brokers)
            .field("replication", &self.replication)
            .field("options", &self.options.keys())
            .finish()
    }
}

/// Delivery and order rest on these, so nobody may change them.
const PRODUCER: [(&str, &str); 3] = [
    ("acks", "all"),
    ("enable.idempotence", "true"),
    // As Java clients do it, so that a key has one partition whoever publishes.
    ("partitioner", "murmur2_random"),
];
const CONSUMER: [(&str, &str); 3] = [
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "earliest"),
];
/// Nor these, which have a place of their own or are other names of the above.
const ELSEWHERE: [&str; 4] =
    ["bootstrap.servers", "metadata.broker.list", "group.id", "request.required.acks"];

impl KafkaConfig {
    /// A single-node cluster without further options.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self { brokers: brokers.into(), replication: 1, options: BTreeMap::new() }
    }

    /// The first option that tries to change what delivery rests on.
    pub(super) fn refused_option(&self) -> Option<&str> {
        let fixed = |name: &&str| {
            PRODUCER.iter().chain(&CONSUMER).any(|(fixed, _)| fixed == name) || ELSEWHERE.contains(name)
        };
        self.options.keys().map(String::as_str).find(fixed)
    }

    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("client.id", "urr")
            .set("bootstrap.servers", &self.brokers)
            // A request that got no answer in this time is tried again elsewhere.
            .set("socket.timeout.ms", "10000")
            .set("reconnect.backoff.max.ms", "2000")
            .set_log_level(RDKafkaLogLevel::Warning);
        config
    }

    fn with_options(&self, mut config: ClientConfig, fixed: &[(&str, &str)]) -> ClientConfig {
        let options = self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in options.chain(fixed.iter().copied()) {
            config.set(name, value);
        }
        config
    }

    pub(super) fn admin(&self) -> ClientConfig {
        self.with_options(self.client(), &[])
    }

    pub(super) fn producer(&self) -> ClientConfig {
        let mut config = self.client();
        config
            // Long enough for a leader election, short enough that the relay learns of an outage and backs off.
            .set("message.timeout.ms", "10000")
            // Gathers a relay batch into few requests; a message waits at most this long.
            .set("linger.ms", "2")
            // One relay batch is at most 500 messages per source; 10,000 leave room for twenty sources. The bytes are
            // what bounds memory: 64 MB hold 128 messages of the largest size.
            .set("queue.buffering.max.messages", "10000")
            .set("queue.buffering.max.kbytes", "65536");
        self.with_options(config, &PRODUCER)
    }

    pub(super) fn consumer(&self, group: &str) -> ClientConfig {
        let mut config = self.client();
        config
            .set("group.id", group)
            // A member that is gone frees its partitions after this; heartbeats come three times as often.
            .set("session.timeout.ms", "10000")
            .set("heartbeat.interval.ms", "3000")
            // A topic that was made a moment ago may not be known to the broker that is asked: a group that came too early looks again
            // after this, and not after the library's five minutes.
            .set("topic.metadata.refresh.interval.ms", "10000")
            // Read ahead at most 2 MB per partition: four messages of the largest size, thousands of the usual one. A
            // group of 12 partitions has 24 MB at most. The library looks again after 20 ms whether there is room.
            .set("queued.max.messages.kbytes", "2048")
            .set("fetch.queue.backoff.ms", "20")
            .set("fetch.error.backoff.ms", "500");
        self.with_options(config, &CONSUMER)
    }
}

/// Sends the library's own log lines to ours. Its connection errors repeat with every attempt, so they stay at debug;
/// what they mean for the product is logged once by whoever waits for the broker.
#[derive(Clone, Debug, Default)]
pub(super) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(facility, "librdkafka: {line}");
            }
            _ => tracing::debug!(facility, "librdkafka: {line}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, "librdkafka: {reason}");
    }
}
