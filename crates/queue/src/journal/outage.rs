//! Since when a store has been unreachable or has refused writes.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use urr_kernel::EventId;

/// The current outage of a store, if any. Reading takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Outage(
    /// Start by the monotonic clock, in microseconds plus one; zero for no outage.
    AtomicU64,
);

impl Outage {
    /// Starts an outage. Returns `false` if one has started already.
    pub(crate) fn begin(&self, now: Duration) -> bool {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        self.0.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends the outage.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Whether there is an outage.
    pub(crate) fn goes_on(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// Duration of the outage, if there is one.
    pub(crate) fn lasts(&self, now: Duration) -> Option<Duration> {
        let since = self.0.load(Ordering::Acquire).checked_sub(1)?;
        Some(now.saturating_sub(Duration::from_micros(since)))
    }
}

/// Outages per room. A quiet room that has nothing to write does not end the outage of a busy one.
#[derive(Debug, Default)]
pub(crate) struct Outages(
    /// Start of each by the monotonic clock. Bounded by the rooms in use: see
    /// [`Self::forget_others`].
    Mutex<HashMap<EventId, Duration>>,
);

impl Outages {
    /// Starts an outage: the room's journal cannot be written.
    pub(crate) fn begin(&self, event: EventId, now: Duration) {
        self.rooms().entry(event).or_insert(now);
    }

    /// Ends the room's outage: all its steps are written, by this process or another.
    pub(crate) fn end(&self, event: EventId) {
        self.rooms().remove(&event);
    }

    /// Drops the outages of rooms that are not in use: another process may have written and closed
    /// them.
    pub(crate) fn forget_others(&self, in_use: &[EventId]) {
        let mut rooms = self.rooms();
        if !rooms.is_empty() {
            let in_use: HashSet<&EventId> = in_use.iter().collect();
            rooms.retain(|event, _| in_use.contains(event));
        }
    }

    /// Duration of the longest outage, if there is one.
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
    fn an_outage_lasts_from_the_first_failure_to_the_next_write() {
        let (outage, at) = (Outage::default(), Duration::from_secs);
        assert_eq!((outage.goes_on(), outage.lasts(at(9))), (false, None));
        assert!(outage.begin(at(0)), "at time zero too");
        assert!(!outage.begin(at(5)));
        assert_eq!((outage.goes_on(), outage.lasts(at(9))), (true, Some(at(9))));
        outage.end();
        assert_eq!((outage.goes_on(), outage.lasts(at(10))), (false, None));
    }

    #[test]
    fn outages_of_rooms_are_independent() {
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
