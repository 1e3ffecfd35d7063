//! The replicas of one role: round robin, with failing ones avoided for a while.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};
use urr_http::{BadTarget, Client, Pipe, RoleRoutes};
use urr_kernel::{Breaker, BreakerLimits};

use super::TRY_AGAIN;

/// After a failure other replicas are preferred for this long, so that a restart does not fail
/// every second request.
const AVOID: Duration = Duration::from_secs(1);

/// Weight of a request that timed out at a silent replica: half a window of the breaker, so two of
/// them open it, so that later requests need not wait.
const SILENT: usize = BreakerLimits::SERVICE.window / 2;

/// Requests that may wait for one replica at the same time: a tenth of a gateway's maximum, so that
/// one slow role cannot take all of them.
const MAX_WAITING: usize = 1_024;

/// The replicas of one role.
#[derive(Debug)]
pub(super) struct Replicas {
    list: Vec<Replica>,
    next: AtomicUsize,
}

/// One process that runs a role.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) pipe: Pipe,
    permits: Semaphore,
    state: Mutex<State>,
    failures: metrics::Counter,
}

/// Permission to send one request to a replica; counts as one of its waiting requests.
#[derive(Debug)]
pub(super) struct ReplicaPermit<'r> {
    pub(super) replica: &'r Replica,
    _permit: SemaphorePermit<'r>,
}

#[derive(Debug)]
struct State {
    /// Open after too many failures: the replica gets no requests.
    breaker: Breaker,
    /// Until then other replicas are preferred.
    avoid_until: Duration,
    /// Time of its last response.
    answered: Option<Duration>,
}

impl Replicas {
    pub(super) fn new<'u>(
        role: &'static RoleRoutes,
        urls: impl IntoIterator<Item = &'u str>,
        client: &Client,
    ) -> Result<Self, BadTarget> {
        let list: Result<Vec<_>, _> =
            urls.into_iter().map(|url| Ok(Replica::new(role, client.pipe(url)?))).collect();
        let list = list?;
        assert!(!list.is_empty(), "an upstream role needs at least one URL");
        Ok(Self { list, next: AtomicUsize::new(0) })
    }

    /// Whether there is more than one replica.
    pub(super) fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    /// Returns the next replica that is not in `tried`, preferring those that did not just fail. A
    /// replica with too many waiting requests is skipped, which is not a failure. The error is the
    /// time until one may be available.
    pub(super) fn choose(&self, now: Duration, tried: &[&Replica]) -> Result<ReplicaPermit<'_>, Duration> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = || {
            let turns =
                (0..self.list.len()).map(|step| &self.list[start.wrapping_add(step) % self.list.len()]);
            turns.filter(|replica| !tried.iter().any(|tried| std::ptr::eq(*tried, *replica)))
        };
        let mut well = in_turn().filter(|replica| replica.is_well(now));
        if let Some(permit) = well.find_map(|replica| replica.permit(now).ok()) {
            return Ok(permit);
        }
        let mut wait = BreakerLimits::SERVICE.open_for;
        for replica in in_turn() {
            match replica.permit(now) {
                Ok(permit) => return Ok(permit),
                Err(refused) => wait = wait.min(refused),
            }
        }
        Err(wait)
    }
}

impl Replica {
    fn new(role: &'static RoleRoutes, pipe: Pipe) -> Self {
        // A call slower than the service's time limit is already a failure.
        let limits = BreakerLimits { slow_call: role.time_limit, ..BreakerLimits::SERVICE };
        let failures =
            metrics::counter!("urr_gateway_upstream_failures_total", "target" => pipe.name().to_owned());
        let state =
            Mutex::new(State { breaker: Breaker::new(limits), avoid_until: Duration::ZERO, answered: None });
        Self { pipe, permits: Semaphore::new(MAX_WAITING), state, failures }
    }

    fn is_well(&self, now: Duration) -> bool {
        self.state().avoid_until <= now
    }

