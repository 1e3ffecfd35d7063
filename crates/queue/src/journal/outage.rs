//! Since when a store cannot be asked, or does not take what it should keep.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use urr_kernel::EventId;

/// A time in which a store does not do its work, or none. Whoever only asks needs no lock.
#[derive(Debug, Default)]
pub(crate) struct Outage(
    /// When it began by a clock that only goes forward, in microseconds from one; zero: it has not.
    AtomicU64,
);

impl Outage {
    /// It does not. `false`: nor did it before.
    pub(crate) fn begin(&self, now: Duration) -> bool {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        self.0.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// It does again.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Whether it does not.
    pub(crate) fn goes_on(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// For how long it has not, if it does not.
    pub(crate) fn lasts(&self, now: Duration) -> Option<Duration> {
        let since = self.0.load(Ordering::Acquire).checked_sub(1)?;
        Some(now.saturating_sub(Duration::from_micros(since)))
    }
}

/// Outages of rooms whose journals are written one by one. That nothing waits in a quiet room says nothing about a busy one.
#[derive(Debug, Default)]
pub(crate) struct Outages(
    /// When each began by a clock that only goes forward. No more than there are rooms in use: see [`Self::forget_others`].
    Mutex<HashMap<EventId, Duration>>,
);

impl Outages {
    /// A room's journal cannot be written.
    pub(crate) fn begin(&self, event: EventId, now: Duration) {
        self.rooms().entry(event).or_insert(now);
    }

    /// Everything of a room is written, by whomever.
    pub(crate) fn end(&self, event: EventId) {
        self.rooms().remove(&event);
    }

    /// Only these rooms are in use. What another process has written and closed is nobody's outage any more.
    pub(crate) fn forget_others(&self, in_use: &[EventId]) {
        let mut rooms = self.rooms();
        if !rooms.is_empty() {
            let in_use: HashSet<&EventId> = in_use.iter().collect();
            rooms.retain(|event, _| in_use.contains(event));
        }
    }

    /// For how long a journal could not be written, if one cannot; the longest of them.
    pub(crate) fn lasts(&self, now: Duration) -> Option<Duration> {
        self.rooms().values().min().map(|since| now.saturating_sub(*since))
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<EventId, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

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

    #[test]
    fn an_outage_of_one_room_is_not_over_because_another_has_nothing_to_write() {
        let [busy, quiet] = [1, 2].map(|number| EventId::from_uuid(Uuid::from_u128(number)));
        let (outages, at) = (Outages::default(), Duration::from_secs);
        assert_eq!(outages.lasts(at(9)), None);
        outages.begin(busy, at(1));
        outages.begin(quiet, at(2));
        outages.begin(busy, at(3));
        outages.end(quiet);
        assert_eq!(outages.lasts(at(9)), Some(at(8)));
        outages.forget_others(&[quiet, busy]);
        assert_eq!(outages.lasts(at(9)), Some(at(8)));
        outages.end(busy);
        assert_eq!(outages.lasts(at(9)), None);
        outages.begin(busy, at(9));
        outages.forget_others(&[quiet]);
        assert_eq!(outages.lasts(at(9)), None);
    }
}
