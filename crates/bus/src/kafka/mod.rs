//! The bus over Kafka: one relay per source, one member per consumer group.

mod config;
mod group;
mod health;
mod lanes;
mod producer;
mod queues;
mod read_errors;
mod relay;
mod topics;
mod wire;

use std::{fmt, sync::Arc};

use rdkafka::error::KafkaError;
use urr_jobs::Tasks;
use urr_kernel::Clock;

pub use config::KafkaConfig;

use self::{group::Group, health::KafkaHealth, producer::Producer, relay::Relay, topics::Topics};
use crate::{Consumer, Error, Limits, Source, deliver::Delivery, tidy};

/// A Kafka cluster as a bus. Cheap to clone.
#[derive(Clone)]
pub struct Kafka {
    cluster: Arc<Cluster>,
    limits: Arc<Limits>,
}

/// Shared by relays and groups.
struct Cluster {
    config: KafkaConfig,
    producer: Producer,
    topics: Topics,
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("config", &self.cluster.config).finish_non_exhaustive()
    }
}

impl Kafka {
    pub(crate) fn new(config: KafkaConfig, limits: Limits) -> Result<Self, Error> {
        if let Some(option) = config.refused_option() {
            return Err(Error::Settings(format!(
                "{option} cannot be set, because message delivery depends on it"
            )));
        }
        let producer = Producer::new(&config).map_err(|error| refused(&error))?;
        let topics = Topics::new(&config).map_err(|error| refused(&error))?;
        let cluster = Arc::new(Cluster { config, producer, topics });
        Ok(Self { cluster, limits: Arc::new(limits) })
    }

    pub(crate) fn start(
        &self,
        sources: &[Source],
        consumers: &[Arc<dyn Consumer>],
        tasks: &Tasks,
        clock: &Clock,
    ) {
        for source in sources {
            let relay = Relay {
                cluster: Arc::clone(&self.cluster),
                source: source.clone(),
                limits: Arc::clone(&self.limits),
                clock: clock.clone(),
                stopping: tasks.token(),
            };
            tasks.spawn_essential(format!("bus.relay.{}", source.domain), relay.run());
            tidy::purge_outbox(source, &self.limits, tasks, clock);
        }
        for consumer in consumers {
            let delivery = Delivery {
                consumer: Arc::clone(consumer),
                limits: Arc::clone(&self.limits),
                clock: clock.clone(),
                stopping: tasks.token(),
            };
            tidy::care_for_group(&delivery, tasks);
            let group = Group { cluster: Arc::clone(&self.cluster), delivery, tasks: tasks.clone() };
            tasks.spawn_essential(format!("bus.{}", consumer.group()), group.run());
        }
    }

    pub(crate) fn health(&self) -> Arc<dyn urr_telemetry::Check> {
        Arc::new(KafkaHealth::new(Arc::clone(&self.cluster)))
    }
}

/// Converts a configuration error. librdkafka repeats the rejected value, which may be a password,
/// so only the name is included.
fn refused(error: &KafkaError) -> Error {
    Error::Settings(match error {
        KafkaError::ClientConfig(_, reason, name, _) => format!("{name}: {reason}"),
        other => other.to_string(),
    })
}
