//! What happened at a door since somebody last looked: counts that only grow, as numbers per second.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;

/// What was seen of several doors.
#[derive(Debug)]
pub struct Tally<K>(Mutex<HashMap<K, Seen>>);

/// How many came through, counted from some beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// People who came.
    pub arrived: u64,
    /// People who were let in.
    pub admitted: u64,
}

/// What the next look is compared with.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// When the last look was, on the clock's ticks.
    at: Duration,
    /// Nothing if it saw nothing.
    counts: Option<Counts>,
    errors: u64,
}

/// What happened since the look before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rates {
    /// People who came, per second since the sample before. Nothing: nobody knows.
    pub arrived: Option<f64>,
    /// People who were let in, per second since the sample before. Nothing: nobody knows.
    pub admitted: Option<f64>,
    /// Visitors of this process who were told of an error of ours, or that there is no room, per second since the sample before.
    pub errors: f64,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash> Tally<K> {
    /// Notes that somebody was told of an error. At a door that nobody looks at it is not counted.
    pub fn failed(&self, about: K) {
        if let Some(seen) = self.lock().get_mut(&about) {
            seen.errors += 1;
        }
    }

    /// Forgets all doors but these.
    pub fn keep_only(&self, these: &[K]) {
        self.lock().retain(|about, _| these.contains(about));
    }

    /// Remembers a look at `ticks` of the clock, and tells what happened since the one before.
    pub fn look(&self, about: K, ticks: Duration, counts: Option<Counts>) -> Rates {
        let Some(before) = self.lock().insert(about, Seen { at: ticks, counts, errors: 0 }) else {
            return Rates::default();
        };
        let elapsed = ticks.saturating_sub(before.at);
        if elapsed.is_zero() {
            return Rates::default();
        }
        // A door that counts less than before has begun anew.
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

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// To one decimal: nobody reads more.
fn per_second(number: u64, elapsed: Duration) -> f64 {
    let number = f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    (number / elapsed.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_tells_what_happened_since_the_one_before() {
        let (tally, door) = (Tally::default(), 'a');
        let counts = |arrived, admitted| Some(Counts { arrived, admitted });
        let look = |counts, millis| {
            let Rates { arrived, admitted, errors } = tally.look(door, Duration::from_millis(millis), counts);
            (arrived, admitted, errors)
        };
        tally.failed(door);
        assert_eq!(look(counts(1_000, 900), 1_000), (None, None, 0.0), "nobody knows what was before");
        (0..3).for_each(|_| tally.failed(door));
        assert_eq!(look(counts(1_030, 912), 2_500), (Some(20.0), Some(8.0), 2.0));
        tally.failed(door);
        assert_eq!(look(None, 3_500), (None, None, 1.0), "errors are counted here, whatever the store says");
        assert_eq!(look(counts(1_030, 912), 4_500), (None, None, 0.0));
        assert_eq!(look(counts(2, 1), 5_500), (None, None, 0.0), "it began anew");
        assert_eq!(look(counts(9, 9), 5_500), (None, None, 0.0), "no time has passed");
        tally.keep_only(&[]);
        assert_eq!(look(counts(10, 10), 6_500), (None, None, 0.0), "it was forgotten");
    }
}
