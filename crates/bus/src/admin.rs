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

/// Pages of [`MAX_LISTED`] that one command works through: a million messages are hours of work, and an end to a run that
/// new ones would keep alive.
const MAX_PAGES: u32 = 1_000;

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

/// Messages that a group gave up on, after this one or from the beginning, in the order in which they were written.
pub async fn dead_letters(
    consumer: &dyn Consumer,
    after: Option<&DeadLetter>,
    limit: u32,
) -> Result<Vec<DeadLetter>, urr_db::Error> {
    let (group, limit) = (consumer.group(), limit.min(MAX_LISTED));
    let list = async |tx: &mut Tx<'_>| dead_letters::list(tx, group, after, limit).await;
    consumer.db().read("bus.dead_letters", list).await
}

/// How many messages a group gave up on.
pub async fn count_dead_letters(consumer: &dyn Consumer) -> Result<i64, urr_db::Error> {
    let group = consumer.group();
    let count = async |tx: &mut Tx<'_>| dead_letters::count_of(tx, group).await;
    consumer.db().read("bus.count_dead", count).await
}

/// What came of giving dead messages another try.
#[derive(Debug, Default)]
pub struct Again {
    /// So many had it.
    pub sent: u32,
    /// These still cannot be applied.
    pub failed: Vec<(MessageId, RepublishError)>,
    /// There are more than were looked at.
    pub is_cut: bool,
}

/// Delivers the dead letters of a group again, or only that of one message, in the order in which they were written.
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

/// Gives all messages of an outbox that the broker refused another four tries, or only one of them.
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
