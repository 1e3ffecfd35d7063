//! Two processes that compete for one lease, on both engines.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use urr_db::Domain;
use urr_kernel::Ids;
use urr_testkit::{fixed_clock, fresh_postgres, fresh_sqlite, seeded_ids, until, within};

use super::*;
use crate::{BoxError, Outcome, Reconciler, Tasks};

static DOMAIN: Domain = Domain { name: "jobs", migrations: &[] };
const LIMIT: Duration = Duration::from_mins(1);
/// Longer than any test machine stalls. A process without the lease tries again after half of it.
const TTL: Duration = Duration::from_secs(4);

fn lease(db: &Db, ids: &Ids) -> Lease {
    Lease::new(LeaseConfig { db: db.clone(), name: "jobs.test", owner: ids.next(), ttl: TTL })
}

async fn still_mine(lease: &Lease) -> bool {
    let db = &lease.0.config.db;
    db.write("jobs.test", async |tx: &mut Tx<'_>| lease.still_mine(tx).await).await.unwrap()
}

/// A takeover, step by step; `pass` lets the lease expire.
async fn work_is_rejected_after_a_takeover(db: &Db, clock: &Clock, pass: impl AsyncFn()) {
    let ids = seeded_ids(clock);
    let (one, other) = (lease(db, &ids), lease(db, &ids));
    assert!(!still_mine(&one).await, "not acquired yet");
    assert!(one.hold(clock).await.unwrap());
    assert!(one.hold(clock).await.unwrap(), "renewing does not acquire it again");
    assert!(still_mine(&one).await);
    let first = one.epoch().unwrap();
    assert!(!other.hold(clock).await.unwrap());
    assert!(!still_mine(&other).await);

    pass().await;
    assert!(other.hold(clock).await.unwrap());
    assert!(other.epoch().unwrap() > first);
    assert_eq!(one.epoch(), Some(first), "a paused process has not noticed yet");
    assert!(!still_mine(&one).await, "its work is rejected anyway");
    assert!(still_mine(&other).await);

    assert!(!one.hold(clock).await.unwrap());
    assert_eq!(one.epoch(), None);
    other.release(clock).await;
    assert!(one.hold(clock).await.unwrap(), "a released lease is free at once");
}

#[tokio::test]
async fn work_is_rejected_after_a_takeover_on_sqlite() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    let clock = fixed_clock();
    within(LIMIT, work_is_rejected_after_a_takeover(&db, &clock, async || clock.advance(TTL))).await;
}

#[tokio::test]
async fn work_is_rejected_after_a_takeover_on_postgres() {
    let Some(db) = fresh_postgres(&DOMAIN).await else { return };
    let clock = Clock::system();
    let ran_out = async || {
        let run_out = async |tx: &mut Tx<'_>| tx.execute(&RUN_OUT, &[]).await;
        db.write("jobs.test", run_out).await.unwrap();
    };
    within(LIMIT, work_is_rejected_after_a_takeover(&db, &clock, ran_out)).await;
}

urr_db::statements! {
    /// Expires a lease, which on PostgreSQL uses the server's clock.
    RUN_OUT = postgres "update leases set expires_at = clock_timestamp()";
}

#[tokio::test]
async fn takeover_waits_for_a_transaction_that_checked_the_lease() {
    let Some(db) = fresh_postgres(&DOMAIN).await else { return };
    let clock = Clock::system();
    let ids = seeded_ids(&clock);
    let (one, other) = (lease(&db, &ids), lease(&db, &ids));
    assert!(one.hold(&clock).await.unwrap());
    db.write("jobs.test", async |tx: &mut Tx<'_>| tx.execute(&RUN_OUT, &[]).await).await.unwrap();
    let work = db.write("jobs.test", async |tx: &mut Tx<'_>| {
        assert!(one.still_mine(tx).await?);
        let early = tokio::time::timeout(Duration::from_millis(200), other.hold(&clock)).await;
        assert!(!matches!(early, Ok(Ok(true))), "the lease was taken over before the work was committed");
        Ok::<(), urr_db::Error>(())
    });
    within(LIMIT, work).await.unwrap();
    until(LIMIT, async || other.hold(&clock).await.unwrap_or(false)).await;
    assert!(!still_mine(&one).await);
}

#[tokio::test(start_paused = true)]
async fn takeover_is_noticed_at_the_next_renewal() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    let clock = fixed_clock();
    let ids = seeded_ids(&clock);
    let (one, other) = (lease(&db, &ids), lease(&db, &ids));
    assert!(one.hold(&clock).await.unwrap());
    clock.advance(TTL);
    assert!(other.hold(&clock).await.unwrap());
    one.lost(&clock).await;
    assert_eq!(one.epoch(), None);
}

struct Count {
    runs: AtomicUsize,
    period: Duration,
    fails: bool,
}

#[async_trait]
impl Reconciler for Count {
    fn name(&self) -> &'static str {
        "jobs.test"
    }

    fn period(&self) -> Duration {
        self.period
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if self.fails { Err("on purpose".into()) } else { Ok(Outcome::default()) }
    }
}

