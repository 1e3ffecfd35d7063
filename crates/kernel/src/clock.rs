//! The only way to read the time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use crate::Timestamp;

/// A clock, passed by value. A fixed clock moves only when a test advances it.
#[derive(Clone, Debug)]
pub struct Clock(Inner);

#[derive(Clone, Debug)]
enum Inner {
    System { started: Instant },
    Lapse { started: Instant, from: Timestamp, speed: u32 },
    Fixed(Arc<AtomicI64>),
}

impl Clock {
    /// The system clock.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may read the clock")]
    pub fn system() -> Self {
        Self(Inner::System { started: Instant::now() })
    }

    /// A wall clock that starts at the system time and runs `speed` times as fast, so that a queue
    /// of hours can be watched in minutes. [`Clock::ticks`] is not accelerated.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may read the clock")]
    pub fn lapse(speed: u32) -> Self {
        Self(Inner::Lapse { started: Instant::now(), from: Self::system().now(), speed: speed.max(1) })
    }

    /// A clock that stands still until [`Clock::advance`] is called. Clones share their time.
    pub fn fixed(at: Timestamp) -> Self {
        Self(Inner::Fixed(Arc::new(AtomicI64::new(at.as_micros()))))
    }

    /// The wall-clock time, for rows, responses and tokens.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may read the clock")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Inner::System { .. } => {
                let since = SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .expect("the system clock is set to before 1970");
                Timestamp::from_micros(
                    i64::try_from(since.as_micros()).expect("microseconds fit until the year 294246"),
                )
            }
            Inner::Lapse { started, from, speed } => {
                from.after(Instant::now().duration_since(*started).saturating_mul(*speed))
            }
            Inner::Fixed(micros) => Timestamp::from_micros(micros.load(Ordering::SeqCst)),
        }
    }

    /// Monotonic time since an arbitrary start, for intervals and measurements.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may read the clock")]
    pub fn ticks(&self) -> Duration {
        match &self.0 {
            Inner::System { started } | Inner::Lapse { started, .. } => {
                Instant::now().duration_since(*started)
            }
            Inner::Fixed(micros) => {
                Duration::from_micros(u64::try_from(micros.load(Ordering::SeqCst)).unwrap_or(0))
            }
        }
    }

    /// The real duration of a span of the wall clock.
    pub fn real(&self, span: Duration) -> Duration {
        match &self.0 {
            Inner::Lapse { speed, .. } => span / *speed,
            Inner::System { .. } | Inner::Fixed(_) => span,
        }
    }

    /// Moves a fixed clock forward.
    ///
    /// # Panics
    ///
    /// Unless the clock is fixed.
    pub fn advance(&self, by: Duration) {
        match &self.0 {
            Inner::System { .. } | Inner::Lapse { .. } => panic!("only a fixed clock can be advanced"),
            Inner::Fixed(micros) => {
                let by = i64::try_from(by.as_micros()).expect("a test advances by less than 292,000 years");
                micros.fetch_add(by, Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_clock_moves_only_when_advanced_and_clones_share_it() {
        let clock = Clock::fixed(Timestamp::from_micros(1_000));
        let other = clock.clone();
        assert_eq!(clock.now(), Timestamp::from_micros(1_000));
        other.advance(Duration::from_millis(2));
        assert_eq!(clock.now(), Timestamp::from_micros(3_000));
        assert_eq!(clock.ticks(), Duration::from_millis(3));
    }

    #[test]
    fn lapse_clock_runs_at_its_speed() {
        let clock = Clock::lapse(1_000_000);
        let (before, began) = (clock.now(), clock.ticks());
        while clock.ticks().saturating_sub(began) < Duration::from_millis(5) {}
        assert!(
            clock.now().since(before) >= Duration::from_secs(5_000),
            "one real microsecond is one second"
        );
        assert_eq!(clock.real(Duration::from_hours(1)), Duration::from_micros(3_600));
        assert_eq!(Clock::system().real(Duration::from_hours(1)), Duration::from_hours(1));
    }

    #[test]
    fn ticks_of_the_system_clock_never_step_back() {
        let clock = Clock::system();
        let mut last = clock.ticks();
        for _ in 0..1_000 {
            let now = clock.ticks();
            assert!(now >= last);
            last = now;
        }
    }
}
