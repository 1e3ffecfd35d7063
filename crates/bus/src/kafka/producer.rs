//! The idempotent producer, replaced after a fatal error.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode},
    message::OwnedHeaders,
    producer::{FutureProducer, FutureRecord, Producer as _},
};

use super::config::{KafkaConfig, Quiet};

pub(super) struct Producer {
    config: KafkaConfig,
    current: Mutex<FutureProducer<Quiet>>,
}

/// How long to wait for space in the producer's queue: as long as a queued message may wait for the
/// broker.
const ROOM: Duration = Duration::from_secs(10);

impl Producer {
    pub(super) fn new(config: &KafkaConfig) -> Result<Self, KafkaError> {
        let current = config.producer().create_with_context(Quiet)?;
        Ok(Self { config: config.clone(), current: Mutex::new(current) })
    }

    /// Returns once all in-sync replicas have the record. After an error the record may or may not
    /// be written.
    pub(super) async fn send(
        &self,
        topic: &str,
        key: Option<&[u8]>,
        payload: Option<&[u8]>,
        headers: OwnedHeaders,
    ) -> Result<(), KafkaError> {
        let producer = self.current();
        let record =
            FutureRecord { topic, partition: None, payload, key, timestamp: None, headers: Some(headers) };
        match producer.send(record, ROOM).await {
            Ok(_) => Ok(()),
            Err((error, _)) => {
                self.replace_if_dead(&producer);
                Err(error)
            }
        }
    }

    pub(super) fn current(&self) -> FutureProducer<Quiet> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the producer after a fatal error. An idempotent producer that lost track of what
    /// was written refuses all further records. A new one may write duplicates, which consumers
    /// filter out.
    fn replace_if_dead(&self, used: &FutureProducer<Quiet>) {
        let Some((code, reason)) = used.client().fatal_error() else { return };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.client().fatal_error().is_none() {
            return;
        }
        match self.config.producer().create_with_context(Quiet) {
            Ok(new) => {
                tracing::warn!(
                    %code, reason,
                    "fatal error in the Kafka producer: it was replaced; messages may be published twice, \
                     which consumers filter out"
                );
                metrics::counter!("urr_bus_producers_replaced_total").increment(1);
                *current = new;
            }
            Err(error) => {
                tracing::error!(
                    %error,
                    "fatal error in the Kafka producer and a new one cannot be created: messages wait in \
                     the outbox, retrying at the next publish"
                );
            }
        }
    }
}

/// Whether the record itself is invalid. All other errors are temporary broker problems.
pub(super) fn blames_the_record(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::MessageSizeTooLarge
                | RDKafkaErrorCode::MessageBatchTooLarge
                | RDKafkaErrorCode::InvalidMessage
                | RDKafkaErrorCode::InvalidMessageSize
                | RDKafkaErrorCode::InvalidTopic
                | RDKafkaErrorCode::InvalidRecord
                | RDKafkaErrorCode::InvalidArgument
        )
    )
}

/// Whether writing to the topic is forbidden. Retrying does not help until permissions change.
pub(super) fn forbids_the_topic(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(RDKafkaErrorCode::TopicAuthorizationFailed | RDKafkaErrorCode::PolicyViolation)
    )
}
