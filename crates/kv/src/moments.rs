//! A circuit breaker that counts moments of trouble instead of failed calls.
//!
//! Calls to a node share one connection. A single stall fails every call in flight, so counting calls would open the
//! breaker after a pause of one deadline. Here the calls that were in flight when one of them failed count as one failure.

use std::time::Duration;

use urr_kernel::{Breaker, BreakerLimits, Refused};

/// A [`Breaker`] whose window holds moments of trouble.
#[derive(Debug)]
pub(crate) struct Moments {
    breaker: Breaker,
    slow_call: Duration,
    current: Moment,
    /// Calls that succeeded since the last counted failure.
    served: usize,
    /// Calls that failed since then, including the counted one.
    failed: usize,
}

/// When a call was permitted: between which two counted failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moments {
    /// A closed breaker.
    pub(crate) fn new(limits: BreakerLimits) -> Self {
        let breaker = Breaker::new(limits);
        Self { breaker, slow_call: limits.slow_call, current: Moment(0), served: 0, failed: 0 }
    }

    /// Asks to make a call. The permitted call is reported with the moment that this returns.
    pub(crate) fn permit(&mut self, now: Duration) -> Result<Moment, Refused> {
        self.breaker.permit(now)?;
        Ok(self.current)
    }

    /// Records the outcome of a permitted call.
    pub(crate) fn report(&mut self, moment: Moment, now: Duration, took: Duration, succeeded: bool) {
        if !self.breaker.is_closed() {
            // Every trial of a half-open breaker counts by itself.
            return self.breaker.report(now, took, succeeded);
        }
        if succeeded && took <= self.slow_call {
            self.served += 1;
            return;
        }
        if moment != self.current {
            // It was in flight when an earlier call failed, which counted for both.
            self.failed += 1;
            return;
        }
        if self.served > self.failed {
            // Most calls succeeded since the last moment of trouble: this one starts a new series.
            self.breaker.report(now, Duration::ZERO, true);
        }
        self.breaker.report(now, took, false);
        (self.served, self.failed) = (0, 1);
        self.current = Moment(moment.0 + 1);
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

    /// Calls on a clock that stands still until it is moved.
    struct Calls {
        clock: Clock,
        breaker: Moments,
    }

    impl Calls {
        fn new() -> Self {
            Self { clock: fixed_clock(), breaker: Moments::new(breaker_limits(DEADLINE)) }
        }

        fn start(&mut self) -> (Moment, Duration) {
            let now = self.clock.ticks();
            (self.breaker.permit(now).expect("the breaker is closed"), now)
        }

        fn end(&mut self, (moment, started): (Moment, Duration), succeeded: bool) {
            let now = self.clock.ticks();
            self.breaker.report(moment, now, now.saturating_sub(started), succeeded);
        }

        /// One call after the other at the same time.
        fn each(&mut self, outcomes: impl IntoIterator<Item = bool>) {
            for succeeded in outcomes {
                let call = self.start();
                self.end(call, succeeded);
            }
        }

        fn is_open(&self) -> bool {
            self.breaker.is_open(self.clock.ticks())
        }

        /// One call a millisecond while the server answers nothing for `freeze`; a call that has waited for the deadline
        /// fails. Returns when the breaker opened.
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
    fn one_freeze_longer_than_the_deadline_does_not_open_it() {
        let mut calls = Calls::new();
        calls.each([true; 100]);
        for _ in 0..10 {
            assert_eq!(calls.freeze(150), None);
            calls.each([true; 100]);
        }
    }

    #[test]
    fn a_server_that_stays_frozen_opens_it_at_the_third_deadline() {
        let mut calls = Calls::new();
        calls.each([true; 100]);
        assert_eq!(calls.freeze(10_000), Some(300));
    }

    #[test]
    fn calls_that_fail_one_after_the_other_count_one_each() {
        let mut calls = Calls::new();
        calls.each([false; 2]);
        assert!(!calls.is_open());
        calls.each([false]);
        assert!(calls.is_open());
    }

    #[test]
    fn it_opens_when_half_of_the_calls_fail_and_not_when_fewer_do() {
        let mut half = Calls::new();
        half.each([false, true, false, true, false]);
        assert!(half.is_open());
        let mut third = Calls::new();
        third.each([false, true, true].repeat(20));
        assert!(!third.is_open());
    }

    #[test]
    fn after_an_outage_each_trial_counts_by_itself() {
        let mut calls = Calls::new();
        calls.each([false; 3]);
        calls.clock.advance(Duration::from_secs(1));
        let trials = [calls.start(), calls.start(), calls.start()];
        assert!(calls.breaker.permit(calls.clock.ticks()).is_err(), "a fourth trial waits");
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
