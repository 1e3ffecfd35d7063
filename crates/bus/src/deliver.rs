//! Applies messages exactly once: inbox row and effect in one transaction, retries, dead letters.

use std::{error::Error as StdError, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use urr_db::{
    Db, Kind, Position, Tx,
    dead_letters::{self, DeadLetter},
    inbox, transaction,
};
use urr_jobs::{Woken, panic_text, pause};
use urr_kernel::{Clock, MessageId};

use crate::{Consumer, Failure, Limits, Message, store};

/// Applies the messages of one consumer group in order.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) consumer: Arc<dyn Consumer>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) clock: Clock,
    /// Cancelled at shutdown, or when the group loses the partition.
    pub(crate) stopping: CancellationToken,
}

/// Where a group's offset is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress<'p> {
    /// In Kafka, committed after the transaction.
    #[cfg(feature = "kafka")]
    Broker,
    /// In the group's own database, updated in the transaction of the effects. The update fails if
    /// the stored offset is not `from`: another process has moved it.
    Offset { source: &'p str, from: Option<Position>, to: Position },
}

/// Why a transaction applied nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("another process has moved the group's offset")]
    Moved,
}

impl From<urr_db::Error> for Refusal {
    fn from(error: urr_db::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Result of delivering one message.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The effect is committed, now or by an earlier delivery.
    Applied,
    /// It failed too often, or can never succeed.
    Dead { cause: String, attempts: u32 },
    /// Another process moved the group's offset: reload it.
    Moved,
    /// The process is stopping; nothing was applied.
    Stopped,
}

/// Result of storing a dead letter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DeadLetterOutcome {
    /// It is stored and the group has moved on.
    Done,
    /// Another process moved the group's offset.
    Moved,
    /// The process is stopping; nothing was stored.
    Stopped,
}

