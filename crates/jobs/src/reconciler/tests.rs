//! Reconcilers on a paused clock.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::*;

type Step = Box<dyn FnMut(usize) -> Result<Outcome, BoxError> + Send>;

struct Probe {
    schedule: Schedule,
    nudge: Nudge,
    runs: AtomicUsize,
    running: AtomicUsize,
    takes: Duration,
    step: Mutex<Step>,
}

impl Probe {
    fn new(period: Duration, step: impl FnMut(usize) -> Result<Outcome, BoxError> + Send + 'static) -> Self {
        Self {
            schedule: Schedule::every(period).unwrap(),
            nudge: Nudge::new(),
            runs: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            takes: Duration::ZERO,
            step: Mutex::new(Box::new(step)),
        }
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Reconciler for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn period(&self) -> Duration {
        HOUR
    }

    fn schedule(&self) -> Schedule {
        self.schedule.clone()
    }

    fn nudge(&self) -> Option<Nudge> {
        Some(self.nudge.clone())
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        assert_eq!(self.running.fetch_add(1, Ordering::SeqCst), 0, "runs must not overlap");
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(self.takes).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        (self.step.lock().unwrap())(run)
    }
}

const HOUR: Duration = Duration::from_hours(1);

fn clock() -> Clock {
    Clock::fixed("2026-06-01T01:00:00Z".parse().unwrap())
}

fn start(probe: Probe, clock: &Clock) -> (Tasks, Arc<Probe>) {
    let (tasks, probe) = (Tasks::new(), Arc::new(probe));
    run(&tasks, Arc::clone(&probe) as Arc<dyn Reconciler>, None, clock.clone());
    (tasks, probe)
}

async fn until(probe: &Probe, runs: usize) {
    let waiting = async {
        while probe.runs() < runs {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(24 * HOUR, waiting).await.expect("the expected run did not happen");
}

#[tokio::test(start_paused = true)]
async fn runs_at_start_each_period_and_when_nudged() {
    let (tasks, probe) = start(Probe::new(HOUR, |_| Ok(Outcome::default())), &clock());
    until(&probe, 1).await;
    tokio::time::sleep(HOUR / 2).await;
    assert_eq!(probe.runs(), 1);
    probe.nudge.nudge();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(probe.runs(), 2);
    tokio::time::sleep(HOUR).await;
    assert_eq!(probe.runs(), 3);
    assert_eq!(tasks.shutdown(HOUR).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn nudge_during_a_run_causes_one_more_without_overlap() {
    let probe = Probe { takes: Duration::from_secs(10), ..Probe::new(HOUR, |_| Ok(Outcome::default())) };
    let (tasks, probe) = start(probe, &clock());
    until(&probe, 1).await;
    for _ in 0..5 {
        probe.nudge.nudge();
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(probe.runs(), 2);
    assert_eq!(tasks.shutdown(HOUR).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_runs_again_at_once() {
    let (tasks, probe) =
        start(Probe::new(HOUR, |run| Ok(Outcome::batch(if run < 4 { 100 } else { 3 }, 100))), &clock());
    until(&probe, 4).await;
    tokio::time::sleep(HOUR / 2).await;
    assert_eq!(probe.runs(), 4);
    assert_eq!(tasks.shutdown(HOUR).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn failures_and_panics_back_off_and_recover() {
    let probe = Probe::new(HOUR, |run| match run {
        1 => Err("the store is down".into()),
        2 => panic!("on purpose"),
        _ => Ok(Outcome::default()),
    });
    let (tasks, probe) = start(probe, &clock());
    // The first delay is 0.5 to 1 s, the second 1 to 2 s.
    for (millis, runs) in [(400, 1), (700, 2), (300, 2), (1_700, 3)] {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        assert_eq!(probe.runs(), runs);
    }
    assert_eq!(tasks.shutdown(HOUR).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn hanging_run_is_dropped_at_its_time_limit() {
    let probe = Probe { takes: 10 * HOUR, ..Probe::new(HOUR, |_| Ok(Outcome::default())) };
    let (tasks, probe) = start(probe, &clock());
    until(&probe, 1).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    // A dropped run does not decrement the counter.
    probe.running.store(0, Ordering::SeqCst);
    until(&probe, 2).await;
    tasks.abort().await;
}

#[tokio::test(start_paused = true)]
async fn daily_run_follows_the_wall_clock() {
    let clock = clock();
    let schedule = Schedule::daily(4, 0, "UTC").unwrap();
    let probe = Probe { schedule, ..Probe::new(HOUR, |_| Ok(Outcome::default())) };
    let (tasks, probe) = start(probe, &clock);
    until(&probe, 1).await;
    tokio::time::sleep(48 * HOUR).await;
    assert_eq!(probe.runs(), 1, "the wall clock still reads 01:00");
    clock.advance(3 * HOUR);
    until(&probe, 2).await;
    assert_eq!(tasks.shutdown(HOUR).await, Ok(()));
}
