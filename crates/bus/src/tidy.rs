//! Marking what everybody has read and forgetting what is old enough.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_db::{Db, Position, Tx, dead_letters, inbox, offsets, outbox, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler, Tasks};
use urr_kernel::Clock;

use crate::{Consumer, Limits, Source, deliver::Delivery, store};

/// Within the process: marks the rows of an outbox that every group has passed, and deletes those marked a week ago.
pub(crate) fn settle_outbox(
    source: &Source,
    consumers: &[Arc<dyn Consumer>],
    limits: &Limits,
    tasks: &Tasks,
    clock: &Clock,
) {
    let readers = Some(consumers.to_vec());
    let tidy = TidyOutbox { source: source.clone(), readers, period: limits.tidy, clock: clock.clone() };
    urr_jobs::run(tasks, Arc::new(tidy), None, clock.clone());
}

/// Over Kafka: the relay marks what it has published, and what was marked a week ago is deleted.
#[cfg(feature = "kafka")]
pub(crate) fn purge_outbox(source: &Source, limits: &Limits, tasks: &Tasks, clock: &Clock) {
    let tidy =
        TidyOutbox { source: source.clone(), readers: None, period: limits.tidy, clock: clock.clone() };
    urr_jobs::run(tasks, Arc::new(tidy), None, clock.clone());
}

/// Forgets messages that a group dealt with so long ago that they cannot come again.
pub(crate) fn care_for_group(delivery: &Delivery, tasks: &Tasks) {
    let tidy = TidyInbox {
        db: delivery.consumer.db().clone(),
        period: delivery.limits.tidy,
        clock: delivery.clock.clone(),
    };
    urr_jobs::run(tasks, Arc::new(tidy), None, delivery.clock.clone());
}

struct TidyOutbox {
    source: Source,
    /// Who must have passed a row before it counts as published; nobody where a relay says so.
    readers: Option<Vec<Arc<dyn Consumer>>>,
    period: Duration,
    clock: Clock,
}

#[async_trait]
impl Reconciler for TidyOutbox {
    fn name(&self) -> &'static str {
        "bus.tidy_outbox"
    }

    fn period(&self) -> Duration {
        self.period
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let now = self.clock.now();
        let mut marked = 0;
        if let Some(readers) = &self.readers
            && let Some(passed) = self.passed_by_all(readers).await?
        {
            marked = transaction!(self.source.db, "bus.mark", async |tx: &mut Tx<'_>| {
                store::mark(tx, passed, now).await
            })?;
        }
        let purged = transaction!(self.source.db, "bus.purge_outbox", async |tx: &mut Tx<'_>| {
            outbox::purge_published(tx, now).await
        })?;
        self.count().await?;
        let more = marked >= u64::from(store::MARK_BATCH) || purged >= u64::from(outbox::PURGE_BATCH);
        Ok(Outcome { done: marked + purged, more })
    }
}

impl TidyOutbox {
    /// Shows what waits, for the alert that tells of a broker or a group that has been away for long.
    async fn count(&self) -> Result<(), urr_db::Error> {
        let db = &self.source.db;
        let backlog = db.read("bus.backlog", async |tx: &mut Tx<'_>| outbox::backlog(tx).await).await?;
        let age = backlog.oldest.map_or(Duration::ZERO, |oldest| self.clock.now().since(oldest));
        let source = self.source.domain;
        metrics::gauge!("urr_outbox_waiting", "source" => source).set(backlog.waiting);
        metrics::gauge!("urr_outbox_oldest_seconds", "source" => source).set(age.as_secs_f64());
        metrics::gauge!("urr_outbox_dead", "source" => source).set(backlog.dead);
        Ok(())
    }

    /// The position of the group that is furthest behind; `None` if some group has not begun, or there is none.
    async fn passed_by_all(&self, readers: &[Arc<dyn Consumer>]) -> Result<Option<Position>, urr_db::Error> {
        let mut furthest_behind: Option<Position> = None;
        for reader in readers {
            let (group, source) = (reader.group(), self.source.domain);
            let at = reader
                .db()
                .read("bus.offset", async |tx: &mut Tx<'_>| offsets::load(tx, group, source).await);
            let Some(at) = at.await? else { return Ok(None) };
            furthest_behind = Some(furthest_behind.map_or(at, |behind| behind.min(at)));
        }
        Ok(furthest_behind)
    }
}

struct TidyInbox {
    db: Db,
    period: Duration,
    clock: Clock,
}

#[async_trait]
impl Reconciler for TidyInbox {
    fn name(&self) -> &'static str {
        "bus.tidy_inbox"
    }

    fn period(&self) -> Duration {
        self.period
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let now = self.clock.now();
        let purged =
            transaction!(self.db, "bus.purge_inbox", async |tx: &mut Tx<'_>| inbox::purge(tx, now).await)?;
        let count = self.db.read("bus.count_dead", async |tx: &mut Tx<'_>| dead_letters::count(tx).await);
        let letters = u32::try_from(count.await?).unwrap_or(u32::MAX);
        metrics::gauge!("urr_bus_dead_letters", "domain" => self.db.domain().name).set(letters);
        Ok(Outcome::batch(purged, u64::from(outbox::PURGE_BATCH)))
    }
}
