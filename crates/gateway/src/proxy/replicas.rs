//! The replicas of one role: taken in turn, left alone for a while when they fail.

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

/// After a failure, others are asked first for this long: a replica that restarts should not cost every second request.
const AVOID: Duration = Duration::from_secs(1);

/// What a request that waited in vain for its whole time says about a replica that answered nobody meanwhile: half a window of the breaker.
/// Two people have waited then, and those who come next need not.
const SILENT: usize = BreakerLimits::SERVICE.window / 2;

/// Requests that may wait for one replica's answer at the same time. A tenth of what a gateway has in progress at most, so that one
/// slow role cannot take every place.
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
    places: Semaphore,
    state: Mutex<State>,
    failures: metrics::Counter,
}

/// A replica that may be asked, and a place among those who wait for it.
#[derive(Debug)]
pub(super) struct Turn<'r> {
    pub(super) replica: &'r Replica,
    _place: SemaphorePermit<'r>,
}

#[derive(Debug)]
struct State {
    /// Open when too many of the latest requests failed: the replica is out.
    breaker: Breaker,
    /// Others are asked first until then.
    avoid_until: Duration,
    /// When it answered last.
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
        assert!(!list.is_empty(), "a role that runs elsewhere runs somewhere");
        Ok(Self { list, next: AtomicUsize::new(0) })
    }

    /// Whether there is another one to ask.
    pub(super) fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    /// The next replica that may be asked and is not among those tried, and rather not one that just failed. One for which as many
    /// wait as may is passed over: it is busy, and not unwell. If none is left, when one may be.
    pub(super) fn choose(&self, now: Duration, tried: &[&Replica]) -> Result<Turn<'_>, Duration> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = || {
            let turns =
                (0..self.list.len()).map(|step| &self.list[start.wrapping_add(step) % self.list.len()]);
            turns.filter(|replica| !tried.iter().any(|tried| std::ptr::eq(*tried, *replica)))
        };
        let mut well = in_turn().filter(|replica| replica.is_well(now));
        if let Some(turn) = well.find_map(|replica| replica.turn(now).ok()) {
            return Ok(turn);
        }
        let mut wait = BreakerLimits::SERVICE.open_for;
        for replica in in_turn() {
            match replica.turn(now) {
                Ok(turn) => return Ok(turn),
                Err(refused) => wait = wait.min(refused),
            }
        }
        Err(wait)
    }
}

impl Replica {
    fn new(role: &'static RoleRoutes, pipe: Pipe) -> Self {
        // Slow is what exceeds the time limit of the service, and that is a failure already.
        let limits = BreakerLimits { slow_call: role.time_limit, ..BreakerLimits::SERVICE };
        let failures =
            metrics::counter!("urr_gateway_upstream_failures_total", "target" => pipe.name().to_owned());
        let state =
            Mutex::new(State { breaker: Breaker::new(limits), avoid_until: Duration::ZERO, answered: None });
        Self { pipe, places: Semaphore::new(MAX_WAITING), state, failures }
    }

    fn is_well(&self, now: Duration) -> bool {
        self.state().avoid_until <= now
    }

