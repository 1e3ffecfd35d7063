//! The idempotent producer, and a new one when it can go no further.

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

/// How long to wait for room in the producer's queue: as long as a message in it may wait for the broker.
const ROOM: Duration = Duration::from_secs(10);

impl Producer {
    pub(super) fn new(config: &KafkaConfig) -> Result<Self, KafkaError> {
        let current = config.producer().create_with_context(Quiet)?;
        Ok(Self { config: config.clone(), current: Mutex::new(current) })
    }

    /// Returns when every in-sync copy has the record, or with the reason why that is not known.
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

    /// An idempotent producer that can no longer tell what was written refuses all further work. A new one may write a
    /// record a second time, which consumers notice; the old one would write nothing ever again.
    fn replace_if_dead(&self, used: &FutureProducer<Quiet>) {
        let Some((code, reason)) = used.client().fatal_error() else { return };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.client().fatal_error().is_none() {
            return;
        }
        match self.config.producer().create_with_context(Quiet) {
            Ok(new) => {
                tracing::warn!(%code, reason, "the Kafka producer could not go on and was replaced");
                metrics::counter!("urr_bus_producers_replaced_total").increment(1);
                *current = new;
            }
            Err(error) => tracing::error!(%error, "the Kafka producer cannot go on and cannot be replaced"),
        }
    }
}

/// Whether the record itself is at fault. Everything else is the broker's trouble and passes.
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

/// Whether the broker lets nobody, or not us, write to the topic. Waiting does not help; somebody has to allow it.
pub(super) fn forbids_the_topic(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(RDKafkaErrorCode::TopicAuthorizationFailed | RDKafkaErrorCode::PolicyViolation)
    )
}
