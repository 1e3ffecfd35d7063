//! Whether the cluster answers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rdkafka::producer::Producer as _;
use tokio::sync::Mutex;

use super::Cluster;

/// The health report gives each check one second; this leaves it time to say why it failed.
const ANSWER: Duration = Duration::from_millis(900);

pub(super) struct KafkaHealth {
    cluster: Arc<Cluster>,
    // One question at a time, held by the thread that asks: a prober that gives up early and comes again must not be
    // able to use all threads up.
    asking: Arc<Mutex<()>>,
}

impl KafkaHealth {
    pub(super) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, asking: Arc::default() }
    }
}

#[async_trait]
impl urr_telemetry::Check for KafkaHealth {
    async fn check(&self) -> Result<(), String> {
        let asking = Arc::clone(&self.asking).lock_owned().await;
        let producer = self.cluster.producer.current();
        #[expect(clippy::disallowed_methods, reason = "librdkafka blocks, for at most ANSWER")]
        let asked = tokio::task::spawn_blocking(move || {
            let _asking = asking;
            producer.client().fetch_metadata(None, ANSWER)
        })
        .await;
        match asked {
            Ok(Ok(metadata)) if metadata.brokers().is_empty() => Err("Kafka names no broker".to_owned()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("Kafka does not answer: {error}")),
            Err(_) => Err("the question to Kafka was dropped".to_owned()),
        }
    }
}
