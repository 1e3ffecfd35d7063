//! The bus within one process: the outbox tables are the log, each group keeps its own offsets.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use urr_db::Position;
use urr_jobs::{Nudge, Tasks, Woken, pause};
use urr_kernel::Clock;

use crate::{
    Consumer, Failure, Limits, Message, Source,
    deliver::{Delivery, Progress, Refusal, SetAside, Verdict},
    log::Log,
    tidy,
};

/// How often an idle lane makes sure that its place in the log still means something: a database can be replaced under a
/// running process.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Carries messages from every outbox to every group without leaving the process.
///
/// Several processes may run the same groups on PostgreSQL: the offset row makes them take turns.
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
                let lane = Lane { log: Arc::clone(&log), delivery: delivery.clone(), nudge: Nudge::new() };
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

/// One commit wakes one waiter; every group has to hear of it.
async fn spread(committed: Nudge, groups: Vec<Nudge>, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = committed.nudged() => groups.iter().for_each(Nudge::nudge),
        }
    }
}

/// One group reading one outbox.
struct Lane {
    log: Arc<Log>,
    delivery: Delivery,
    nudge: Nudge,
}

/// Where the group stands, as far as this lane knows. Another process may move it; the next transaction notices.
#[derive(Clone, Copy)]
enum Standing {
    Unknown,
    /// After this position; `None` if the group has never read.
    After(Option<Position>),
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// There is more, or the group has to look again where it stands.
    Go,
    /// The group has caught up: more may have come meanwhile, or will soon.
    Gather,
    /// The group has seen everything there is.
    Idle,
    Stop,
}

impl Lane {
    async fn run(self) {
        let mut at = Standing::Unknown;
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
                        (at, looked) = (Standing::Unknown, now);
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

    /// Reads one batch and applies it: in one transaction if all goes well, otherwise one by one.
    async fn step(&self, at: &mut Standing) -> Result<Step, Failure> {
        let Delivery { consumer, limits, clock, .. } = &self.delivery;
        let from = match *at {
            Standing::After(position) => position,
            Standing::Unknown => self.log.standing(&**consumer).await?,
        };
        *at = Standing::After(from);
        let batch = self.log.read(from.unwrap_or(Position::START), limits.batch, clock.ticks()).await?;
        let Some((last, _)) = batch.last() else { return Ok(Step::Idle) };
        let wanted: Vec<&Message> =
            batch.iter().map(|(_, message)| message).filter(|message| self.delivery.wants(message)).collect();
        match self.delivery.together(&wanted, self.progress(from, *last)).await {
            Ok(()) => {
                *at = Standing::After(Some(*last));
                Ok(if batch.is_all { Step::Gather } else { Step::Go })
            }
            Err(Refusal::Moved) => {
                *at = Standing::Unknown;
                Ok(Step::Go)
            }
            // Nobody's message is at fault: the group cannot note where it is.
            Err(Refusal::Failed(failure)) if wanted.is_empty() => Err(failure),
            Err(Refusal::Failed(_)) => Ok(self.one_by_one(from, &batch, at).await),
        }
    }

    async fn one_by_one(
        &self,
        from: Option<Position>,
        batch: &[(Position, Message)],
        at: &mut Standing,
    ) -> Step {
        let mut from = from;
        for (to, message) in batch.iter().filter(|(_, message)| self.delivery.wants(message)) {
            let progress = self.progress(from, *to);
            let passed = match self.delivery.one(message, progress).await {
                Verdict::Applied => SetAside::Done,
                Verdict::Dead { cause, attempts } => {
                    self.delivery.set_aside(message, progress, &cause, attempts).await
                }
                Verdict::Moved => SetAside::Moved,
                Verdict::Stopped => SetAside::Stopped,
            };
            match passed {
                SetAside::Done => from = Some(*to),
                SetAside::Moved => {
                    *at = Standing::Unknown;
                    return Step::Go;
                }
                SetAside::Stopped => return Step::Stop,
            }
            *at = Standing::After(from);
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

    /// Wants nothing that is said here.
    struct Deaf(Db);

    #[async_trait]
    impl Consumer for Deaf {
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
            Err(Failure::Poison("it hears nothing".into()))
        }
    }

    /// A lane over an outbox with one message that its group does not want.
    async fn lane(db: &Db) -> Lane {
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
        let consumer: Arc<dyn Consumer> = Arc::new(Deaf(db.clone()));
        let source = Source { domain: "shop", db: db.clone() };
        let log = Arc::new(Log::new(&source, &[Arc::clone(&consumer)]));
        let (limits, stopping) = (Arc::new(Limits::default()), CancellationToken::new());
        Lane { log, delivery: Delivery { consumer, limits, clock, stopping }, nudge: Nudge::new() }
    }

    #[tokio::test]
    async fn a_group_that_cannot_pass_over_what_it_does_not_want_pauses() {
        let (_dir, db) = fresh_sqlite(&SHOP).await;
        let lane = lane(&db).await;
        let mut at = Standing::After(None);
        db.write("test.break", async |tx: &mut Tx<'_>| tx.execute(&NO_OFFSETS, &[]).await).await.unwrap();
        assert!(lane.step(&mut at).await.is_err());
    }

    #[tokio::test]
    async fn a_group_that_read_another_log_has_passed_nothing_of_this_one() {
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
