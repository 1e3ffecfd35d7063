//! Applying messages once: inbox and effect in one transaction, retries, and giving up.

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

/// Applies the messages of one group, in the order in which it is given them.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) consumer: Arc<dyn Consumer>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) clock: Clock,
    /// The end of the process, or of this group's turn at a partition.
    pub(crate) stopping: CancellationToken,
}

/// How a group remembers what it has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress<'p> {
    /// The broker remembers, and is told after the transaction.
    #[cfg(feature = "kafka")]
    Broker,
    /// A row in the group's own database remembers, moved in the same transaction as the effects. Moving it fails if it
    /// no longer stands at `from`: then another process was here first.
    Offset { source: &'p str, from: Option<Position>, to: Position },
}

/// Why nothing was applied.
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

/// How the delivery of one message ended.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Its effect is committed, now or before.
    Applied,
    /// It failed too often, or can never work.
    Dead { cause: String, attempts: u32 },
    /// Another process has moved the group's offset: look where it stands.
    Moved,
    /// The process is stopping; nothing was applied.
    Stopped,
}

/// How setting a message aside ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetAside {
    /// It is kept, and the group has moved on.
    Done,
    /// Another process has moved the group's offset.
    Moved,
    /// The process is stopping; nothing was kept.
    Stopped,
}

impl Delivery {
    pub(crate) fn group(&self) -> &'static str {
        self.consumer.group()
    }

    /// Whether the group does anything about a message.
    pub(crate) fn wants(&self, message: &Message) -> bool {
        self.consumer.topics().contains(&&*message.topic) && self.consumer.wants(message)
    }

    /// Applies several messages in one transaction: all or none.
    pub(crate) async fn together(
        &self,
        messages: &[&Message],
        progress: Progress<'_>,
    ) -> Result<(), Refusal> {
        let now = self.clock.now();
        let messages: Vec<&Message> =
            messages.iter().copied().filter(|message| self.wants(message)).collect();
        let applied: usize = transaction!(self.db(), "bus.apply", async |tx: &mut Tx<'_>| {
            // First, because it locks the offset: two processes of one group take turns here.
            self.advance(tx, progress).await?;
            if messages.is_empty() {
                return Ok(0);
            }
            let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
            let mut new = inbox::first_times(tx, self.group(), &ids, now).await?;
            // A message that stands twice in one batch is new once.
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

    /// Applies one message, trying again as [`Limits::retries`] says. A database that is away, full or locked is waited
    /// for: that is not the message's fault, and the group could not note a dead letter either.
    pub(crate) async fn one(&self, message: &Message, progress: Progress<'_>) -> Verdict {
        let (mut attempts, mut outages, mut unwilling) = (0_u32, 0_u32, None);
        loop {
            let failure = match self.together(&[message], progress).await {
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
                "a message could not be applied and is tried again"
            );
            if pause(&self.stopping, None, wait).await == Woken::Stopping {
                return Verdict::Stopped;
            }
        }
    }

    /// Keeps a message that its group gave up on, and lets the group move on, in one transaction. A letter that the
    /// database will never take is told of and let go, for a group that stands still loses every message behind it.
    pub(crate) async fn set_aside(
        &self,
        message: &Message,
        progress: Progress<'_>,
        cause: &str,
        attempts: u32,
    ) -> SetAside {
        tracing::error!(
            group = self.group(), message = %message.id, kind = message.kind, key = message.key, cause, attempts,
            "a message was set aside as a dead letter"
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
                Ok(()) => return SetAside::Done,
                Err(Refusal::Moved) => return SetAside::Moved,
                Err(Refusal::Failed(failure)) if letter.is_some() && !blames_the_store(&failure) => {
                    self.lost(message, &failure);
                    letter = None;
                }
                Err(Refusal::Failed(failure)) => {
                    outages = outages.saturating_add(1);
                    if !self.sit_out(outages, &failure).await {
                        return SetAside::Stopped;
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
            "the database does not take a dead letter; the group moves on without it"
        );
        metrics::counter!("urr_bus_lost_letters_total", "group" => self.group()).increment(1);
    }

    /// Waits while a database or the broker is away; `false` if the process is stopping.
    pub(crate) async fn sit_out(&self, outages: u32, failure: &(dyn StdError + Sync)) -> bool {
        if outages == 1 {
            let cause = urr_telemetry::chain(failure);
            tracing::error!(group = self.group(), cause, "the group waits for something that is away");
        }
        let wait: Duration = self.limits.outage.delay(outages, self.clock.ticks());
        pause(&self.stopping, None, wait).await != Woken::Stopping
    }

    fn db(&self) -> &Db {
        self.consumer.db()
    }

    /// Whether the store has answered questions and yet refused this one message for longer than [`Limits::unwilling`].
    /// The time in which it did not even answer does not count: it could not keep a dead letter either.
    async fn is_exhausted(&self, unwilling: &mut Option<Duration>) -> bool {
        let now = self.clock.ticks();
        if self.db().ping().await.is_err() {
            *unwilling = None;
            return false;
        }
        now.saturating_sub(*unwilling.get_or_insert(now)) >= self.limits.unwilling
    }

    /// Whether the store keeps a letter, which it then has. One that is full takes neither that nor the effect, and once it has room again
    /// it takes the effect.
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

    /// Calls the consumer. What it panics with is a failure like any other; the transaction rolls back.
    pub(crate) async fn apply(&self, tx: &mut Tx<'_>, messages: &[&Message]) -> Result<(), Failure> {
        let applying = AssertUnwindSafe(self.consumer.apply_all(tx, messages)).catch_unwind();
        match tokio::time::timeout(self.limits.apply, applying).await {
            Ok(Ok(applied)) => applied,
            Ok(Err(panic)) => Err(Failure::Retry(Panicked(panic_text(&*panic).to_owned()).into())),
            Err(_) => Err(Failure::Retry(TookTooLong(self.limits.apply).into())),
        }
    }
}

/// Whether a database error lies behind a failure that the message may have nothing to do with: it was away, full, locked
/// or had others in the way. An unknown commit counts: the inbox tells on the next try whether it happened.
fn blames_the_store(failure: &Failure) -> bool {
    behind(failure).is_some_and(|error| {
        error.is_blocked() || matches!(error.kind(), Kind::Unavailable | Kind::UnknownCommit | Kind::Retry)
    })
}

/// The database error behind a failure. One that is shared answers `source()` with what lies behind it, so it is looked
/// for by itself.
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

    /// As of a database whose directory is gone.
    fn away() -> urr_db::Error {
        let dir = tempfile::tempdir().unwrap();
        let opened = Db::sqlite(&dir.path().join("gone"), &SHOP, SqliteOptions::default());
        opened.err().expect("there is no such directory")
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the seats cannot be read")]
    struct Shared(#[source] Arc<urr_db::Error>);

    #[test]
    fn a_store_is_blamed_through_whatever_wraps_its_error() {
        assert!(blames_the_store(&away().into()));
        assert!(blames_the_store(&Failure::Retry(Shared(Arc::new(away())).into())));
        assert!(!blames_the_store(&Failure::Retry("of another kind".into())));
    }
}
