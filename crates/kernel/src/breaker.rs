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
    Closed { failed: VecDeque<bool>, since: Duration },
    Open { until: Duration },
    HalfOpen { started: usize, succeeded: usize, since: Duration },
}

impl State {
    fn closed(window: usize, since: Duration) -> Self {
        Self::Closed { failed: VecDeque::with_capacity(window), since }
    }

    /// The earliest beginning of a call whose news counts.
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
        assert!(limits.window > 0 && limits.trials > 0, "a breaker looks at one call or more");
        Self { limits, state: State::closed(limits.window, Duration::ZERO) }
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
            State::HalfOpen { started, since, .. } if *started < self.limits.trials => {
                *started += 1;
                // Two may read the clock in one order and come here in the other: what is permitted counts.
                *since = (*since).min(now);
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

    /// Tells how a permitted call went. News of a call from before the state changed is old and says nothing: it was
    /// already counted for what it was, an outage that has passed.
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

    /// Whether calls are refused at `now`.
    pub fn is_open(&self, now: Duration) -> bool {
        matches!(self.state, State::Open { until } if now < until)
    }

    /// Whether every call is permitted, and none is a trial.
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
    fn another_role_is_left_alone_by_the_numbers_of_the_sale() {
        let BreakerLimits { window, failures_percent, open_for, trials, slow_call } = BreakerLimits::SERVICE;
        assert_eq!((window, failures_percent, trials), (10, 50, 3));
        assert_eq!((open_for, slow_call), (at(10), at(3)));
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
            breaker.report(at(10) + OK, OK, true);
        }
        assert!(breaker.permit(at(11)).is_ok());

        let mut breaker = opened();
        breaker.permit(at(10)).unwrap();
        breaker.report(at(10) + OK, OK, false);
        assert!(breaker.is_open(at(19)));
    }

    #[test]
    fn late_news_of_calls_from_before_it_opened_neither_opens_nor_closes_it() {
        let mut breaker = opened();
        breaker.permit(at(10)).unwrap();
        for succeeded in [true, true, true, false] {
            breaker.report(at(11), at(11), succeeded);
        }
        assert!(!breaker.is_open(at(11)), "an old failure is no failed trial");
        for _ in 0..2 {
            breaker.permit(at(11)).unwrap();
        }
        assert!(breaker.permit(at(11)).is_err(), "an old success is no good trial");
        for _ in 0..3 {
            breaker.report(at(12), at(1), true);
        }
        for _ in 0..10 {
            breaker.report(at(13), at(13), false);
        }
        assert!(breaker.permit(at(13)).is_ok(), "they are the outage that has passed");
    }

    #[test]
    fn a_trial_that_read_the_clock_before_the_first_one_counts() {
        let mut breaker = opened();
        let begun = [at(10) + Duration::from_micros(1), at(10), at(10)];
        for begun in begun {
            breaker.permit(begun).unwrap();
        }
        for begun in begun {
            breaker.report(at(11), at(11).saturating_sub(begun), true);
        }
        for _ in 0..4 {
            breaker.permit(at(11)).expect("three good trials close it");
        }
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
