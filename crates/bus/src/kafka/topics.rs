//! Creates topics and their dead-letter topics on first use and warns of unsafe settings.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    error::{KafkaError, RDKafkaErrorCode},
};
use tokio::sync::Mutex;

use super::{config::KafkaConfig, config::Quiet, wire::dead_letter_topic};

/// Up to three members of a group share a topic. Messages of one key stay in one partition.
const PARTITIONS: i32 = 3;

/// Timeout of admin requests.
const ADMIN: Duration = Duration::from_secs(5);

/// Seven days, as long as the outbox keeps published rows.
const RETENTION_MS: &str = "604800000";
/// Dead letters need manual work: 30 days, as long as inbox rows are kept.
const DEAD_LETTER_RETENTION_MS: &str = "2592000000";

pub(super) struct Topics {
    admin: Arc<AdminClient<Quiet>>,
    replication: i32,
    // Locked during requests, so that tasks that start together send only one.
    ready: Mutex<BTreeSet<String>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TopicError {
    #[error("no response from Kafka about topic {topic}")]
    Unreachable { topic: String, source: KafkaError },
    #[error("topic {topic} does not exist and cannot be created: {code}")]
    Missing { topic: String, code: RDKafkaErrorCode },
}

impl Topics {
    pub(super) fn new(config: &KafkaConfig) -> Result<Self, KafkaError> {
        let admin = config.admin().create_with_context(Quiet)?;
        Ok(Self { admin: Arc::new(admin), replication: config.replication, ready: Mutex::default() })
    }

    /// Creates the topic and its dead-letter topic unless they exist.
    pub(super) async fn ensure(&self, topic: &str) -> Result<(), TopicError> {
        let mut ready = self.ready.lock().await;
        if ready.contains(topic) {
            return Ok(());
        }
        self.create(topic, RETENTION_MS).await?;
        self.create(&dead_letter_topic(topic), DEAD_LETTER_RETENTION_MS).await?;
        self.warn_of_unsafe_settings(topic).await;
        ready.insert(topic.to_owned());
        Ok(())
    }

    /// Checks again before the next use. Called when a broker reports the topic as missing.
    pub(super) async fn forget(&self, topic: &str) {
        self.ready.lock().await.remove(topic);
    }

    async fn create(&self, topic: &str, retention_ms: &str) -> Result<(), TopicError> {
        // With three replicas, writes continue while one is down. With fewer, none can be spared.
        let min_insync = (self.replication - 1).max(1).to_string();
        let new = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(self.replication))
            .set("min.insync.replicas", &min_insync)
            .set("unclean.leader.election.enable", "false")
            .set("retention.ms", retention_ms);
        let options = AdminOptions::new().request_timeout(Some(ADMIN)).operation_timeout(Some(ADMIN));
        let refused = match self.admin.create_topics([&new], &options).await {
            Ok(results) => match results.into_iter().next() {
                Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => code,
                _ => return Ok(()),
            },
            Err(KafkaError::AdminOp(code)) => code,
            Err(source) => return Err(TopicError::Unreachable { topic: topic.to_owned(), source }),
        };
        // We may lack the permission to create topics; an administrator may have created it.
        if self.exists(topic).await? {
            Ok(())
        } else {
            Err(TopicError::Missing { topic: topic.to_owned(), code: refused })
        }
    }

    async fn exists(&self, topic: &str) -> Result<bool, TopicError> {
        let admin = Arc::clone(&self.admin);
        // Fetches all topics: a request by name could auto-create the topic with the broker's
        // default number of partitions.
        #[expect(clippy::disallowed_methods, reason = "librdkafka blocks, for at most ADMIN")]
        let asked = tokio::task::spawn_blocking(move || admin.inner().fetch_metadata(None, ADMIN)).await;
        let metadata = asked
            .unwrap_or(Err(KafkaError::Canceled))
            .map_err(|source| TopicError::Unreachable { topic: topic.to_owned(), source })?;
        Ok(metadata.topics().iter().any(|known| known.name() == topic && known.error().is_none()))
    }

    /// Warns of settings that can lose messages: acknowledgement by one replica, or election of a
    /// replica that missed writes. The databases stay correct, so this does not prevent the start.
    async fn warn_of_unsafe_settings(&self, topic: &str) {
        let options = AdminOptions::new().request_timeout(Some(ADMIN));
        let asked = self.admin.describe_configs([&ResourceSpecifier::Topic(topic)], &options).await;
        let Ok([Ok(settings)]) = asked.as_deref() else { return };
        let is = |name: &str, unsafe_value: &str| {
            settings.get(name).and_then(|entry| entry.value.as_deref()) == Some(unsafe_value)
        };
        if self.replication >= 3 && is("min.insync.replicas", "1") {
            tracing::warn!(topic, "min.insync.replicas is 1: a lost broker can lose acknowledged messages");
        }
        if is("unclean.leader.election.enable", "true") {
            tracing::warn!(topic, "unclean.leader.election.enable is true: an election can lose messages");
        }
    }
}
