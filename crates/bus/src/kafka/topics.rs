//! Topics: made on first use, with their dead-letter topics, and looked at for settings that lose messages.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    error::{KafkaError, RDKafkaErrorCode},
};
use tokio::sync::Mutex;

use super::{config::KafkaConfig, config::Quiet, wire::dead_letter_topic};

/// Three consumers of a group can share the work of a topic; messages of one key stay in one partition.
const PARTITIONS: i32 = 3;

/// The broker may take this long to make a topic or to answer a question about one.
const ADMIN: Duration = Duration::from_secs(5);

/// As long as the outbox keeps what it has published.
const RETENTION_MS: &str = "604800000";
/// Dead letters wait for a person: 30 days, as long as the inbox remembers.
const DEAD_LETTER_RETENTION_MS: &str = "2592000000";

pub(super) struct Topics {
    admin: Arc<AdminClient<Quiet>>,
    replication: i32,
    // Held while asking, so that the tasks which start together ask once.
    ready: Mutex<BTreeSet<String>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TopicError {
    #[error("the broker did not answer about topic {topic}")]
    Unreachable { topic: String, source: KafkaError },
    #[error("topic {topic} does not exist and cannot be made: {code}")]
    Missing { topic: String, code: RDKafkaErrorCode },
}

impl Topics {
    pub(super) fn new(config: &KafkaConfig) -> Result<Self, KafkaError> {
        let admin = config.admin().create_with_context(Quiet)?;
        Ok(Self { admin: Arc::new(admin), replication: config.replication, ready: Mutex::default() })
    }

    /// Makes sure that a topic and its dead-letter topic exist.
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

    /// Asks again before the next use: a broker said that the topic is not there.
    pub(super) async fn forget(&self, topic: &str) {
        self.ready.lock().await.remove(topic);
    }

    async fn create(&self, topic: &str, retention_ms: &str) -> Result<(), TopicError> {
        // One copy may be missing without stopping writes, if there are three; of fewer none can be spared.
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
        // We may not be allowed to make topics; then somebody else has.
        if self.exists(topic).await? {
            Ok(())
        } else {
            Err(TopicError::Missing { topic: topic.to_owned(), code: refused })
        }
    }

    async fn exists(&self, topic: &str) -> Result<bool, TopicError> {
        let admin = Arc::clone(&self.admin);
        // Asking for all topics and not for this one, because asking for one by name can make it with the broker's
        // default number of partitions.
        #[expect(clippy::disallowed_methods, reason = "librdkafka blocks, for at most ADMIN")]
        let asked = tokio::task::spawn_blocking(move || admin.inner().fetch_metadata(None, ADMIN)).await;
        let metadata = asked
            .unwrap_or(Err(KafkaError::Canceled))
            .map_err(|source| TopicError::Unreachable { topic: topic.to_owned(), source })?;
        Ok(metadata.topics().iter().any(|known| known.name() == topic && known.error().is_none()))
    }

    /// Acknowledged by one copy only, or led by a copy that missed writes: such a topic loses messages. The databases
    /// stay right, so this is worth a warning and not a refusal to start.
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
