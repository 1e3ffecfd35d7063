//! A circuit breaker as a pure state machine: no clock, no locks, no I/O.

use std::{collections::VecDeque, time::Duration};

/// Configuration of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Number of latest calls that are evaluated.
    pub window: usize,
    /// The breaker opens when at least this percentage of a full window failed or was slow.
    pub failures_percent: usize,
    /// How long an open breaker rejects calls before it permits trial calls.
    pub open_for: Duration,
    /// Number of trial calls that must succeed before it closes again.
    pub trials: usize,
    /// A call slower than this counts as failed.
    pub slow_call: Duration,
}

impl BreakerLimits {
    /// Between roles: window 10, 50 % failures, open 10 s, 3 trial calls, slow after 3 s.
    pub const SERVICE: Self = Self {
        window: 10,
        failures_percent: 50,
        open_for: Duration::from_secs(10),
        trials: 3,
        slow_call: Duration::from_secs(3),
    };
}

/// The breaker is open: the call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the circuit breaker is open for another {} ms", retry_after.as_millis())]
pub struct Refused {
    /// When a retry makes sense.
    pub retry_after: Duration,
}

/// Tracks the results of recent calls and rejects new ones while the other side is down. `now` is
/// always [`Clock::ticks`](crate::Clock::ticks).
#[derive(Debug)]
pub struct Breaker {
    limits: BreakerLimits,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed { failed: VecDeque<bool>, since: Duration },
    Open { until: Duration },
    HalfOpen { started: usize, succeeded: usize, since: Duration },
}

impl State {
    fn closed(window: usize, since: Duration) -> Self {
        Self::Closed { failed: VecDeque::with_capacity(window), since }
    }

    /// Results of calls that started earlier than this are ignored.
    fn since(&self) -> Duration {
        match self {
            Self::Closed { since, .. } | Self::HalfOpen { since, .. } => *since,
            Self::Open { until } => *until,
        }
    }
}

impl Breaker {
    /// A closed breaker.
    pub fn new(limits: BreakerLimits) -> Self {
        assert!(limits.window > 0 && limits.trials > 0, "window and trials must be at least 1");
        Self { limits, state: State::closed(limits.window, Duration::ZERO) }
    }

    /// Requests permission for a call. Every permitted call must be reported with
    /// [`Breaker::report`].
    pub fn permit(&mut self, now: Duration) -> Result<(), Refused> {
        match &mut self.state {
            State::Closed { .. } => Ok(()),
            State::Open { until } if now < *until => Err(Refused { retry_after: until.saturating_sub(now) }),
            State::Open { .. } => {
                self.state = State::HalfOpen { started: 1, succeeded: 0, since: now };
                Ok(())
            }
            State::HalfOpen { started, since, .. } if *started < self.limits.trials => {
                *started += 1;
                // Two callers may read the clock in one order and arrive here in the other; both
                // trials count.
                *since = (*since).min(now);
                Ok(())
            }
            // A trial whose caller was dropped is never reported: start new trials after the open
            // time.
            State::HalfOpen { since, .. } if now >= *since + self.limits.open_for => {
                self.state = State::HalfOpen { started: 1, succeeded: 0, since: now };
                Ok(())
            }
            State::HalfOpen { since, .. } => {
                Err(Refused { retry_after: (*since + self.limits.open_for).saturating_sub(now) })
            }
        }
    }

    /// Reports the result of a permitted call. Results of calls that started before the last state
    /// change are ignored: they belong to an outage that has already been counted.
    pub fn report(&mut self, now: Duration, took: Duration, succeeded: bool) {
        let failed = !succeeded || took > self.limits.slow_call;
        if now.saturating_sub(took) < self.state.since() {
            return;
        }
        match &mut self.state {
            State::Closed { failed: window, .. } => {
                if window.len() == self.limits.window {
                    window.pop_front();
                }
                window.push_back(failed);
                let failures = window.iter().filter(|failed| **failed).count();
                if window.len() == self.limits.window
                    && failures * 100 >= self.limits.failures_percent * self.limits.window
                {
                    self.open(now);
                }
            }
            State::HalfOpen { .. } if failed => self.open(now),
            State::HalfOpen { succeeded, .. } => {
                *succeeded += 1;
                if *succeeded >= self.limits.trials {
                    self.state = State::closed(self.limits.window, now);
                }
            }
            State::Open { .. } => {}
        }
    }

