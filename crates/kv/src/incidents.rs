//! A circuit breaker that counts incidents instead of failed calls.
//!
//! Calls to a node share one connection, so a single stall fails every call in flight. Counting
//! calls would open the breaker after a stall of one deadline. Here all calls in flight during a
//! failure count as one failure.

use std::time::Duration;

use urr_kernel::{Breaker, BreakerLimits, Refused};

/// A [`Breaker`] whose window holds incidents.
#[derive(Debug)]
pub(crate) struct IncidentBreaker {
    breaker: Breaker,
    slow_call: Duration,
    current: Incident,
    /// Successful calls since the last counted failure.
    served: usize,
    /// Failed calls since then, including the counted one.
    failed: usize,
}

/// Number of failures counted before a call was permitted. Calls that share it belong to the same
/// incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incident(u64);

impl IncidentBreaker {
    /// A closed breaker.
    pub(crate) fn new(limits: BreakerLimits) -> Self {
        let breaker = Breaker::new(limits);
        Self { breaker, slow_call: limits.slow_call, current: Incident(0), served: 0, failed: 0 }
    }

    /// Permits a call, or refuses it. Pass the returned moment to [`Self::report`].
    pub(crate) fn permit(&mut self, now: Duration) -> Result<Incident, Refused> {
        self.breaker.permit(now)?;
        Ok(self.current)
    }

    /// Records the outcome of a permitted call.
    pub(crate) fn report(&mut self, incident: Incident, now: Duration, took: Duration, succeeded: bool) {
        if !self.breaker.is_closed() {
            // Every trial of a half-open breaker counts by itself.
            return self.breaker.report(now, took, succeeded);
        }
        if succeeded && took <= self.slow_call {
            self.served += 1;
            return;
        }
        if incident != self.current {
            // In flight when an earlier call failed, which already counted for both.
            self.failed += 1;
            return;
        }
        if self.served > self.failed {
            // Most calls succeeded since the last incident, so this one is not consecutive.
            self.breaker.report(now, Duration::ZERO, true);
        }
        self.breaker.report(now, took, false);
        (self.served, self.failed) = (0, 1);
        self.current = Incident(incident.0 + 1);
    }

    /// Whether calls are refused at `now`.
    pub(crate) fn is_open(&self, now: Duration) -> bool {
        self.breaker.is_open(now)
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Clock;
    use urr_testkit::fixed_clock;

    use super::*;
    use crate::{KvConfig, node::breaker_limits};

    const DEADLINE: Duration = KvConfig::DEADLINE;

    /// Calls on a manual clock.
    struct Calls {
        clock: Clock,
        breaker: IncidentBreaker,
    }

    impl Calls {
        fn new() -> Self {
            Self { clock: fixed_clock(), breaker: IncidentBreaker::new(breaker_limits(DEADLINE)) }
        }

        fn start(&mut self) -> (Incident, Duration) {
            let now = self.clock.ticks();
            (self.breaker.permit(now).expect("the breaker is closed"), now)
        }

        fn end(&mut self, (incident, started): (Incident, Duration), succeeded: bool) {
            let now = self.clock.ticks();
            self.breaker.report(incident, now, now.saturating_sub(started), succeeded);
        }

        /// Makes one call after the other, without moving the clock.
        fn each(&mut self, outcomes: impl IntoIterator<Item = bool>) {
            for succeeded in outcomes {
                let call = self.start();
                self.end(call, succeeded);
            }
        }

        fn is_open(&self) -> bool {
            self.breaker.is_open(self.clock.ticks())
        }

        /// Makes one call per millisecond while the server does not respond for `freeze`
        /// milliseconds. Calls fail at the deadline. Returns when the breaker opened.
        fn freeze(&mut self, freeze: u64) -> Option<u64> {
            let deadline = u64::try_from(DEADLINE.as_millis()).unwrap();
            let mut waiting = std::collections::VecDeque::new();
            for now in 0..freeze {
                if let Some((began, call)) = waiting.pop_front_if(|(began, _)| *began + deadline <= now) {
                    assert!(began < freeze);
                    self.end(call, false);
                }
                if self.is_open() {
                    return Some(now);
                }
                let call = self.start();
                waiting.push_back((now, call));
                self.clock.advance(Duration::from_millis(1));
            }
            for (_, call) in waiting {
                self.end(call, true);
            }
            None
        }
    }

    #[test]
    fn one_freeze_longer_than_the_deadline_does_not_open_the_breaker() {
        let mut calls = Calls::new();
        calls.each([true; 100]);
        for _ in 0..10 {
            assert_eq!(calls.freeze(150), None);
            calls.each([true; 100]);
        }
    }

    #[test]
    fn a_frozen_server_opens_the_breaker_at_the_third_deadline() {
        let mut calls = Calls::new();
        calls.each([true; 100]);
        assert_eq!(calls.freeze(10_000), Some(300));
    }

    #[test]
    fn consecutive_failures_count_one_each() {
        let mut calls = Calls::new();
        calls.each([false; 2]);
        assert!(!calls.is_open());
        calls.each([false]);
        assert!(calls.is_open());
    }

    #[test]
    fn the_breaker_opens_when_half_of_the_calls_fail() {
        let mut half = Calls::new();
        half.each([false, true, false, true, false]);
        assert!(half.is_open());
        let mut third = Calls::new();
        third.each([false, true, true].repeat(20));
        assert!(!third.is_open());
    }

    #[test]
    fn half_open_trials_count_one_each() {
        let mut calls = Calls::new();
        calls.each([false; 3]);
        calls.clock.advance(Duration::from_secs(1));
        let trials = [calls.start(), calls.start(), calls.start()];
        assert!(calls.breaker.permit(calls.clock.ticks()).is_err(), "only three trials are permitted");
        for trial in trials {
            calls.end(trial, true);
        }
        calls.each([true; 100]);

        let mut calls = Calls::new();
        calls.each([false; 3]);
        calls.clock.advance(Duration::from_secs(1));
        calls.each([false]);
        assert!(calls.is_open(), "one failed trial opens it again");
    }
}
