//! Whether this machine's clock and PostgreSQL's agree. Processes that share a database compare its rows with their own clocks: one that is
//! minutes ahead takes the holds of the others for lapsed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use urr_db::{Db, Tx};
use urr_jobs::{BoxError, Outcome, Reconciler, Tasks};
use urr_kernel::{Clock, Timestamp};
use urr_telemetry::{Check, Health};

/// Clocks further apart than this make holds seem to end early or late on the other machine. An NTP client keeps them within hundredths.
const MAX_SKEW: Duration = Duration::from_secs(1);

/// How often they are compared: long before a clock that runs wrong, and not one that was set wrong, has gone a second astray.
const PERIOD: Duration = Duration::from_secs(10);

urr_db::statements! {
    /// What time it is there.
    TIME = postgres "select clock_timestamp()";
}

/// Compares another clock with ours, which was read before it and after. It was read somewhere in between, so only what lies outside says
/// that they differ.
pub(crate) fn same_time(before: Timestamp, theirs: Timestamp, after: Timestamp) -> Result<(), String> {
    let apart = before.since(theirs).max(theirs.since(after));
    if apart > MAX_SKEW {
        return Err(format!("its clock is {} s apart from ours; run an NTP client on both", apart.as_secs()));
    }
    Ok(())
}

/// Compares our clock with PostgreSQL's, once now and from then on in the background. While they differ the process is not ready.
pub(crate) async fn watch(db: Db, clock: &Clock, health: &Health, tasks: &Tasks) {
    let clocks = Arc::new(Clocks { db, clock: clock.clone(), found: Mutex::new(Ok(())) });
    clocks.look().await;
    health.register("clock", clocks.clone());
    urr_jobs::run(tasks, clocks, None, clock.clone());
}

struct Clocks {
    db: Db,
    clock: Clock,
    /// What the last look found.
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
        // A server that is away, or so slow that nothing can be said, leaves things as they are; that it is away is told elsewhere.
        if let (Ok(theirs), true) = (read, after.since(before) <= MAX_SKEW) {
            self.learn(same_time(before, theirs, after));
        }
    }

    /// Remembers what was found, and says so when it is something else than before.
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
    fn clocks_that_disagree_by_more_than_the_question_took_are_noticed() {
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let (later, much_later) = (now.after(MAX_SKEW), now.after(Duration::from_secs(3)));
        assert!(same_time(now, now, now).is_ok() && same_time(now, later, now).is_ok());
        assert!(same_time(now, much_later, now).is_err() && same_time(much_later, now, much_later).is_err());
        assert!(
            same_time(now, much_later, later.after(MAX_SKEW)).is_ok(),
            "it may have been asked at the end"
        );
        assert!(same_time(later.after(MAX_SKEW), now, much_later).is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_whose_clock_is_not_postgres_s_is_not_ready_until_it_is() {
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
        // Set again before each look: the fixed clock stands still while a busy machine takes its time.
        until(Duration::from_secs(30), async || {
            clock.advance(Clock::system().now().since(clock.now()));
            clocks.run().await.unwrap();
            clocks.check().await == Ok(())
        })
        .await;
    }
}