fn start(tasks: &Tasks, lease: Lease, period: Duration, clock: &Clock) -> Arc<Count> {
    begin(tasks, lease, Count { runs: AtomicUsize::new(0), period, fails: false }, clock)
}

fn begin(tasks: &Tasks, lease: Lease, count: Count, clock: &Clock) -> Arc<Count> {
    let count = Arc::new(count);
    let reconciler: Arc<dyn Reconciler> = Arc::clone(&count) as Arc<dyn Reconciler>;
    crate::run(tasks, reconciler, Some(lease), clock.clone());
    count
}

async fn one_of_two_processes_runs_and_the_other_takes_over(db: &Db) {
    let clock = Clock::system();
    let ids = seeded_ids(&clock);
    let often = Duration::from_millis(10);
    let (first, second) = (Tasks::new(), Tasks::new());
    let one = start(&first, lease(db, &ids), often, &clock);
    until(LIMIT, async || one.runs.load(Ordering::SeqCst) > 0).await;
    let other = start(&second, lease(db, &ids), often, &clock);
    let seen = one.runs.load(Ordering::SeqCst);
    until(LIMIT, async || one.runs.load(Ordering::SeqCst) > seen + 20).await;
    assert_eq!(other.runs.load(Ordering::SeqCst), 0, "the other process holds the lease");
    first.shutdown(LIMIT).await.unwrap();
    let stopped_at = one.runs.load(Ordering::SeqCst);
    until(LIMIT, async || other.runs.load(Ordering::SeqCst) > 20).await;
    assert_eq!(one.runs.load(Ordering::SeqCst), stopped_at);
    second.shutdown(LIMIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_processes_runs_on_sqlite() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, one_of_two_processes_runs_and_the_other_takes_over(&db)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_processes_runs_on_postgres() {
    let Some(db) = fresh_postgres(&DOMAIN).await else { return };
    within(LIMIT, one_of_two_processes_runs_and_the_other_takes_over(&db)).await;
}

/// For twice the lease's TTL nothing is due; the process that ran keeps the lease in the same
/// epoch.
async fn lease_is_kept_during_a_pause_longer_than_its_ttl(db: &Db) {
    let clock = Clock::system();
    let ids = seeded_ids(&clock);
    let (first, second) = (Tasks::new(), Tasks::new());
    let held = lease(db, &ids);
    let one = start(&first, held.clone(), LIMIT, &clock);
    until(LIMIT, async || one.runs.load(Ordering::SeqCst) == 1).await;
    let epoch = held.epoch().unwrap();
    let other = start(&second, lease(db, &ids), LIMIT, &clock);
    let begun = clock.ticks();
    until(LIMIT, async || clock.ticks() > begun + TTL * 2).await;
    assert_eq!((other.runs.load(Ordering::SeqCst), held.epoch()), (0, Some(epoch)));
    assert!(still_mine(&held).await);
    first.shutdown(LIMIT).await.unwrap();
    until(LIMIT, async || other.runs.load(Ordering::SeqCst) == 1).await;
    second.shutdown(LIMIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_kept_during_a_pause_longer_than_its_ttl_on_sqlite() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, lease_is_kept_during_a_pause_longer_than_its_ttl(&db)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_kept_during_a_pause_longer_than_its_ttl_on_postgres() {
    let Some(db) = fresh_postgres(&DOMAIN).await else { return };
    within(LIMIT, lease_is_kept_during_a_pause_longer_than_its_ttl(&db)).await;
}

/// As in a rolling deployment where old processes cannot read what new ones write.
async fn failing_process_gives_the_lease_to_another(db: &Db) {
    let clock = Clock::system();
    let ids = seeded_ids(&clock);
    let often = Duration::from_millis(10);
    let (first, second) = (Tasks::new(), Tasks::new());
    let failing = Count { runs: AtomicUsize::new(0), period: often, fails: true };
    let failing = begin(&first, lease(db, &ids), failing, &clock);
    until(LIMIT, async || failing.runs.load(Ordering::SeqCst) > 0).await;
    let sound = start(&second, lease(db, &ids), often, &clock);
    until(LIMIT, async || sound.runs.load(Ordering::SeqCst) > 20).await;
    first.shutdown(LIMIT).await.unwrap();
    second.shutdown(LIMIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_process_gives_the_lease_to_another_on_sqlite() {
    let (_dir, db) = fresh_sqlite(&DOMAIN).await;
    within(LIMIT, failing_process_gives_the_lease_to_another(&db)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_process_gives_the_lease_to_another_on_postgres() {
    let Some(db) = fresh_postgres(&DOMAIN).await else { return };
    within(LIMIT, failing_process_gives_the_lease_to_another(&db)).await;
}

#[tokio::test]
async fn every_statement_prepares_on_both_engines() {
    let (_dir, sqlite) = fresh_sqlite(&DOMAIN).await;
    let postgres = fresh_postgres(&DOMAIN).await;
    let databases: Vec<&Db> = std::iter::once(&sqlite).chain(&postgres).collect();
    urr_db::check_statements(&databases, crate::statements()).await.unwrap();
}
