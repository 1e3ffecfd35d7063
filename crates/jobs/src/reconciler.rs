//! Reconcilers: recurring work without input that is safe to repeat.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use urr_kernel::{Clock, Timestamp};

use crate::{Backoff, BoxError, Lease, Nudge, Schedule, Tasks, Woken, panic_text, pause};

/// One kind of recurring work. It reads what is overdue from the stores and does it, so a run that
/// is lost, interrupted or repeated does no harm.
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// The name in logs and metrics, such as `tickets.expire_holds`.
    fn name(&self) -> &'static str;

    /// How often it runs without nudges.
    fn period(&self) -> Duration;

    /// When it runs: every [`Reconciler::period`] unless a time of day matters. It also runs once
    /// at start, which makes up for a due time missed while no process was running.
    fn schedule(&self) -> Schedule {
        Schedule::every(self.period()).unwrap_or_else(|bad| panic!("{}: {bad}", self.name()))
    }

    /// A run that takes longer is dropped and counts as failed. The default leaves 30 s more than
    /// the slowest provider call.
    fn time_limit(&self) -> Duration {
        Duration::from_mins(1)
    }

    /// Lets holders of a clone request a run before its time.
    fn nudge(&self) -> Option<Nudge> {
        None
    }

    /// Runs once over one bounded batch.
    async fn run(&self) -> Result<Outcome, BoxError>;
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of items processed.
    pub done: u64,
    /// The batch was full: run again at once.
    pub more: bool,
}

impl Outcome {
    /// `done` items processed and no more known.
    pub const fn done(done: u64) -> Self {
        Self { done, more: false }
    }

    /// A run over a batch of at most `limit` items: a full batch means that there may be more.
    pub const fn batch(done: u64, limit: u64) -> Self {
        Self { done, more: done >= limit }
    }
}

/// Runs a reconciler until shutdown. With a lease it runs in one process at a time.
///
/// A nudge only reaches its own process; if another process holds the lease, that one waits for its
/// period.
pub fn run(tasks: &Tasks, reconciler: Arc<dyn Reconciler>, lease: Option<Lease>, clock: Clock) {
    let name = reconciler.name();
    let work = Loop { reconciler, lease, clock, stopping: tasks.token() };
    tasks.spawn(name, work.run());
}

/// While waiting for a time of day, re-read the wall clock this often, because it may be stepped.
const WALL_CLOCK_STEP: Duration = Duration::from_mins(1);

struct Loop {
    reconciler: Arc<dyn Reconciler>,
    lease: Option<Lease>,
    clock: Clock,
    stopping: CancellationToken,
}

enum RunResult {
    Done(Outcome),
    Failed,
    /// Another process holds the lease.
    NotLeader,
}

impl Loop {
    async fn run(self) {
        let mut failures = 0_u32;
        while !self.stopping.is_cancelled() {
            let (ticks, at) = (self.clock.ticks(), self.clock.now());
            let woken = match self.run_once().await {
                RunResult::Done(Outcome { more: true, .. }) => {
                    failures = 0;
                    tokio::task::yield_now().await;
                    Woken::Elapsed
                }
                RunResult::Done(_) => {
                    failures = 0;
                    self.holding_on(self.until_due(ticks, at)).await
                }
                RunResult::Failed => {
                    failures = failures.saturating_add(1);
                    // Another process may succeed. Nudges are kept but do not end the wait: a busy
                    // system would defeat the backoff.
                    self.let_go().await;
                    let delay = Backoff::STORE.delay(failures, self.clock.ticks());
                    pause(&self.stopping, None, delay).await
                }
                RunResult::NotLeader => {
                    let ttl = self.lease.as_ref().map_or(WALL_CLOCK_STEP, Lease::ttl);
                    pause(&self.stopping, None, ttl / 2).await
                }
            };
            if woken == Woken::Stopping {
                break;
            }
        }
        self.let_go().await;
    }

    async fn let_go(&self) {
        if let Some(lease) = &self.lease {
            lease.release(&self.clock).await;
        }
    }

