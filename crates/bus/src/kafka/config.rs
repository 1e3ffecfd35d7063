//! Kafka configuration and the properties of the three clients.

use std::{collections::BTreeMap, fmt};

use rdkafka::{ClientConfig, ClientContext, config::RDKafkaLogLevel, error::KafkaError};

/// How to connect to a Kafka cluster.
#[derive(Clone)]
pub struct KafkaConfig {
    /// Bootstrap servers: `host:port`, comma separated.
    pub brokers: String,
    /// Replicas per partition of the topics we create. 3 tolerates the loss of a broker; 1 is for a
    /// single-node cluster.
    pub replication: i32,
    /// Further librdkafka properties, such as credentials. They override ours, except those that
    /// delivery depends on, which are refused.
    pub options: BTreeMap<String, String>,
}

impl fmt::Debug for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Option values may be secrets, so only names are shown.
        f.debug_struct("KafkaConfig")
            .field("brokers", &self.brokers)
            .field("replication", &self.replication)
            .field("options", &self.options.keys())
            .finish()
    }
}

/// Delivery and order depend on these, so they cannot be overridden.
const PRODUCER: [(&str, &str); 3] = [
    ("acks", "all"),
    ("enable.idempotence", "true"),
    // The Java client's partitioner, so that a key maps to one partition for all producers.
    ("partitioner", "murmur2_random"),
];
const CONSUMER: [(&str, &str); 3] = [
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "earliest"),
];
/// Options that are set elsewhere, and aliases of the above. Refused too.
const ELSEWHERE: [&str; 4] =
    ["bootstrap.servers", "metadata.broker.list", "group.id", "request.required.acks"];

impl KafkaConfig {
    /// A single-node cluster without further options.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self { brokers: brokers.into(), replication: 1, options: BTreeMap::new() }
    }

    /// The first option that must not be overridden.
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
            // A request without a response after this time is retried.
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
            // Long enough for a leader election, short enough for the relay to notice an outage and
            // back off.
            .set("message.timeout.ms", "10000")
            // Groups a relay batch into few requests; adds at most this delay.
            .set("linger.ms", "2")
            // A relay batch has at most 500 messages per source, so 10,000 allow twenty sources.
            // Memory is bounded by bytes: 64 MB hold 128 messages of the largest size.
            .set("queue.buffering.max.messages", "10000")
            .set("queue.buffering.max.kbytes", "65536");
        self.with_options(config, &PRODUCER)
    }

    pub(super) fn consumer(&self, group: &str) -> ClientConfig {
        let mut config = self.client();
        config
            .set("group.id", group)
            // The partitions of a dead member are reassigned after this; heartbeats are three times
            // as frequent.
            .set("session.timeout.ms", "10000")
            .set("heartbeat.interval.ms", "3000")
            // A new topic may be unknown to the queried broker. A group that subscribed too early
            // looks again after this, instead of librdkafka's five minutes.
            .set("topic.metadata.refresh.interval.ms", "10000")
            // Prefetch at most 2 MB per partition: four messages of the largest size, thousands of
            // normal ones. A group of 12 partitions uses at most 24 MB. librdkafka checks for space
            // every 20 ms.
            .set("queued.max.messages.kbytes", "2048")
            .set("fetch.queue.backoff.ms", "20")
            .set("fetch.error.backoff.ms", "500");
        self.with_options(config, &CONSUMER)
    }
}

/// Forwards librdkafka's log to ours. Its connection errors repeat with every attempt, so they are
/// logged at debug level; the relay and the groups log an outage once.
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
