//! Looks at the parts that a process can do without for a while. Their absence does not make it unready, so somebody else has
//! to notice: a log line when it begins and when it ends, and the gauge `urr_part_up` in between.

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

/// A sale lasts minutes; an operator should not learn of a lost Redis later than the buyers feel it.
const PERIOD: Duration = Duration::from_secs(5);

/// A part that does not answer in this time is as good as gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// One part that is watched.
#[derive(Clone)]
pub(crate) struct Watched {
    name: &'static str,
    /// What goes on without it, for the log.
    without: &'static str,
    check: Arc<dyn Check>,
    up: Arc<AtomicBool>,
}

impl Watched {
    /// A part that is believed to be there until a look says otherwise.
    pub(crate) fn new(name: &'static str, without: &'static str, check: Arc<dyn Check>) -> Self {
        Self { name, without, check, up: Arc::new(AtomicBool::new(true)) }
    }

    /// A Redis, and whether it keeps what it is given.
    pub(crate) fn redis(kv: &Kv) -> [Self; 2] {
        let without = "claims go to the database alone, and nobody signs in, pays or operates";
        let forgets = "places in line may be forgotten when Redis is full";
        [
            Self::new("redis", without, Arc::new(kv.clone())),
            Self::new("redis memory", forgets, Arc::new(Memory(kv.clone()))),
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
            Err(cause) if was_up => tracing::warn!(part, cause, "degraded: without {part} {without}"),
            Ok(()) if !was_up => tracing::info!(part, "recovered: {part} is back"),
            _ => {}
        }
    }
}

/// Whether a Redis with this policy keeps what it is given. One that forgets keys when its memory is full forgets places in line.
pub(crate) fn keeps_keys(maxmemory_policy: &str) -> Result<(), String> {
    if maxmemory_policy == Kv::SAFE_POLICY {
        return Ok(());
    }
    Err(format!("maxmemory-policy is {maxmemory_policy}, which forgets keys; set it to {}", Kv::SAFE_POLICY))
}

/// The memory of a Redis that can be asked. Whether it can is asked elsewhere.
struct Memory(Kv);

#[async_trait]
impl Check for Memory {
    async fn check(&self) -> Result<(), String> {
        self.0.maxmemory_policy().await.map_or(Ok(()), |policy| keeps_keys(&policy))
    }
}

/// Looks at every part in turn.
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
    fn a_redis_that_may_forget_is_told_what_to_set() {
        assert_eq!(keeps_keys("noeviction"), Ok(()));
        assert!(keeps_keys("allkeys-lru").unwrap_err().contains("noeviction"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_hangs_is_down_and_comes_back() {
        let part = Arc::new(Part(AtomicBool::new(false)));
        let watch = Watch(vec![Watched::new("redis", "slower", part.clone())]);
        watch.run().await.unwrap();
        assert!(!watch.0[0].up.load(Ordering::Relaxed));
        part.0.store(true, Ordering::Relaxed);
        watch.run().await.unwrap();
        assert!(watch.0[0].up.load(Ordering::Relaxed));
    }
}