    /// Waits for the next run and keeps the lease meanwhile. Many periods are longer than the TTL;
    /// if the lease expired, another process would take it and repeat the work at once.
    async fn holding_on(&self, wait: impl Future<Output = Woken>) -> Woken {
        let Some(lease) = &self.lease else { return wait.await };
        let mut wait = pin!(wait);
        tokio::select! {
            biased;
            woken = wait.as_mut() => return woken,
            () = lease.lost(&self.clock) => {}
        }
        wait.await
    }

    async fn until_due(&self, ticks: Duration, at: Timestamp) -> Woken {
        let (schedule, nudge) = (self.reconciler.schedule(), self.reconciler.nudge());
        if let Some(period) = schedule.period() {
            let spent = self.clock.ticks().saturating_sub(ticks);
            let period = self.clock.real(period);
            return pause(&self.stopping, nudge.as_ref(), period.saturating_sub(spent)).await;
        }
        let due = schedule.next(at);
        loop {
            let left = due.since(self.clock.now());
            if left.is_zero() {
                return Woken::Elapsed;
            }
            match pause(&self.stopping, nudge.as_ref(), self.clock.real(left).min(WALL_CLOCK_STEP)).await {
                Woken::Elapsed => {}
                woken => return woken,
            }
        }
    }

    async fn run_once(&self) -> RunResult {
        let started = self.clock.ticks();
        let Some(lease) = &self.lease else {
            let outcome = self.bounded().await;
            return self.report(started, outcome);
        };
        match lease.hold(&self.clock).await {
            Ok(true) => {}
            Ok(false) => return RunResult::NotLeader,
            Err(error) => return self.report(started, Err(Failed::new("error", error.into()))),
        }
        let outcome = tokio::select! {
            outcome = self.bounded() => outcome,
            () = lease.lost(&self.clock) => Err(Failed::new("lost", LeaseLost.into())),
        };
        self.report(started, outcome)
    }

    async fn bounded(&self) -> Result<Outcome, Failed> {
        let limit = self.reconciler.time_limit();
        let run = AssertUnwindSafe(self.reconciler.run()).catch_unwind();
        match tokio::time::timeout(limit, run).await {
            Ok(Ok(Ok(outcome))) => Ok(outcome),
            Ok(Ok(Err(error))) => Err(Failed::new("error", error)),
            Ok(Err(panic)) => Err(Failed::new("panic", Panicked(panic_text(&*panic).to_owned()).into())),
            Err(_) => Err(Failed::new("timeout", TookTooLong(limit).into())),
        }
    }

    fn report(&self, started: Duration, outcome: Result<Outcome, Failed>) -> RunResult {
        let job = self.reconciler.name();
        let took = self.clock.ticks().saturating_sub(started);
        metrics::histogram!("urr_job_seconds", "job" => job).record(took.as_secs_f64());
        let label = outcome.as_ref().map_or_else(|failed| failed.how, |_| "ok");
        metrics::counter!("urr_job_runs_total", "job" => job, "outcome" => label).increment(1);
        match outcome {
            Ok(outcome) => {
                metrics::counter!("urr_job_done_total", "job" => job).increment(outcome.done);
                RunResult::Done(outcome)
            }
            Err(failed) => {
                tracing::error!(
                    job,
                    cause = urr_telemetry::chain(&*failed.error),
                    "job run failed: retrying with backoff"
                );
                RunResult::Failed
            }
        }
    }
}

struct Failed {
    how: &'static str,
    error: BoxError,
}

impl Failed {
    fn new(how: &'static str, error: BoxError) -> Self {
        Self { how, error }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the run panicked: {0}")]
struct Panicked(String);

#[derive(Debug, thiserror::Error)]
#[error("the run took longer than {} ms and was dropped", .0.as_millis())]
struct TookTooLong(Duration);

#[derive(Debug, thiserror::Error)]
#[error("the lease was lost during the run, which was dropped")]
struct LeaseLost;

#[cfg(test)]
mod tests;
