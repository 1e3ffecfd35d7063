//! Readiness of this process, and which dependency prevents it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::timeout;

/// Time limit of a check. Load balancers poll every few seconds and time out after about five.
const CHECK_TIME: Duration = Duration::from_secs(1);

/// Checks one dependency of this process.
#[async_trait]
pub trait Check: Send + Sync {
    /// `Err` describes the problem in one line for an operator.
    async fn check(&self) -> Result<(), String>;
}

/// Every registered dependency and the result of its check.
pub type Report = Vec<(&'static str, Result<(), String>)>;

/// The dependencies of this process. Clones share the list.
#[derive(Clone, Default)]
pub struct Health(Arc<Inner>);

#[derive(Default)]
struct Inner {
    parts: Mutex<Vec<(&'static str, Arc<dyn Check>)>>,
    draining: AtomicBool,
    /// Rounds of checks started so far.
    begun: AtomicU64,
    last: tokio::sync::Mutex<CheckRound>,
}

#[derive(Default)]
struct CheckRound {
    number: u64,
    report: Report,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").field("draining", &self.is_draining()).finish_non_exhaustive()
    }
}

impl Health {
    /// No dependencies, not draining.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a dependency that this process needs to be ready.
    pub fn register(&self, name: &'static str, check: Arc<dyn Check>) {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner).push((name, check));
    }

    /// Makes the process not ready from now on, whatever the checks say, because it is about to
    /// stop.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::SeqCst);
    }

    /// Whether [`Health::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::SeqCst)
    }

    /// Runs all checks concurrently, each for at most a second. Callers that arrive during a round
    /// share the next one, so many health requests cost one round at a time.
    pub async fn report(&self) -> Report {
        let asked = self.0.begun.load(Ordering::SeqCst);
        let mut last = self.0.last.lock().await;
        if last.number > asked {
            return last.report.clone();
        }
        let number = self.0.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut round = tokio::task::JoinSet::new();
        for (position, (_, check)) in parts.iter().enumerate() {
            let check = check.clone();
            round.spawn(async move { (position, ask(&*check).await) });
        }
        let mut report: Report =
            parts.iter().map(|(name, _)| (*name, Err("the check panicked".to_owned()))).collect();
        while let Some(answer) = round.join_next().await {
            if let Ok((position, answer)) = answer {
                report[position].1 = answer;
            }
        }
        *last = CheckRound { number, report: report.clone() };
        report
    }
}

async fn ask(check: &dyn Check) -> Result<(), String> {
    timeout(CHECK_TIME, check.check())
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} ms", CHECK_TIME.as_millis())))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Semaphore;

    use super::*;

    struct FakeCheck(Result<(), String>);

    #[async_trait]
    impl Check for FakeCheck {
        async fn check(&self) -> Result<(), String> {
            self.0.clone()
        }
    }

    struct Hangs;

    #[async_trait]
    impl Check for Hangs {
        async fn check(&self) -> Result<(), String> {
            std::future::pending().await
        }
    }

    struct Panics;

    #[async_trait]
    impl Check for Panics {
        async fn check(&self) -> Result<(), String> {
            panic!("on purpose")
        }
    }

    struct Counts {
        asked: AtomicUsize,
        gate: Semaphore,
    }

    #[async_trait]
    impl Check for Counts {
        async fn check(&self) -> Result<(), String> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn report_names_every_part_and_fails_hanging_or_panicking_checks() {
        let health = Health::new();
        health.register("good", Arc::new(FakeCheck(Ok(()))));
        health.register("bad", Arc::new(FakeCheck(Err("refused".to_owned()))));
        health.register("stuck", Arc::new(Hangs));
        health.register("broken", Arc::new(Panics));
        let expected = vec![
            ("good", Ok(())),
            ("bad", Err("refused".to_owned())),
            ("stuck", Err("no answer within 1000 ms".to_owned())),
            ("broken", Err("the check panicked".to_owned())),
        ];
        assert_eq!(health.report().await, expected);
    }

    #[tokio::test]
    async fn concurrent_reports_run_each_check_at_most_twice() {
        let part = Arc::new(Counts { asked: AtomicUsize::new(0), gate: Semaphore::new(0) });
        let health = Health::new();
        health.register("part", part.clone());
        let questions: tokio::task::JoinSet<_> = (0..100)
            .map(|_| {
                let health = health.clone();
                async move { health.report().await }
            })
            .collect();
        while part.asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        part.gate.add_permits(100);
        for report in questions.join_all().await {
            assert_eq!(report, vec![("part", Ok(()))]);
        }
        assert!(part.asked.load(Ordering::SeqCst) <= 2);
    }

    #[tokio::test]
    async fn later_report_sees_a_later_state() {
        struct Flag(AtomicBool);
        #[async_trait]
        impl Check for Flag {
            async fn check(&self) -> Result<(), String> {
                if self.0.load(Ordering::SeqCst) { Ok(()) } else { Err("down".to_owned()) }
            }
        }
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        let health = Health::new();
        health.register("flag", flag.clone());
        assert!(health.report().await[0].1.is_err());
        flag.0.store(true, Ordering::SeqCst);
        assert!(health.report().await[0].1.is_ok());
    }
}
