//! Compares this machine's clock with PostgreSQL's. Processes that share a database compare times
//! in its rows with their own clocks: one that is minutes ahead would expire the holds of the
//! others early.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use urr_db::{Db, Tx};
use urr_jobs::{BoxError, Outcome, Reconciler, Tasks};
use urr_kernel::{Clock, Timestamp};
use urr_telemetry::{Check, Health};

/// With a larger difference, holds end early or late on the other machine. NTP keeps clocks within
/// hundredths of a second.
const MAX_SKEW: Duration = Duration::from_secs(1);

/// How often clocks are compared. A clock that drifts needs far longer to be a second off.
const PERIOD: Duration = Duration::from_secs(10);

urr_db::statements! {
    /// The server's time.
    TIME = postgres "select clock_timestamp()";
}

/// Compares a remote clock with ours, read before and after it. The remote clock was read at an
/// unknown moment in between, so only a time outside that interval is a difference.
pub(crate) fn same_time(before: Timestamp, theirs: Timestamp, after: Timestamp) -> Result<(), String> {
    let apart = before.since(theirs).max(theirs.since(after));
    if apart > MAX_SKEW {
        return Err(format!(
            "its clock differs from ours by {} s; run an NTP client on both machines",
            apart.as_secs()
        ));
    }
    Ok(())
}

/// Compares our clock with PostgreSQL's, once now and then in the background. While they differ the
/// process is not ready.
pub(crate) async fn watch(db: Db, clock: &Clock, health: &Health, tasks: &Tasks) {
    let clocks = Arc::new(Clocks { db, clock: clock.clone(), found: Mutex::new(Ok(())) });
    clocks.look().await;
    health.register("clock", clocks.clone());
    urr_jobs::run(tasks, clocks, None, clock.clone());
}

struct Clocks {
    db: Db,
    clock: Clock,
    /// Result of the last comparison.
    found: Mutex<Result<(), String>>,
}

impl Clocks {
    async fn look(&self) {
        let before = self.clock.now();
        let read = self.db.read("app.clock", async |tx: &mut Tx<'_>| {
            tx.one(&TIME, &[], |row| row.get::<Timestamp>(0)).await
        });
        let read: Result<Timestamp, urr_db::Error> = read.await;
        let after = self.clock.now();
        // Keep the last result if the server is unreachable (reported elsewhere) or too slow to
        // compare.
        if let (Ok(theirs), true) = (read, after.since(before) <= MAX_SKEW) {
            self.learn(same_time(before, theirs, after));
        }
    }

    /// Stores the result, and logs it if it changed.
    fn learn(&self, found: Result<(), String>) {
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &found) {
            (Ok(()), Err(cause)) => {
                tracing::error!(cause, "this clock and PostgreSQL's differ: not ready until they agree");
            }
            (Err(_), Ok(())) => tracing::info!("this clock and PostgreSQL's agree again"),
            _ => {}
        }
        *known = found;
    }
}

#[async_trait]
impl Check for Clocks {
    async fn check(&self) -> Result<(), String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Reconciler for Clocks {
    fn name(&self) -> &'static str {
        "app.clock"
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        self.look().await;
        Ok(Outcome::done(0))
    }
}

#[cfg(test)]
mod tests {
    use urr_testkit::until;

    use super::*;

    #[test]
    fn only_a_difference_beyond_the_round_trip_counts() {
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let (later, much_later) = (now.after(MAX_SKEW), now.after(Duration::from_secs(3)));
        assert!(same_time(now, now, now).is_ok() && same_time(now, later, now).is_ok());
        assert!(same_time(now, much_later, now).is_err() && same_time(much_later, now, much_later).is_err());
        assert!(
            same_time(now, much_later, later.after(MAX_SKEW)).is_ok(),
            "it may have been read at the end of the interval"
        );
        assert!(same_time(later.after(MAX_SKEW), now, much_later).is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_is_not_ready_while_its_clock_differs_from_postgres() {
        let Some(config) = urr_testkit::fresh_database(&[&urr_catalog::DOMAIN]).await else { return };
        let db = Db::postgres(&config, &urr_catalog::DOMAIN).unwrap();
        db.migrate().await.unwrap();
        let clock = Clock::fixed(Clock::system().now().before(Duration::from_secs(90)));
        let (health, tasks) = (Health::new(), Tasks::new());
        watch(db.clone(), &clock, &health, &tasks).await;
        let report = health.report().await;
        assert!(matches!(&report[..], [("clock", Err(_))]), "{report:?}");
        tasks.shutdown(PERIOD).await.unwrap();

        let clocks = Clocks { db, clock: clock.clone(), found: Mutex::new(Ok(())) };
        clocks.run().await.unwrap();
        assert!(clocks.check().await.unwrap_err().contains("NTP"));
        // Set before each comparison, because the fixed clock does not advance.
        until(Duration::from_secs(30), async || {
            clock.advance(Clock::system().now().since(clock.now()));
            clocks.run().await.unwrap();
            clocks.check().await == Ok(())
        })
        .await;
    }
}