    /// Takes a waiting permit first: a request without one must not use up a trial of the breaker.
    fn permit(&self, now: Duration) -> Result<ReplicaPermit<'_>, Duration> {
        let permit = self.permits.try_acquire().map_err(|_busy| TRY_AGAIN)?;
        self.state().breaker.permit(now).map_err(|refused| refused.retry_after)?;
        Ok(ReplicaPermit { replica: self, _permit: permit })
    }

    /// Reports a response. A 503 counts as success: a process that reports it for one route can
    /// serve others.
    pub(super) fn succeeded(&self, now: Duration, started: Duration) {
        let mut state = self.state();
        state.breaker.report(now, now.saturating_sub(started), true);
        state.answered = Some(now);
    }

    /// Reports a failed attempt, or a process that rejects all requests.
    pub(super) fn failed(&self, now: Duration, started: Duration) {
        let mut state = self.state();
        state.breaker.report(now, now.saturating_sub(started), false);
        state.avoid_until = now + AVOID;
        self.failures.increment(1);
    }

    /// Whether it has sent no response since then.
    pub(super) fn is_silent_since(&self, since: Duration) -> bool {
        self.state().answered.is_none_or(|answered| answered < since)
    }

    /// Reports that it did not respond within the time limit.
    pub(super) fn timed_out(&self, now: Duration, since: Duration) {
        let weight = if self.is_silent_since(since) { SILENT } else { 1 };
        for _ in 1..weight {
            self.state().breaker.report(now, now.saturating_sub(since), false);
        }
        self.failed(now, since);
    }

    /// Reports that a client disconnected. Counts only if the replica has responded to no request
    /// meanwhile; otherwise impatient or malicious clients could take a healthy replica out.
    pub(super) fn abandoned(&self, now: Duration, since: Duration) {
        if self.is_silent_since(since) {
            self.failed(now, since);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use urr_http::ClientLimits;

    use super::*;

    static TICKETS: RoleRoutes = RoleRoutes::new("tickets", "Seats are unavailable right now.");

    fn replicas() -> Replicas {
        let client = Client::new(ClientLimits::default(), urr_testkit::fixed_clock());
        let urls = ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"];
        Replicas::new(&TICKETS, urls, &client).unwrap()
    }

    fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn turns(replicas: &Replicas, now: Duration) -> Vec<&str> {
        let next = || replicas.choose(now, &[]).unwrap().replica.pipe.name().rsplit(':').next().unwrap();
        (0..6).map(|_| next()).collect()
    }

    #[tokio::test]
    async fn replicas_are_used_round_robin_and_a_failed_one_last() {
        let replicas = replicas();
        assert_eq!(turns(&replicas, at(0)), ["1", "2", "3", "1", "2", "3"]);
        replicas.list[1].failed(at(0), at(0));
        assert!(!turns(&replicas, at(0)).contains(&"2"));
        assert!(turns(&replicas, at(1)).contains(&"2"), "it is used again after a second");
    }

    #[tokio::test]
    async fn each_retry_uses_another_replica_until_none_is_left() {
        let replicas = replicas();
        let mut tried = Vec::new();
        while let Ok(permit) = replicas.choose(at(0), &tried) {
            assert!(!tried.iter().any(|tried| std::ptr::eq(*tried, permit.replica)));
            tried.push(permit.replica);
        }
        assert_eq!(tried.len(), 3);
    }

    #[tokio::test]
    async fn a_busy_replica_is_skipped_without_a_failure() {
        let replicas = replicas();
        let fill = |number: usize| {
            let permits = u32::try_from(MAX_WAITING).unwrap();
            replicas.list[number].permits.try_acquire_many(permits).unwrap()
        };
        let first = fill(0);
        assert!(!turns(&replicas, at(0)).contains(&"1"));
        let others = [fill(1), fill(2)];
        assert_eq!(replicas.choose(at(0), &[]).unwrap_err(), TRY_AGAIN, "all are busy");
        drop((first, others));
        let mut next = turns(&replicas, at(0));
        next.sort_unstable();
        assert_eq!(next, ["1", "1", "2", "2", "3", "3"], "no replica is avoided");
    }

    #[tokio::test]
    async fn a_busy_replica_does_not_use_breaker_trials() {
        let replicas = replicas();
        let trials = || (0..9).filter(|_| replicas.choose(at(10), &[]).is_ok()).count();
        for replica in &replicas.list {
            (0..10).for_each(|_| replica.failed(at(0), at(0)));
        }
        let permits = u32::try_from(MAX_WAITING).unwrap();
        let full: Vec<_> =
            replicas.list.iter().map(|replica| replica.permits.try_acquire_many(permits).unwrap()).collect();
        assert_eq!(trials(), 0);
        drop(full);
        assert_eq!(trials(), 9, "three each");
    }

    #[tokio::test]
    async fn a_failing_replica_is_taken_out_and_returns_after_successful_trials() {
        let replicas = replicas();
        for _ in 0..10 {
            replicas.list[1].failed(at(0), at(0));
        }
        assert!(!turns(&replicas, at(5)).contains(&"2"));
        assert!(turns(&replicas, at(10)).contains(&"2"), "a trial");
        for _ in 0..3 {
            replicas.list[1].succeeded(at(10), at(10));
        }
        assert_eq!(turns(&replicas, at(11)).iter().filter(|name| **name == "2").count(), 2);
    }

    #[tokio::test]
    async fn two_timeouts_take_out_a_silent_replica() {
        let replicas = replicas();
        let [silent, busy, _] = &replicas.list[..] else { panic!("expected three replicas") };
        silent.timed_out(at(30), at(0));
        assert!(turns(&replicas, at(31)).contains(&"1"), "one timeout is not enough");
        for _ in 0..4 {
            busy.succeeded(at(20), at(20));
            busy.timed_out(at(30), at(0));
        }
        silent.timed_out(at(31), at(1));
        let later = turns(&replicas, at(33));
        assert!(!later.contains(&"1") && later.contains(&"2"), "{later:?}");
        assert!(turns(&replicas, at(41)).contains(&"1"), "a trial");
    }

    #[tokio::test]
    async fn disconnects_count_only_against_silent_replicas() {
        let replicas = replicas();
        for _ in 0..10 {
            replicas.list[0].abandoned(at(20), at(5));
            replicas.list[1].succeeded(at(6), at(6));
            replicas.list[1].abandoned(at(20), at(5));
            replicas.list[2].succeeded(at(4), at(4));
        }
        replicas.list[2].abandoned(at(20), at(5));
        assert_eq!(turns(&replicas, at(20)), ["2"; 6], "the third is avoided for a second");
        assert_eq!(turns(&replicas, at(21)), ["2", "2", "3", "2", "2", "3"], "the first is out");
    }

    #[tokio::test]
    async fn when_all_are_out_the_retry_time_is_known() {
        let replicas = replicas();
        for (number, replica) in replicas.list.iter().enumerate() {
            (0..10).for_each(|_| replica.failed(at(number as u64), at(number as u64)));
        }
        assert_eq!(replicas.choose(at(4), &[]).unwrap_err(), at(6));
    }

    #[tokio::test]
    async fn a_failed_replica_is_used_if_it_is_the_only_one() {
        let replicas = replicas();
        replicas.list.iter().for_each(|replica| replica.failed(at(0), at(0)));
        assert!(replicas.choose(at(0), &[]).is_ok());
    }
}