    /// The place comes first: whoever has none asks nobody, and must not use up a trial of the breaker.
    fn turn(&self, now: Duration) -> Result<Turn<'_>, Duration> {
        let place = self.places.try_acquire().map_err(|_busy| TRY_AGAIN)?;
        self.state().breaker.permit(now).map_err(|refused| refused.retry_after)?;
        Ok(Turn { replica: self, _place: place })
    }

    /// It answered. What it said may be a 503: whoever can say that of one route is there for the others.
    pub(super) fn succeeded(&self, now: Duration, started: Duration) {
        let mut state = self.state();
        state.breaker.report(now, now.saturating_sub(started), true);
        state.answered = Some(now);
    }

    /// It did not, or turned everybody away.
    pub(super) fn failed(&self, now: Duration, started: Duration) {
        let mut state = self.state();
        state.breaker.report(now, now.saturating_sub(started), false);
        state.avoid_until = now + AVOID;
        self.failures.increment(1);
    }

    /// Whether it has answered nobody since then.
    pub(super) fn is_silent_since(&self, since: Duration) -> bool {
        self.state().answered.is_none_or(|answered| answered < since)
    }

    /// It did not, in all the time it may take since then.
    pub(super) fn timed_out(&self, now: Duration, since: Duration) {
        let weight = if self.is_silent_since(since) { SILENT } else { 1 };
        for _ in 1..weight {
            self.state().breaker.report(now, now.saturating_sub(since), false);
        }
        self.failed(now, since);
    }

    /// Somebody who had waited since then has left. One that answers others meanwhile is well, however impatient people are:
    /// otherwise whoever opens requests and leaves could shut a replica for everybody.
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
    async fn replicas_are_taken_in_turn_and_one_that_just_failed_last() {
        let replicas = replicas();
        assert_eq!(turns(&replicas, at(0)), ["1", "2", "3", "1", "2", "3"]);
        replicas.list[1].failed(at(0), at(0));
        assert!(!turns(&replicas, at(0)).contains(&"2"));
        assert!(turns(&replicas, at(1)).contains(&"2"), "a second later it gets another chance");
    }

    #[tokio::test]
    async fn each_further_try_goes_to_another_replica_until_there_is_none() {
        let replicas = replicas();
        let mut tried = Vec::new();
        while let Ok(turn) = replicas.choose(at(0), &tried) {
            assert!(!tried.iter().any(|tried| std::ptr::eq(*tried, turn.replica)));
            tried.push(turn.replica);
        }
        assert_eq!(tried.len(), 3);
    }

    #[tokio::test]
    async fn a_busy_replica_is_passed_over_and_has_not_failed() {
        let replicas = replicas();
        let fill = |number: usize| {
            let places = u32::try_from(MAX_WAITING).unwrap();
            replicas.list[number].places.try_acquire_many(places).unwrap()
        };
        let first = fill(0);
        assert!(!turns(&replicas, at(0)).contains(&"1"));
        let others = [fill(1), fill(2)];
        assert_eq!(replicas.choose(at(0), &[]).unwrap_err(), TRY_AGAIN, "all are busy");
        drop((first, others));
        let mut next = turns(&replicas, at(0));
        next.sort_unstable();
        assert_eq!(next, ["1", "1", "2", "2", "3", "3"], "nobody is avoided");
    }

    #[tokio::test]
    async fn a_busy_replica_keeps_its_trials() {
        let replicas = replicas();
        let trials = || (0..9).filter(|_| replicas.choose(at(10), &[]).is_ok()).count();
        for replica in &replicas.list {
            (0..10).for_each(|_| replica.failed(at(0), at(0)));
        }
        let places = u32::try_from(MAX_WAITING).unwrap();
        let full: Vec<_> =
            replicas.list.iter().map(|replica| replica.places.try_acquire_many(places).unwrap()).collect();
        assert_eq!(trials(), 0);
        drop(full);
        assert_eq!(trials(), 9, "three each");
    }

    #[tokio::test]
    async fn one_that_keeps_failing_is_out_and_comes_back_after_good_trials() {
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
    async fn one_that_lets_two_people_wait_in_vain_and_answers_nobody_is_out() {
        let replicas = replicas();
        let [silent, busy, _] = &replicas.list[..] else { panic!("there are three") };
        silent.timed_out(at(30), at(0));
        assert!(turns(&replicas, at(31)).contains(&"1"), "one says little");
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
    async fn whoever_leaves_tells_something_about_one_that_answers_nobody_and_nothing_about_others() {
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
    async fn when_all_are_out_it_is_known_for_how_long() {
        let replicas = replicas();
        for (number, replica) in replicas.list.iter().enumerate() {
            (0..10).for_each(|_| replica.failed(at(number as u64), at(number as u64)));
        }
        assert_eq!(replicas.choose(at(4), &[]).unwrap_err(), at(6));
    }

    #[tokio::test]
    async fn a_replica_that_just_failed_is_better_than_none() {
        let replicas = replicas();
        replicas.list.iter().for_each(|replica| replica.failed(at(0), at(0)));
        assert!(replicas.choose(at(0), &[]).is_ok());
    }
}
