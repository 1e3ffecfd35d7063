//! Operator functions: backlog, dead letters, republishing.

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

/// Most rows returned at once: more than a person reads.
pub const MAX_LISTED: u32 = 1_000;

/// Most pages of [`MAX_LISTED`] per command. A million messages take hours, and newly arriving ones
/// must not keep the command running.
const MAX_PAGES: u32 = 1_000;

/// Why a dead letter was not republished. It is kept.
#[derive(Debug, thiserror::Error)]
pub enum RepublishError {
    /// It does not exist, or is already handled.
    #[error("group {group} has no dead letter {message}")]
    NoSuchLetter {
        /// The group.
        group: &'static str,
        /// The message id.
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

/// The backlog of each outbox: rows waiting for Kafka or, in process, for the slowest group.
pub async fn backlog(sources: &[Source]) -> Result<Vec<(&'static str, Backlog)>, urr_db::Error> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        let waiting =
            source.db.read("bus.backlog", async |tx: &mut Tx<'_>| outbox::backlog(tx).await).await?;
        all.push((source.domain, waiting));
    }
    Ok(all)
}

/// The dead letters of a group in the order they were written, starting after `after`.
pub async fn dead_letters(
    consumer: &dyn Consumer,
    after: Option<&DeadLetter>,
    limit: u32,
) -> Result<Vec<DeadLetter>, urr_db::Error> {
    let (group, limit) = (consumer.group(), limit.min(MAX_LISTED));
    let list = async |tx: &mut Tx<'_>| dead_letters::list(tx, group, after, limit).await;
    consumer.db().read("bus.dead_letters", list).await
}

/// The number of dead letters of a group.
pub async fn count_dead_letters(consumer: &dyn Consumer) -> Result<i64, urr_db::Error> {
    let group = consumer.group();
    let count = async |tx: &mut Tx<'_>| dead_letters::count_of(tx, group).await;
    consumer.db().read("bus.count_dead", count).await
}

/// Result of republishing.
#[derive(Debug, Default)]
pub struct Again {
    /// Number of messages republished.
    pub sent: u32,
    /// Messages that failed again.
    pub failed: Vec<(MessageId, RepublishError)>,
    /// Whether more messages were left than one command handles.
    pub is_cut: bool,
}

/// Republishes the dead letters of a group, or only one, in the order they were written.
pub async fn republish_all(
    consumer: &Arc<dyn Consumer>,
    only: Option<MessageId>,
    clock: &Clock,
) -> Result<Again, urr_db::Error> {
    let (mut again, mut last) = (Again::default(), None);
    for _ in 0..MAX_PAGES {
        let letters = dead_letters(&**consumer, last.as_ref(), MAX_LISTED).await?;
        let ids = letters.iter().map(|letter| letter.message.id);
        for message in ids.filter(|id| only.is_none_or(|only| only == *id)) {
            match republish(consumer, message, clock).await {
                Ok(()) => again.sent += 1,
                Err(error) => again.failed.push((message, error)),
            }
        }
        last = letters.into_iter().next_back();
        if last.is_none() {
            return Ok(again);
        }
    }
    Ok(Again { is_cut: true, ..again })
}

/// Applies a dead letter once, immediately. Removing it, the inbox row and the effect are one
/// transaction. Other groups are not affected.
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

/// Messages that Kafka refused permanently, after the row numbered `after`.
pub async fn unpublished(source: &Source, after: i64, limit: u32) -> Result<Vec<Dead>, urr_db::Error> {
    let limit = limit.min(MAX_LISTED);
    source
        .db
        .read("bus.unpublished", async |tx: &mut Tx<'_>| outbox::dead_letters(tx, after, limit).await)
        .await
}

/// Gives a refused message four more attempts. Returns whether it exists.
pub async fn publish_again(source: &Source, seq: i64, clock: &Clock) -> Result<bool, urr_db::Error> {
    let now = clock.now();
    transaction!(source.db, "bus.publish_again", async |tx: &mut Tx<'_>| {
        outbox::republish(tx, seq, now).await
    })
}

/// Gives all refused messages of an outbox, or only one, four more attempts.
pub async fn publish_all_again(
    source: &Source,
    only: Option<MessageId>,
    clock: &Clock,
) -> Result<Again, urr_db::Error> {
    let (mut again, mut last) = (Again::default(), 0);
    for _ in 0..MAX_PAGES {
        let dead = unpublished(source, last, MAX_LISTED).await?;
        for dead in dead.iter().filter(|dead| only.is_none_or(|only| only == dead.message.id)) {
            again.sent += u32::from(publish_again(source, dead.seq, clock).await?);
        }
        let Some(end) = dead.last() else { return Ok(again) };
        last = end.seq;
    }
    Ok(Again { is_cut: true, ..again })
}