impl Delivery {
    pub(crate) fn group(&self) -> &'static str {
        self.consumer.group()
    }

    /// Whether the group handles this message.
    pub(crate) fn wants(&self, message: &Message) -> bool {
        self.consumer.topics().contains(&&*message.topic) && self.consumer.wants(message)
    }

    /// Applies several messages in one transaction: all or none.
    pub(crate) async fn apply_all(
        &self,
        messages: &[&Message],
        progress: Progress<'_>,
    ) -> Result<(), Refusal> {
        let now = self.clock.now();
        let messages: Vec<&Message> =
            messages.iter().copied().filter(|message| self.wants(message)).collect();
        let applied: usize = transaction!(self.db(), "bus.apply", async |tx: &mut Tx<'_>| {
            // First, because it locks the offset row and so serializes processes of one group.
            self.advance(tx, progress).await?;
            if messages.is_empty() {
                return Ok(0);
            }
            let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
            let mut new = inbox::first_times(tx, self.group(), &ids, now).await?;
            // A message that occurs twice in a batch is applied once.
            let fresh: Vec<&Message> =
                messages.iter().copied().filter(|message| new.remove(&message.id)).collect();
            if !fresh.is_empty() {
                self.apply(tx, &fresh).await?;
            }
            Ok::<usize, Refusal>(fresh.len())
        })?;
        let (applied, repeated) = (applied as u64, (messages.len() - applied) as u64);
        metrics::counter!("urr_bus_applied_total", "group" => self.group()).increment(applied);
        metrics::counter!("urr_bus_repeated_total", "group" => self.group()).increment(repeated);
        Ok(())
    }

    /// Applies one message, with retries as in [`Limits::retries`]. While the database is
    /// unreachable, full or locked it waits instead: the message is not at fault, and a dead letter
    /// could not be stored either.
    pub(crate) async fn one(&self, message: &Message, progress: Progress<'_>) -> Verdict {
        let (mut attempts, mut outages, mut unwilling) = (0_u32, 0_u32, None);
        loop {
            let failure = match self.apply_all(&[message], progress).await {
                Ok(()) => return Verdict::Applied,
                Err(Refusal::Moved) => return Verdict::Moved,
                Err(Refusal::Failed(failure)) => failure,
            };
            if blames_the_store(&failure) {
                outages = outages.saturating_add(1);
                let cause = urr_telemetry::chain(&failure);
                if self.is_exhausted(&mut unwilling).await
                    && self.takes_a_letter(message, &cause, outages).await
                {
                    return Verdict::Dead { cause, attempts: outages };
                }
                if !self.sit_out(outages, &failure).await {
                    return Verdict::Stopped;
                }
                continue;
            }
            (outages, unwilling) = (0, None);
            attempts += 1;
            let cause = urr_telemetry::chain(&failure);
            let wait = self.limits.retries.get(attempts as usize - 1).copied();
            let (Failure::Retry(_), Some(wait)) = (&failure, wait) else {
                return Verdict::Dead { cause, attempts };
            };
            metrics::counter!("urr_bus_retries_total", "group" => self.group()).increment(1);
            tracing::warn!(
                group = self.group(), message = %message.id, kind = message.kind, attempts, cause,
                "message not applied; it will be retried"
            );
            if pause(&self.stopping, None, wait).await == Woken::Stopping {
                return Verdict::Stopped;
            }
        }
    }

    /// Stores a dead letter and advances the group's offset in one transaction. If the database
    /// rejects the letter itself, it is logged and dropped: otherwise the group would be stuck
    /// behind it.
    pub(crate) async fn set_aside(
        &self,
        message: &Message,
        progress: Progress<'_>,
        cause: &str,
        attempts: u32,
    ) -> DeadLetterOutcome {
        tracing::error!(
            group = self.group(), message = %message.id, kind = message.kind, key = message.key, cause, attempts,
            "a message was set aside as a dead letter: its effect is missing until `urr outbox republish` \
             applies it"
        );
        metrics::counter!("urr_bus_dead_letters_total", "group" => self.group()).increment(1);
        let mut letter = Some(self.letter(message, cause, attempts));
        let mut outages = 0_u32;
        loop {
            let kept = transaction!(self.db(), "bus.set_aside", async |tx: &mut Tx<'_>| {
                self.advance(tx, progress).await?;
                if let Some(letter) = &letter {
                    dead_letters::insert(tx, letter).await?;
                }
                Ok::<(), Refusal>(())
            });
            match kept {
                Ok(()) => return DeadLetterOutcome::Done,
                Err(Refusal::Moved) => return DeadLetterOutcome::Moved,
                Err(Refusal::Failed(failure)) if letter.is_some() && !blames_the_store(&failure) => {
                    self.lost(message, &failure);
                    letter = None;
                }
                Err(Refusal::Failed(failure)) => {
                    outages = outages.saturating_add(1);
                    if !self.sit_out(outages, &failure).await {
                        return DeadLetterOutcome::Stopped;
                    }
                }
            }
        }
    }

    fn letter(&self, message: &Message, cause: &str, attempts: u32) -> DeadLetter {
        DeadLetter {
            group: self.group().to_owned(),
            message: message.clone(),
            attempts,
            error: cause.to_owned(),
            dead_at: self.clock.now(),
        }
    }

    fn lost(&self, message: &Message, failure: &Failure) {
        let cause = urr_telemetry::chain(failure);
        tracing::error!(
            group = self.group(), message = %message.id, kind = message.kind, key = message.key, cause,
            "the database refused to store a dead letter: the message is skipped and stays only in its \
             outbox or topic, for seven days"
        );
        metrics::counter!("urr_bus_lost_letters_total", "group" => self.group()).increment(1);
    }

    /// Waits with backoff while a database or the broker is unavailable. Returns `false` at
    /// shutdown.
    pub(crate) async fn sit_out(&self, outages: u32, failure: &(dyn StdError + Sync)) -> bool {
        if outages == 1 {
            let cause = urr_telemetry::chain(failure);
            tracing::error!(
                group = self.group(),
                cause,
                "database or Kafka unavailable: the consumer group waits and retries, no message is lost"
            );
        }
        let wait: Duration = self.limits.outage.delay(outages, self.clock.ticks());
        pause(&self.stopping, None, wait).await != Woken::Stopping
    }

    fn db(&self) -> &Db {
        self.consumer.db()
    }

    /// Whether the database responds to pings and yet has refused this message for longer than
    /// [`Limits::unwilling`]. Time without a response does not count: a dead letter could not be
    /// stored then either.
    async fn is_exhausted(&self, unwilling: &mut Option<Duration>) -> bool {
        let now = self.clock.ticks();
        if self.db().ping().await.is_err() {
            *unwilling = None;
            return false;
        }
        now.saturating_sub(*unwilling.get_or_insert(now)) >= self.limits.unwilling
    }

    /// Tries to store the dead letter and returns whether that worked. A full database takes
    /// neither the letter nor the effect; once it has space, it takes the effect.
    async fn takes_a_letter(&self, message: &Message, cause: &str, attempts: u32) -> bool {
        let letter = self.letter(message, cause, attempts);
        let kept: Result<(), urr_db::Error> =
            transaction!(self.db(), "bus.try_letter", async |tx: &mut Tx<'_>| {
                dead_letters::insert(tx, &letter).await
            });
        kept.is_ok()
    }

    async fn advance(&self, tx: &mut Tx<'_>, progress: Progress<'_>) -> Result<(), Refusal> {
        match progress {
            #[cfg(feature = "kafka")]
            Progress::Broker => Ok(()),
            Progress::Offset { source, from, to } => {
                let moved = store::advance(tx, self.group(), source, from, to).await?;
                if moved { Ok(()) } else { Err(Refusal::Moved) }
            }
        }
    }

    /// Calls the consumer. A panic or a timeout is a failure like any other and rolls back.
    pub(crate) async fn apply(&self, tx: &mut Tx<'_>, messages: &[&Message]) -> Result<(), Failure> {
        let applying = AssertUnwindSafe(self.consumer.apply_all(tx, messages)).catch_unwind();
        match tokio::time::timeout(self.limits.apply, applying).await {
            Ok(Ok(applied)) => applied,
            Ok(Err(panic)) => Err(Failure::Retry(Panicked(panic_text(&*panic).to_owned()).into())),
            Err(_) => Err(Failure::Retry(TookTooLong(self.limits.apply).into())),
        }
    }
}

