//! Watches dependencies that a process can run without for a while. An outage does not make it
//! unready; it is reported by a log line at its start and end, and by the gauge `urr_part_up`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kv::Kv;
use urr_telemetry::Check;

/// A sale lasts minutes, so operators must learn of an outage as soon as buyers notice it.
const PERIOD: Duration = Duration::from_secs(5);

/// A dependency that does not answer within this time counts as down.
const PATIENCE: Duration = Duration::from_secs(1);

/// A watched dependency.
#[derive(Clone)]
pub(crate) struct Watched {
    name: &'static str,
    /// The effect of an outage, for the log.
    without: &'static str,
    check: Arc<dyn Check>,
    up: Arc<AtomicBool>,
}

impl Watched {
    /// Counts as up until a check fails.
    pub(crate) fn new(name: &'static str, without: &'static str, check: Arc<dyn Check>) -> Self {
        Self { name, without, check, up: Arc::new(AtomicBool::new(true)) }
    }

    /// Redis, and its eviction policy.
    pub(crate) fn redis(kv: &Kv) -> [Self; 2] {
        let without = "seats are claimed in the database alone; sign-in, payment and admin requests get 503";
        let forgets = "queue entries may be evicted when Redis is full";
        [
            Self::new("redis", without, Arc::new(kv.clone())),
            Self::new("redis memory", forgets, Arc::new(EvictionPolicy(kv.clone()))),
        ]
    }

    async fn look(&self) {
        let answer = tokio::time::timeout(PATIENCE, self.check.check()).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")));
        let up = answer.is_ok();
        metrics::gauge!("urr_part_up", "part" => self.name).set(if up { 1.0 } else { 0.0 });
        let was_up = self.up.swap(up, Ordering::Relaxed);
        let (part, without) = (self.name, self.without);
        match answer {
            Err(cause) if was_up => tracing::warn!(part, cause, "degraded: without {part}: {without}"),
            Ok(()) if !was_up => tracing::info!(part, "recovered: {part} is back"),
            _ => {}
        }
    }
}

/// Fails if Redis may evict keys when its memory is full: queue entries would be lost.
pub(crate) fn keeps_keys(maxmemory_policy: &str) -> Result<(), String> {
    if maxmemory_policy == Kv::SAFE_POLICY {
        return Ok(());
    }
    Err(format!("maxmemory-policy is {maxmemory_policy}, which evicts keys; set it to {}", Kv::SAFE_POLICY))
}

/// The eviction policy of Redis. An unreachable Redis passes, because another check reports it.
struct EvictionPolicy(Kv);

#[async_trait]
impl Check for EvictionPolicy {
    async fn check(&self) -> Result<(), String> {
        self.0.maxmemory_policy().await.map_or(Ok(()), |policy| keeps_keys(&policy))
    }
}

/// Checks every dependency in turn.
pub(crate) struct Watch(pub Vec<Watched>);

#[async_trait]
impl Reconciler for Watch {
    fn name(&self) -> &'static str {
        "app.watch"
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        for part in &self.0 {
            part.look().await;
        }
        Ok(Outcome::done(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Part(AtomicBool);

    #[async_trait]
    impl Check for Part {
        async fn check(&self) -> Result<(), String> {
            if self.0.load(Ordering::Relaxed) { Ok(()) } else { std::future::pending().await }
        }
    }

    #[test]
    fn an_evicting_redis_fails_with_the_policy_to_set() {
        assert_eq!(keeps_keys("noeviction"), Ok(()));
        assert!(keeps_keys("allkeys-lru").unwrap_err().contains("noeviction"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dependency_that_hangs_is_down_until_it_answers() {
        let part = Arc::new(Part(AtomicBool::new(false)));
        let watch = Watch(vec![Watched::new("redis", "slower", part.clone())]);
        watch.run().await.unwrap();
        assert!(!watch.0[0].up.load(Ordering::Relaxed));
        part.0.store(true, Ordering::Relaxed);
        watch.run().await.unwrap();
        assert!(watch.0[0].up.load(Ordering::Relaxed));
    }
}
