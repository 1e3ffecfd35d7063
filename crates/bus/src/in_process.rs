//! The in-process bus: the outbox tables are the log and each group stores its own offsets.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use urr_db::Position;
use urr_jobs::{Nudge, Tasks, Woken, pause};
use urr_kernel::Clock;

use crate::{
    Consumer, Failure, Limits, Message, Source,
    deliver::{DeadLetterOutcome, Delivery, Progress, Refusal, Verdict},
    log::Log,
    tidy,
};

/// How often an idle lane checks that its offset is still within the log: a database can be
/// restored under a running process.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Delivers messages from every outbox to every group within the process.
///
/// Several processes may run the same groups on PostgreSQL: the offset row serializes them.
#[derive(Clone, Debug)]
pub struct InProcess {
    limits: Arc<Limits>,
}

impl InProcess {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits: Arc::new(limits) }
    }

    pub(crate) fn start(
        &self,
        sources: &[Source],
        consumers: &[Arc<dyn Consumer>],
        tasks: &Tasks,
        clock: &Clock,
    ) {
        let deliveries: Vec<Delivery> = consumers
            .iter()
            .map(|consumer| Delivery {
                consumer: Arc::clone(consumer),
                limits: Arc::clone(&self.limits),
                clock: clock.clone(),
                stopping: tasks.token(),
            })
            .collect();
        for source in sources {
            let log = Arc::new(Log::new(source, consumers));
            let mut nudges = Vec::with_capacity(deliveries.len());
            for delivery in &deliveries {
                let lane =
                    GroupReader { log: Arc::clone(&log), delivery: delivery.clone(), nudge: Nudge::new() };
                nudges.push(lane.nudge.clone());
                tasks.spawn_essential(format!("bus.{}.{}", delivery.group(), source.domain), lane.run());
            }
            let committed = Nudge::from(source.db.outbox_nudge());
            tasks.spawn(format!("bus.nudge.{}", source.domain), spread(committed, nudges, tasks.token()));
            tidy::settle_outbox(&log, &self.limits, tasks, clock);
        }
        for delivery in &deliveries {
            tidy::care_for_group(delivery, tasks);
        }
    }
}

/// Forwards each commit notification, which wakes one waiter, to all groups.
async fn spread(committed: Nudge, groups: Vec<Nudge>, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = committed.nudged() => groups.iter().for_each(Nudge::nudge),
        }
    }
}

/// One group that reads one outbox.
struct GroupReader {
    log: Arc<Log>,
    delivery: Delivery,
    nudge: Nudge,
}

/// The group's offset as this lane last saw it. If another process moves it, the next transaction
/// fails and it is reloaded.
#[derive(Clone, Copy)]
enum GroupOffset {
    Unknown,
    /// The last processed position; `None` if the group has never read.
    After(Option<Position>),
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// More messages are available, or the offset must be reloaded.
    Go,
    /// Caught up. Wait briefly so that new messages form a batch.
    Gather,
    /// Nothing to read.
    Idle,
    Stop,
}

impl GroupReader {
    async fn run(self) {
        let mut at = GroupOffset::Unknown;
        let mut outages = 0_u32;
        let mut looked = self.delivery.clock.ticks();
        while !self.delivery.stopping.is_cancelled() {
            match self.step(&mut at).await {
                Ok(Step::Go) => outages = 0,
                Ok(Step::Gather) => {
                    outages = 0;
                    let gather = self.delivery.limits.gather;
                    if pause(&self.delivery.stopping, None, gather).await == Woken::Stopping {
                        return;
                    }
                }
                Ok(Step::Idle) => {
                    outages = 0;
                    let now = self.delivery.clock.ticks();
                    if now.saturating_sub(looked) >= LOOK_AGAIN {
                        (at, looked) = (GroupOffset::Unknown, now);
                    }
                    let poll = self.delivery.limits.poll;
                    if pause(&self.delivery.stopping, Some(&self.nudge), poll).await == Woken::Stopping {
                        return;
                    }
                }
                Ok(Step::Stop) => return,
                Err(error) => {
                    outages = outages.saturating_add(1);
                    if !self.delivery.sit_out(outages, &error).await {
                        return;
                    }
                }
            }
        }
    }

