//! Rates per second from growing counters, for live statistics of waiting rooms.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;

/// The last sample of each waiting room.
#[derive(Debug)]
pub struct Tally<K>(Mutex<HashMap<K, Sample>>);

/// Counters of a waiting room, from any starting point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Users who joined.
    pub arrived: u64,
    /// Users who were admitted.
    pub admitted: u64,
}

/// The previous sample.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// When it was taken, on the monotonic clock.
    at: Duration,
    /// `None` if the counters were unavailable.
    counts: Option<Counts>,
    errors: u64,
}

/// Rates since the previous sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rates {
    /// Users who joined per second since the previous sample. Absent if unknown.
    pub arrived: Option<f64>,
    /// Users admitted per second since the previous sample. Absent if unknown.
    pub admitted: Option<f64>,
    /// Requests of this process per second that failed with a server error, including 503 for lack
    /// of capacity, since the previous sample.
    pub errors: f64,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash> Tally<K> {
    /// Counts an error. Ignored for a room that is not being sampled.
    pub fn failed(&self, about: K) {
        if let Some(seen) = self.lock().get_mut(&about) {
            seen.errors += 1;
        }
    }

    /// Drops the samples of all other rooms.
    pub fn keep_only(&self, these: &[K]) {
        self.lock().retain(|about, _| these.contains(about));
    }

    /// Stores a sample taken at `ticks` and returns the rates since the previous one.
    pub fn look(&self, about: K, ticks: Duration, counts: Option<Counts>) -> Rates {
        let Some(before) = self.lock().insert(about, Sample { at: ticks, counts, errors: 0 }) else {
            return Rates::default();
        };
        let elapsed = ticks.saturating_sub(before.at);
        if elapsed.is_zero() {
            return Rates::default();
        }
        // A smaller count means that the counters were reset.
        let more = before.counts.zip(counts).and_then(|(before, now)| {
            let arrived = now.arrived.checked_sub(before.arrived)?;
            Some((arrived, now.admitted.checked_sub(before.admitted)?))
        });
        Rates {
            arrived: more.map(|(arrived, _)| per_second(arrived, elapsed)),
            admitted: more.map(|(_, admitted)| per_second(admitted, elapsed)),
            errors: per_second(before.errors, elapsed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Sample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rounded to one decimal.
fn per_second(number: u64, elapsed: Duration) -> f64 {
    let number = f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    (number / elapsed.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_returns_the_rates_since_the_previous_one() {
        let (tally, door) = (Tally::default(), 'a');
        let counts = |arrived, admitted| Some(Counts { arrived, admitted });
        let look = |counts, millis| {
            let Rates { arrived, admitted, errors } = tally.look(door, Duration::from_millis(millis), counts);
            (arrived, admitted, errors)
        };
        tally.failed(door);
        assert_eq!(look(counts(1_000, 900), 1_000), (None, None, 0.0), "there is no previous sample");
        (0..3).for_each(|_| tally.failed(door));
        assert_eq!(look(counts(1_030, 912), 2_500), (Some(20.0), Some(8.0), 2.0));
        tally.failed(door);
        assert_eq!(look(None, 3_500), (None, None, 1.0), "errors are counted without the counters");
        assert_eq!(look(counts(1_030, 912), 4_500), (None, None, 0.0));
        assert_eq!(look(counts(2, 1), 5_500), (None, None, 0.0), "the counters were reset");
        assert_eq!(look(counts(9, 9), 5_500), (None, None, 0.0), "no time has passed");
        tally.keep_only(&[]);
        assert_eq!(look(counts(10, 10), 6_500), (None, None, 0.0), "the previous sample was dropped");
    }
}