/// Whether the failure is caused by the database and not by the message: unreachable, full, locked
/// or a conflict. An unknown commit counts too: the inbox shows at the next attempt whether it
/// happened.
fn blames_the_store(failure: &Failure) -> bool {
    behind(failure).is_some_and(|error| {
        error.is_blocked() || matches!(error.kind(), Kind::Unavailable | Kind::UnknownCommit | Kind::Retry)
    })
}

/// The database error in the source chain. `Arc<Error>` needs its own check: its `source()` is that
/// of the inner error.
fn behind(failure: &Failure) -> Option<&urr_db::Error> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(failure);
    while let Some(error) = cause {
        let shared = || error.downcast_ref::<Arc<urr_db::Error>>().map(|shared| &**shared);
        if let Some(error) = error.downcast_ref::<urr_db::Error>().or_else(shared) {
            return Some(error);
        }
        cause = error.source();
    }
    None
}

#[derive(Debug, thiserror::Error)]
#[error("the consumer panicked: {0}")]
struct Panicked(String);

#[derive(Debug, thiserror::Error)]
#[error("the consumer took longer than {} ms", .0.as_millis())]
struct TookTooLong(Duration);

#[cfg(test)]
mod tests {
    use urr_db::{Domain, SqliteOptions};

    use super::*;

    static SHOP: Domain = Domain { name: "shop", migrations: &[] };

    /// The error of a database whose directory does not exist.
    fn away() -> urr_db::Error {
        let dir = tempfile::tempdir().unwrap();
        let opened = Db::sqlite(&dir.path().join("gone"), &SHOP, SqliteOptions::default());
        opened.err().expect("the directory does not exist")
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the seats cannot be read")]
    struct Shared(#[source] Arc<urr_db::Error>);

    #[test]
    fn database_errors_are_found_in_the_source_chain() {
        assert!(blames_the_store(&away().into()));
        assert!(blames_the_store(&Failure::Retry(Shared(Arc::new(away())).into())));
        assert!(!blames_the_store(&Failure::Retry("of another kind".into())));
    }
}