    /// Whether calls are rejected at `now`.
    pub fn is_open(&self, now: Duration) -> bool {
        matches!(self.state, State::Open { until } if now < until)
    }

    /// Whether every call is permitted and none is a trial.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    fn open(&mut self, now: Duration) {
        self.state = State::Open { until: now + self.limits.open_for };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: Duration = Duration::from_millis(1);

    fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::new(BreakerLimits::SERVICE);
        for call in 0..10 {
            breaker.permit(at(0)).unwrap();
            breaker.report(at(0), OK, call % 2 == 0);
        }
        breaker
    }

    #[test]
    fn service_limits_are_as_documented() {
        let BreakerLimits { window, failures_percent, open_for, trials, slow_call } = BreakerLimits::SERVICE;
        assert_eq!((window, failures_percent, trials), (10, 50, 3));
        assert_eq!((open_for, slow_call), (at(10), at(3)));
    }

    #[test]
    fn opens_when_half_of_a_full_window_failed() {
        let mut breaker = opened();
        assert_eq!(breaker.permit(at(4)), Err(Refused { retry_after: at(6) }));
    }

    #[test]
    fn does_not_open_before_the_window_is_full() {
        let mut breaker = Breaker::new(BreakerLimits::SERVICE);
        for _ in 0..9 {
            breaker.report(at(0), OK, false);
        }
        assert!(breaker.permit(at(0)).is_ok());
    }

    #[test]
    fn slow_calls_count_as_failures() {
        let mut breaker = Breaker::new(BreakerLimits::SERVICE);
        for _ in 0..10 {
            breaker.report(at(0), at(4), true);
        }
        assert!(breaker.is_open(at(1)));
    }

    #[test]
    fn three_successful_trials_close_and_one_failed_trial_reopens() {
        let mut breaker = opened();
        for _ in 0..3 {
            breaker.permit(at(10)).unwrap();
        }
        assert!(breaker.permit(at(10)).is_err(), "no fourth trial");
        for _ in 0..3 {
            breaker.report(at(10) + OK, OK, true);
        }
        assert!(breaker.permit(at(11)).is_ok());

        let mut breaker = opened();
        breaker.permit(at(10)).unwrap();
        breaker.report(at(10) + OK, OK, false);
        assert!(breaker.is_open(at(19)));
    }

    #[test]
    fn late_results_from_before_opening_are_ignored() {
        let mut breaker = opened();
        breaker.permit(at(10)).unwrap();
        for succeeded in [true, true, true, false] {
            breaker.report(at(11), at(11), succeeded);
        }
        assert!(!breaker.is_open(at(11)), "an old failure is not a failed trial");
        for _ in 0..2 {
            breaker.permit(at(11)).unwrap();
        }
        assert!(breaker.permit(at(11)).is_err(), "an old success is not a successful trial");
        for _ in 0..3 {
            breaker.report(at(12), at(1), true);
        }
        for _ in 0..10 {
            breaker.report(at(13), at(13), false);
        }
        assert!(breaker.permit(at(13)).is_ok(), "old results belong to the past outage");
    }

    #[test]
    fn trial_that_read_the_clock_before_the_first_one_counts() {
        let mut breaker = opened();
        let begun = [at(10) + Duration::from_micros(1), at(10), at(10)];
        for begun in begun {
            breaker.permit(begun).unwrap();
        }
        for begun in begun {
            breaker.report(at(11), at(11).saturating_sub(begun), true);
        }
        for _ in 0..4 {
            breaker.permit(at(11)).expect("three successful trials close it");
        }
    }

    #[test]
    fn unreported_trials_do_not_block_it_forever() {
        let mut breaker = opened();
        for _ in 0..3 {
            breaker.permit(at(10)).unwrap();
        }
        assert!(breaker.permit(at(20)).is_ok());
    }
}
