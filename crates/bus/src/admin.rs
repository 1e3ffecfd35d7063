//! What an operator asks of the bus: what waits, what was given up on, and another try.

use std::sync::Arc;

use urr_db::{
    Tx,
    dead_letters::{self, DeadLetter},
    inbox,
    outbox::{self, Backlog, Dead},
    transaction,
};
use urr_kernel::{Clock, MessageId};

use crate::{Consumer, Failure, Limits, Source, deliver::Delivery};

/// Rows one question may give back: more than a person reads, less than a terminal chokes on.
pub const MAX_LISTED: u32 = 1_000;

/// Why a dead letter was not delivered after all. It stays where it is.
#[derive(Debug, thiserror::Error)]
pub enum RepublishError {
    /// Somebody else dealt with it, or it never was there.
    #[error("group {group} has no dead letter {message}")]
    NoSuchLetter {
        /// The group that was asked.
        group: &'static str,
        /// The message that was asked for.
        message: MessageId,
    },
    /// It still cannot be applied.
    #[error("the dead letter failed again")]
    Failed(#[from] Failure),
}

impl From<urr_db::Error> for RepublishError {
    fn from(error: urr_db::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// What waits in each outbox: for the broker, or within the process for the group that is furthest behind.
pub async fn backlog(sources: &[Source]) -> Result<Vec<(&'static str, Backlog)>, urr_db::Error> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        let waiting =
            source.db.read("bus.backlog", async |tx: &mut Tx<'_>| outbox::backlog(tx).await).await?;
        all.push((source.domain, waiting));
    }
    Ok(all)
}

/// The newest messages that a group gave up on.
pub async fn dead_letters(consumer: &dyn Consumer, limit: u32) -> Result<Vec<DeadLetter>, urr_db::Error> {
    let list = consumer
        .db()
        .read("bus.dead_letters", async |tx: &mut Tx<'_>| dead_letters::list(tx, MAX_LISTED).await);
    let mut letters = list.await?;
    // Groups of one domain share a table.
    letters.retain(|letter| letter.group == consumer.group());
    letters.truncate(limit as usize);
    Ok(letters)
}

/// Delivers a dead letter to its group again, now and once: taking it out, the inbox and the effect are one transaction.
/// Other groups do not see it a second time.
pub async fn republish(
    consumer: &Arc<dyn Consumer>,
    message: MessageId,
    clock: &Clock,
) -> Result<(), RepublishError> {
    let delivery = Delivery {
        consumer: Arc::clone(consumer),
        limits: Arc::new(Limits::default()),
        clock: clock.clone(),
        stopping: tokio_util::sync::CancellationToken::new(),
    };
    let (group, now) = (consumer.group(), clock.now());
    transaction!(consumer.db(), "bus.republish", async |tx: &mut Tx<'_>| {
        let letter = dead_letters::take(tx, group, message).await?;
        let letter = letter.ok_or(RepublishError::NoSuchLetter { group, message })?;
        if inbox::first_time(tx, group, message, now).await? {
            delivery.apply(tx, &[&letter.message]).await?;
        }
        Ok(())
    })
}

/// Messages that the broker refused for good, after the row numbered `after`.
pub async fn unpublished(source: &Source, after: i64, limit: u32) -> Result<Vec<Dead>, urr_db::Error> {
    let limit = limit.min(MAX_LISTED);
    source
        .db
        .read("bus.unpublished", async |tx: &mut Tx<'_>| outbox::dead_letters(tx, after, limit).await)
        .await
}

/// Gives a message that the broker refused another four tries. Says whether there was one.
pub async fn publish_again(source: &Source, seq: i64, clock: &Clock) -> Result<bool, urr_db::Error> {
    let now = clock.now();
    transaction!(source.db, "bus.publish_again", async |tx: &mut Tx<'_>| {
        outbox::republish(tx, seq, now).await
    })
}
