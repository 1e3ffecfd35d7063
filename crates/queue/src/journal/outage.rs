//! Since when the journal cannot be written.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A time in which the journal cannot be written, or none. Whoever only asks needs no lock.
#[derive(Debug, Default)]
pub(crate) struct Outage(
    /// When it began by a clock that only goes forward, in microseconds from one; zero: it has not.
    AtomicU64,
);

impl Outage {
    /// It cannot be written. `false`: nor could it before.
    pub(crate) fn begin(&self, now: Duration) -> bool {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        self.0.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// It can again.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Whether it cannot.
    pub(crate) fn goes_on(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// For how long it could not, if it cannot.
    pub(crate) fn lasts(&self, now: Duration) -> Option<Duration> {
        let since = self.0.load(Ordering::Acquire).checked_sub(1)?;
        Some(now.saturating_sub(Duration::from_micros(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_lasts_from_its_first_failure_until_something_is_written() {
        let (outage, at) = (Outage::default(), Duration::from_secs);
        assert_eq!((outage.goes_on(), outage.lasts(at(9))), (false, None));
        assert!(outage.begin(at(0)), "also in the first moment of a clock");
        assert!(!outage.begin(at(5)));
        assert_eq!((outage.goes_on(), outage.lasts(at(9))), (true, Some(at(9))));
        outage.end();
        assert_eq!((outage.goes_on(), outage.lasts(at(10))), (false, None));
    }
}
