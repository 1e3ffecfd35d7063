//! A circuit breaker as a plain state machine: no clock of its own, no locks, no I/O.

use std::{collections::VecDeque, time::Duration};

/// The numbers of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// How many of the latest calls are looked at.
    pub window: usize,
    /// The breaker opens when at least this share of a full window failed or was slow.
    pub failures_percent: usize,
    /// How long an open breaker refuses before it tries again.
    pub open_for: Duration,
    /// How many trial calls must succeed before it closes again.
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

/// The breaker is open: the other side was not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the circuit breaker is open for another {} ms", retry_after.as_millis())]
pub struct Refused {
    /// When asking again makes sense.
    pub retry_after: Duration,
}

/// Remembers how recent calls went and refuses new ones while the other side is down. `now` is always
/// [`Clock::ticks`](crate::Clock::ticks).
#[derive(Debug)]
pub struct Breaker {
    limits: BreakerLimits,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed { failed: VecDeque<bool> },
    Open { until: Duration },
    HalfOpen { started: usize, succeeded: usize, since: Duration },
}

impl Breaker {
    /// A closed breaker.
    pub fn new(limits: BreakerLimits) -> Self {
        assert!(limits.window > 0 && limits.trials > 0, "a breaker looks at one call or more");
        Self { limits, state: State::Closed { failed: VecDeque::with_capacity(limits.window) } }
    }

    /// Asks to make a call. Every permitted call must be reported with [`Breaker::report`].
    pub fn permit(&mut self, now: Duration) -> Result<(), Refused> {
        match &mut self.state {
            State::Closed { .. } => Ok(()),
            State::Open { until } if now < *until => Err(Refused { retry_after: until.saturating_sub(now) }),
            State::Open { .. } => {
                self.state = State::HalfOpen { started: 1, succeeded: 0, since: now };
                Ok(())
            }
            State::HalfOpen { started, .. } if *started < self.limits.trials => {
                *started += 1;
                Ok(())
            }
            // A trial whose caller vanished is never reported; after the open time, try afresh.
            State::HalfOpen { since, .. } if now >= *since + self.limits.open_for => {
                self.state = State::HalfOpen { started: 1, succeeded: 0, since: now };
                Ok(())
            }
            State::HalfOpen { since, .. } => {
                Err(Refused { retry_after: (*since + self.limits.open_for).saturating_sub(now) })
            }
        }
    }

    /// Tells how a permitted call went.
    pub fn report(&mut self, now: Duration, took: Duration, succeeded: bool) {
        let failed = !succeeded || took > self.limits.slow_call;
        match &mut self.state {
            State::Closed { failed: window } => {
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
                    self.state = State::Closed { failed: VecDeque::with_capacity(self.limits.window) };
                }
            }
            // A call permitted before the breaker opened: its news is old.
            State::Open { .. } => {}
        }
    }

    /// Whether calls are refused at `now`.
    pub fn is_open(&self, now: Duration) -> bool {
        matches!(self.state, State::Open { until } if now < until)
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
    fn half_of_a_full_window_failing_opens_it() {
        let mut breaker = opened();
        assert_eq!(breaker.permit(at(4)), Err(Refused { retry_after: at(6) }));
    }

    #[test]
    fn fewer_calls_than_the_window_never_open_it() {
        let mut breaker = Breaker::new(BreakerLimits::SERVICE);
        for _ in 0..9 {
            breaker.report(at(0), OK, false);
        }
        assert!(breaker.permit(at(0)).is_ok());
    }

    #[test]
    fn slow_answers_count_as_failures() {
        let mut breaker = Breaker::new(BreakerLimits::SERVICE);
        for _ in 0..10 {
            breaker.report(at(0), at(4), true);
        }
        assert!(breaker.is_open(at(1)));
    }

    #[test]
    fn three_good_trials_close_it_and_one_bad_trial_opens_it_again() {
        let mut breaker = opened();
        for _ in 0..3 {
            breaker.permit(at(10)).unwrap();
        }
        assert!(breaker.permit(at(10)).is_err(), "a fourth trial waits");
        for _ in 0..3 {
            breaker.report(at(10), OK, true);
        }
        assert!(breaker.permit(at(10)).is_ok());

        let mut breaker = opened();
        breaker.permit(at(10)).unwrap();
        breaker.report(at(10), OK, false);
        assert!(breaker.is_open(at(19)));
    }

    #[test]
    fn trials_that_nobody_reports_do_not_lock_it_for_ever() {
        let mut breaker = opened();
        for _ in 0..3 {
            breaker.permit(at(10)).unwrap();
        }
        assert!(breaker.permit(at(20)).is_ok());
    }
}
