//! The bus within one process: the outbox tables are the log, each group keeps its own offsets.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use urr_db::{Position, Tx, offsets, outbox};
use urr_jobs::{Nudge, Tasks, Woken, pause};
use urr_kernel::Clock;

use crate::{
    Consumer, Limits, Message, Source,
    deliver::{Delivery, Progress, Refusal, SetAside, Verdict},
    tidy,
};

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
            let mut nudges = Vec::with_capacity(deliveries.len());
            for delivery in &deliveries {
                let lane = Lane { source: source.clone(), delivery: delivery.clone(), nudge: Nudge::new() };
                nudges.push(lane.nudge.clone());
                tasks.spawn_essential(format!("bus.{}.{}", delivery.group(), source.domain), lane.run());
            }
            let committed = Nudge::from(source.db.outbox_nudge());
            tasks.spawn(format!("bus.nudge.{}", source.domain), spread(committed, nudges, tasks.token()));
            tidy::settle_outbox(source, consumers, &self.limits, tasks, clock);
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
    source: Source,
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

enum Step {
    /// There may be more.
    Go,
    /// The group has seen everything there is.
    Idle,
    Stop,
}

impl Lane {
    async fn run(self) {
        let mut at = Standing::Unknown;
        let mut outages = 0_u32;
        while !self.delivery.stopping.is_cancelled() {
            match self.step(&mut at).await {
                Ok(Step::Go) => outages = 0,
                Ok(Step::Idle) => {
                    outages = 0;
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
    async fn step(&self, at: &mut Standing) -> Result<Step, urr_db::Error> {
        let from = match *at {
            Standing::After(position) => position,
            Standing::Unknown => self.load().await?,
        };
        *at = Standing::After(from);
        let batch = self.read(from.unwrap_or(Position::START)).await?;
        let Some((last, _)) = batch.last() else { return Ok(Step::Idle) };
        let wanted: Vec<&Message> =
            batch.iter().map(|(_, message)| message).filter(|message| self.wants(message)).collect();
        match self.delivery.together(&wanted, self.progress(from, *last)).await {
            Ok(()) => {
                *at = Standing::After(Some(*last));
                Ok(Step::Go)
            }
            Err(Refusal::Moved) => {
                *at = Standing::Unknown;
                Ok(Step::Go)
            }
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
        for (to, message) in batch.iter().filter(|(_, message)| self.wants(message)) {
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

    async fn load(&self) -> Result<Option<Position>, urr_db::Error> {
        let (group, source) = (self.delivery.group(), self.source.domain);
        self.delivery
            .consumer
            .db()
            .read("bus.offset", async |tx: &mut Tx<'_>| offsets::load(tx, group, source).await)
            .await
    }

    async fn read(&self, after: Position) -> Result<Vec<(Position, Message)>, urr_db::Error> {
        let limit = self.delivery.limits.batch;
        self.source
            .db
            .read("bus.read", async |tx: &mut Tx<'_>| outbox::read_after(tx, after, limit).await)
            .await
    }

    fn wants(&self, message: &Message) -> bool {
        self.delivery.consumer.topics().contains(&&*message.topic)
    }

    fn progress(&self, from: Option<Position>, to: Position) -> Progress<'_> {
        Progress::Offset { source: self.source.domain, from, to }
    }
}
