//! Health check of the Kafka cluster.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rdkafka::producer::Producer as _;
use tokio::sync::Mutex;

use super::Cluster;

/// Less than the second that the health report allows, so that the error is reported.
const ANSWER: Duration = Duration::from_millis(900);

pub(super) struct KafkaHealth {
    cluster: Arc<Cluster>,
    // One request at a time, locked by the blocking thread: a prober that times out and retries
    // must not exhaust the thread pool.
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
            Ok(Ok(metadata)) if metadata.brokers().is_empty() => {
                Err("Kafka metadata lists no brokers".to_owned())
            }
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("Kafka does not answer: {error}")),
            Err(_) => Err("the Kafka metadata request was cancelled".to_owned()),
        }
    }
}
