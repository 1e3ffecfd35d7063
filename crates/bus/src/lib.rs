//! Publish and consume: in process or over Kafka, with the same promises.
//!
//! A domain publishes by appending to its outbox in the transaction of the change; nothing here is called for that. A
//! domain consumes by implementing [`Consumer`]: the bus opens a transaction on the consumer's own database, notes the
//! message in the inbox and calls [`Consumer::apply`] in it, so however often a message arrives it has one effect.
//! Messages of one key arrive in the order in which they were written. A message that keeps failing is retried three
//! times and then set aside as a dead letter, and the group moves on.

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

/// Carries messages from the outboxes of the sources to the consumer groups.
#[derive(Clone, Debug)]
pub enum Bus {
    /// Within the process: the outbox tables are the log. Needs every source and every consumer in the same process.
    InProcess(InProcess),
    /// Over Kafka, between processes that each have some of the roles.
    #[cfg(feature = "kafka")]
    Kafka(Kafka),
}

/// A domain whose outbox is carried.
#[derive(Clone)]
pub struct Source {
    /// The domain's name, which offsets and metrics carry.
    pub domain: &'static str,
    /// Its database, with the outbox.
    pub db: Db,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A consumer group: what a domain does about the messages of some topics.
#[async_trait]
pub trait Consumer: Send + Sync + 'static {
    /// The name under which the group's progress is kept. It outlives the process: never rename it.
    fn group(&self) -> &'static str;

    /// The topics it wants to hear.
    fn topics(&self) -> &'static [&'static str];

    /// The database its effects go to.
    fn db(&self) -> &Db;

    /// Whether it does anything about such a message. The group passes over others and keeps no trace of them.
    fn wants(&self, _: &Message) -> bool {
        true
    }

    /// Applies one message. Everything it does must go through `tx`, because the call may be rolled back and made
    /// again. A type or a field it does not know is no failure: return `Ok` and leave the message alone.
    async fn apply(&self, tx: &mut Tx<'_>, message: &Message) -> Result<(), Failure>;

    /// Applies several messages in their order, all or none. For a consumer that can do that with less work than one by one; if it
    /// fails the messages come again one by one.
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
    /// It may work later: tried again three times, then set aside.
    #[error("the message could not be applied")]
    Retry(#[source] BoxError),
    /// It can never work: set aside at once.
    #[error("the message can never be applied")]
    Poison(#[source] BoxError),
}

impl From<urr_db::Error> for Failure {
    fn from(error: urr_db::Error) -> Self {
        Self::Retry(error.into())
    }
}

/// The numbers of the bus. Tests shorten the waits; nobody else needs to.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The waits before each retry of a failing message; after the last retry it is set aside. 1 + 2 + 4 s outlast a
    /// deadlock or a restart of something small and hold the messages behind it back for no longer than that.
    pub retries: [Duration; 3],
    /// How often an outbox is looked at when nobody nudges: the most a message is late after a lost nudge.
    pub poll: Duration,
    /// Messages applied in one transaction.
    pub batch: u32,
    /// Within the process: how long a group that has caught up lets messages gather before it looks again. In a rush it then makes a
    /// few large changes where it would make hundreds of small ones, each with a sync of its own that the sale waits behind.
    pub gather: Duration,
    /// One call of a [`Consumer`] may take this long. It is database work only, and a statement has 2 s or less.
    pub apply: Duration,
    /// The waits while a database or the broker is away.
    pub outage: Backoff,
    /// How long a message may wait for a database that answers and yet does not write it, because a table is locked for
    /// instance, before it is set aside after all. At 15 to 30 s between tries it has had 120 of them or more in an hour,
    /// and may be the reason itself. A database that has no room for the letter either is waited for without end.
    pub unwilling: Duration,
    /// How often finished rows are marked and purged, and what waits is counted: often enough for an alert.
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

/// Why a bus cannot start. An unreachable broker is no reason: the bus starts and waits for it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two consumers would share one offset and each get some of the messages.
    #[error("two consumers are registered as group {0}")]
    SameGroup(&'static str),
    /// The Kafka settings make no sense.
    #[error("the Kafka settings are refused: {0}")]
    Settings(String),
}

impl Bus {
    /// A bus within the process.
    pub fn in_process(limits: Limits) -> Self {
        Self::InProcess(InProcess::new(limits))
    }

    /// A bus over Kafka. Fails only if the settings are wrong, not if the broker is away.
    #[cfg(feature = "kafka")]
    pub fn kafka(config: KafkaConfig, limits: Limits) -> Result<Self, Error> {
        Ok(Self::Kafka(Kafka::new(config, limits)?))
    }

    /// Whether what carries the messages answers; nothing to ask within the process.
    pub fn health(&self) -> Option<Arc<dyn urr_telemetry::Check>> {
        match self {
            Self::InProcess(_) => None,
            #[cfg(feature = "kafka")]
            Self::Kafka(bus) => Some(bus.health()),
        }
    }

    /// Starts carrying messages from `sources` to `consumers` until `tasks` is shut down.
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

/// Every statement of this crate, for the test that prepares them all on both engines.
pub fn statements() -> &'static [&'static urr_db::Sql] {
    store::STATEMENTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_message_is_tried_again_after_one_two_and_four_seconds() {
        assert_eq!(Limits::default().retries, [1, 2, 4].map(Duration::from_secs));
    }
}
