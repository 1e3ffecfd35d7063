//! Housekeeping: marks published outbox rows, purges old outbox and inbox rows, updates gauges.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_db::{Db, Tx, dead_letters, inbox, outbox, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler, Tasks};
use urr_kernel::Clock;

use crate::{Limits, Source, deliver::Delivery, log::Log, store};

/// In-process bus: marks the outbox rows that every group has processed, and deletes rows marked a
/// week ago.
pub(crate) fn settle_outbox(log: &Arc<Log>, limits: &Limits, tasks: &Tasks, clock: &Clock) {
    let (source, log) = (log.source.clone(), Some(Arc::clone(log)));
    let tidy = TidyOutbox { source, log, period: limits.tidy, clock: clock.clone() };
    urr_jobs::run(tasks, Arc::new(tidy), None, clock.clone());
}

/// Kafka: the relay marks what it published; this deletes rows marked a week ago.
#[cfg(feature = "kafka")]
pub(crate) fn purge_outbox(source: &Source, limits: &Limits, tasks: &Tasks, clock: &Clock) {
    let tidy = TidyOutbox { source: source.clone(), log: None, period: limits.tidy, clock: clock.clone() };
    urr_jobs::run(tasks, Arc::new(tidy), None, clock.clone());
}

/// Deletes inbox rows that are too old for a redelivery.
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
    /// The log whose readers must all have processed a row before it counts as published. `None`
    /// with Kafka, where the relay marks rows.
    log: Option<Arc<Log>>,
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
        if let Some(log) = &self.log {
            let _settled = log.settled().await;
            if let Some(passed) = log.passed_by_all().await? {
                marked = transaction!(self.source.db, "bus.mark", async |tx: &mut Tx<'_>| {
                    store::mark(tx, passed, now).await
                })?;
            }
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
    /// Updates the gauges of waiting rows, on which operators alert.
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
