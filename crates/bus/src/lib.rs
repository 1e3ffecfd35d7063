//! Publish and consume: in process or over Kafka, with the same guarantees.
//!
//! A domain publishes by appending to its outbox in the transaction of the change; it calls nothing
//! in this crate. A domain consumes by implementing [`Consumer`]: the bus opens a transaction on
//! the consumer's database, inserts the message id into the inbox and calls [`Consumer::apply`].
//! However often a message is delivered, it has one effect. Messages of one key arrive in the order
//! they were written. A message that keeps failing is retried three times and then stored as a dead
//! letter, and the group moves on.

pub mod admin;
mod deliver;
mod in_process;
#[cfg(feature = "kafka")]
mod kafka;
mod log;
mod settings;
mod store;
mod tidy;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
pub use urr_db::Message;
use urr_db::{Db, Tx};
use urr_jobs::{Backoff, BoxError, Tasks};
use urr_kernel::Clock;

pub use in_process::InProcess;
#[cfg(feature = "kafka")]
pub use kafka::{Kafka, KafkaConfig};
pub use settings::{BusKind, Settings};

/// Delivers messages from outboxes to consumer groups.
#[derive(Clone, Debug)]
pub enum Bus {
    /// In process: the outbox tables are the log. Needs all sources and consumers in one process.
    InProcess(InProcess),
    /// Over Kafka, between processes with different roles.
    #[cfg(feature = "kafka")]
    Kafka(Kafka),
}

/// A domain that publishes.
#[derive(Clone)]
pub struct Source {
    /// The domain's name, in offsets and metrics.
    pub domain: &'static str,
    /// Its database, with the outbox.
    pub db: Db,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A consumer group of a domain.
#[async_trait]
pub trait Consumer: Send + Sync + 'static {
    /// The group's name, under which its offsets are stored. Never rename it.
    fn group(&self) -> &'static str;

    /// The topics it subscribes to.
    fn topics(&self) -> &'static [&'static str];

    /// The database of its effects.
    fn db(&self) -> &Db;

    /// Whether it handles this message. Others are skipped without an inbox row.
    fn wants(&self, _: &Message) -> bool {
        true
    }

    /// Applies one message. All effects must go through `tx`: the call may be rolled back and
    /// repeated. An unknown type or field is not an error: return `Ok` and ignore the message.
    async fn apply(&self, tx: &mut Tx<'_>, message: &Message) -> Result<(), Failure>;

    /// Applies several messages in order, all or none. Override it if a batch is cheaper than
    /// single messages. If it fails, the messages are applied one by one.
    async fn apply_all(&self, tx: &mut Tx<'_>, messages: &[&Message]) -> Result<(), Failure> {
        for message in messages {
            self.apply(tx, message).await?;
        }
        Ok(())
    }
}

/// Why a message was not applied.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// May succeed later: retried three times, then stored as a dead letter.
    #[error("the message could not be applied")]
    Retry(#[source] BoxError),
    /// Can never succeed: stored as a dead letter at once.
    #[error("the message can never be applied")]
    Poison(#[source] BoxError),
}

impl From<urr_db::Error> for Failure {
    fn from(error: urr_db::Error) -> Self {
        Self::Retry(error.into())
    }
}

/// A payload that does not match its type never will.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Poison(error.into())
    }
}

/// Limits and intervals of the bus. Only tests change them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Pauses before each retry of a failing message; after the last it becomes a dead letter. 1 +
    /// 2 + 4 s outlast a deadlock or a short restart, and delay the messages behind it no longer.
    pub retries: [Duration; 3],
    /// Interval of polling the outbox without a notification. Bounds the delay of a message after a
    /// lost one.
    pub poll: Duration,
    /// Messages applied in one transaction.
    pub batch: u32,
    /// In-process bus: how long a group that has caught up waits for a batch to form. Under load it
    /// then makes a few large transactions instead of hundreds of small ones, each with its own
    /// fsync that delays the sale.
    pub gather: Duration,
    /// Time limit of one [`Consumer`] call. It does only database work, and a statement takes at
    /// most 2 s.
    pub apply: Duration,
    /// Pauses while a database or the broker is unavailable.
    pub outage: Backoff,
    /// How long to retry a message that a reachable database refuses to write, for instance because
    /// of a locked table, before it becomes a dead letter. With 15 to 30 s between attempts that is
    /// at least 120 attempts in an hour, and the message itself may be the cause. If the database
    /// has no space for the dead letter either, retries go on without end.
    pub unwilling: Duration,
    /// Interval of marking, purging and counting rows: short enough for alerts.
    pub tidy: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            retries: [secs(1), secs(2), secs(4)],
            poll: secs(1),
            batch: 500,
            gather: Duration::from_millis(25),
            apply: secs(10),
            outage: Backoff::STORE,
            unwilling: Duration::from_hours(1),
            tidy: secs(15),
        }
    }
}

/// Why a bus cannot start. An unreachable broker is no error: the bus starts and waits for it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two consumers have the same group, so each would get only some messages.
    #[error("two consumers are registered as group {0}")]
    SameGroup(&'static str),
    /// The Kafka settings are invalid.
    #[error("invalid Kafka settings: {0}")]
    Settings(String),
}

impl Bus {
    /// An in-process bus.
    pub fn in_process(limits: Limits) -> Self {
        Self::InProcess(InProcess::new(limits))
    }

    /// A bus over Kafka. Fails if the settings are invalid, not if the broker is unreachable.
    #[cfg(feature = "kafka")]
    pub fn kafka(config: KafkaConfig, limits: Limits) -> Result<Self, Error> {
        Ok(Self::Kafka(Kafka::new(config, limits)?))
    }

    /// Health check of the broker; `None` in process.
    pub fn health(&self) -> Option<Arc<dyn urr_telemetry::Check>> {
        match self {
            Self::InProcess(_) => None,
            #[cfg(feature = "kafka")]
            Self::Kafka(bus) => Some(bus.health()),
        }
    }

    /// Delivers messages from `sources` to `consumers` until `tasks` is shut down.
    pub fn start(
        &self,
        sources: &[Source],
        consumers: &[Arc<dyn Consumer>],
        tasks: &Tasks,
        clock: &Clock,
    ) -> Result<(), Error> {
        let mut groups: Vec<&'static str> = consumers.iter().map(|consumer| consumer.group()).collect();
        groups.sort_unstable();
        if let Some(twice) = groups.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::SameGroup(twice[0]));
        }
        match self {
            Self::InProcess(bus) => bus.start(sources, consumers, tasks, clock),
            #[cfg(feature = "kafka")]
            Self::Kafka(bus) => bus.start(sources, consumers, tasks, clock),
        }
        Ok(())
    }
}

/// All SQL statements of this crate, for the test that prepares them on both engines.
pub fn statements() -> &'static [&'static urr_db::Sql] {
    store::STATEMENTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_wait_one_two_and_four_seconds() {
        assert_eq!(Limits::default().retries, [1, 2, 4].map(Duration::from_secs));
    }
}