    /// Reads one batch and applies it in one transaction. If that fails, applies the messages one
    /// by one.
    async fn step(&self, at: &mut GroupOffset) -> Result<Step, Failure> {
        let Delivery { consumer, limits, clock, .. } = &self.delivery;
        let from = match *at {
            GroupOffset::After(position) => position,
            GroupOffset::Unknown => self.log.standing(&**consumer).await?,
        };
        *at = GroupOffset::After(from);
        let batch = self.log.read(from.unwrap_or(Position::START), limits.batch, clock.ticks()).await?;
        let Some((last, _)) = batch.last() else { return Ok(Step::Idle) };
        let wanted: Vec<&Message> =
            batch.iter().map(|(_, message)| message).filter(|message| self.delivery.wants(message)).collect();
        match self.delivery.apply_all(&wanted, self.progress(from, *last)).await {
            Ok(()) => {
                *at = GroupOffset::After(Some(*last));
                Ok(if batch.is_all { Step::Gather } else { Step::Go })
            }
            Err(Refusal::Moved) => {
                *at = GroupOffset::Unknown;
                Ok(Step::Go)
            }
            // No message is involved: the offset could not be stored.
            Err(Refusal::Failed(failure)) if wanted.is_empty() => Err(failure),
            Err(Refusal::Failed(_)) => Ok(self.one_by_one(from, &batch, at).await),
        }
    }

    async fn one_by_one(
        &self,
        from: Option<Position>,
        batch: &[(Position, Message)],
        at: &mut GroupOffset,
    ) -> Step {
        let mut from = from;
        for (to, message) in batch.iter().filter(|(_, message)| self.delivery.wants(message)) {
            let progress = self.progress(from, *to);
            let passed = match self.delivery.one(message, progress).await {
                Verdict::Applied => DeadLetterOutcome::Done,
                Verdict::Dead { cause, attempts } => {
                    self.delivery.set_aside(message, progress, &cause, attempts).await
                }
                Verdict::Moved => DeadLetterOutcome::Moved,
                Verdict::Stopped => DeadLetterOutcome::Stopped,
            };
            match passed {
                DeadLetterOutcome::Done => from = Some(*to),
                DeadLetterOutcome::Moved => {
                    *at = GroupOffset::Unknown;
                    return Step::Go;
                }
                DeadLetterOutcome::Stopped => return Step::Stop,
            }
            *at = GroupOffset::After(from);
        }
        Step::Go
    }

    fn progress(&self, from: Option<Position>, to: Position) -> Progress<'_> {
        Progress::Offset { source: self.log.source.domain, from, to }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use urr_db::{Db, Domain, Tx, offsets, outbox};
    use urr_kernel::{Ids, MessageId};
    use urr_testkit::{fixed_clock, fresh_sqlite};

    use super::*;

    static SHOP: Domain = Domain { name: "shop", migrations: &[] };

    urr_db::statements! {
        NO_OFFSETS = "drop table bus_offsets";
    }

    /// A consumer of another topic.
    struct OtherTopicConsumer(Db);

    #[async_trait]
    impl Consumer for OtherTopicConsumer {
        fn group(&self) -> &'static str {
            "deaf"
        }

        fn topics(&self) -> &'static [&'static str] {
            &["elsewhere"]
        }

        fn db(&self) -> &Db {
            &self.0
        }

        async fn apply(&self, _: &mut Tx<'_>, _: &Message) -> Result<(), Failure> {
            Err(Failure::Poison("unexpected message".into()))
        }
    }

    /// A lane whose outbox has one message that the group does not handle.
    async fn lane(db: &Db) -> GroupReader {
        let clock = fixed_clock();
        let message = Message {
            id: Ids::random(clock.clone()).next::<MessageId>(),
            topic: "here".to_owned(),
            key: "a".to_owned(),
            kind: "SAID".to_owned(),
            payload: "{}".to_owned(),
            at: clock.now(),
        };
        db.write("test.say", async |tx: &mut Tx<'_>| outbox::append(tx, &message).await).await.unwrap();
        let consumer: Arc<dyn Consumer> = Arc::new(OtherTopicConsumer(db.clone()));
        let source = Source { domain: "shop", db: db.clone() };
        let log = Arc::new(Log::new(&source, &[Arc::clone(&consumer)]));
        let (limits, stopping) = (Arc::new(Limits::default()), CancellationToken::new());
        GroupReader { log, delivery: Delivery { consumer, limits, clock, stopping }, nudge: Nudge::new() }
    }

    #[tokio::test]
    async fn failing_to_store_the_offset_of_skipped_messages_is_an_error() {
        let (_dir, db) = fresh_sqlite(&SHOP).await;
        let lane = lane(&db).await;
        let mut at = GroupOffset::After(None);
        db.write("test.break", async |tx: &mut Tx<'_>| tx.execute(&NO_OFFSETS, &[]).await).await.unwrap();
        assert!(lane.step(&mut at).await.is_err());
    }

    #[tokio::test]
    async fn an_offset_beyond_the_log_counts_as_unread() {
        let (_dir, db) = fresh_sqlite(&SHOP).await;
        let lane = lane(&db).await;
        for (seq, passed) in [(1, true), (2, false), (1_000, false)] {
            let at = Position { xid: 0, seq };
            db.write("test.stand", async |tx: &mut Tx<'_>| offsets::store(tx, "deaf", "shop", at).await)
                .await
                .unwrap();
            assert_eq!(lane.log.passed_by_all().await.unwrap(), passed.then_some(at), "{seq}");
        }
    }
}
