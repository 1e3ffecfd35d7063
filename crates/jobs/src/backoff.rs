//! Exponential backoff.

use std::{hash::Hasher as _, time::Duration};

/// Exponential backoff with a ceiling and jitter, so that processes that failed together do not
/// retry together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure, before jitter.
    pub first: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Backoff {
    /// For stores and brokers that may be down for a while: 1, 2, 4 … 30 s. The ceiling keeps the
    /// wait short for an operator who has just repaired something.
    pub const STORE: Self = Self { first: Duration::from_secs(1), max: Duration::from_secs(30) };

    /// The delay after `failures` failures in a row: between half and all of the doubled delay.
    ///
    /// `seed` is a value that differs between processes, such as
    /// [`Clock::ticks`](urr_kernel::Clock::ticks). The same seed gives the same delay, so a test
    /// with a fixed clock is reproducible.
    pub fn delay(&self, failures: u32, seed: Duration) -> Duration {
        let doublings = failures.saturating_sub(1).min(MAX_DOUBLINGS);
        let full = self.first.saturating_mul(1 << doublings).min(self.max);
        let share = u32::from(mix(seed, failures));
        (full / 2).saturating_add((full / 2).saturating_mul(share) / u32::from(u8::MAX))
    }
}

/// 2^20 times the first delay exceeds every ceiling in use (1 ms becomes 17 minutes).
const MAX_DOUBLINGS: u32 = 20;

fn mix(seed: Duration, failures: u32) -> u8 {
    let mut hash = std::hash::DefaultHasher::new();
    hash.write_u128(seed.as_nanos());
    hash.write_u32(failures);
    hash.finish().to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn delay_is_between_half_and_all_of_the_doubled_one(failures in 1_u32..100, seed in any::<u64>()) {
            let backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(10) };
            let full = Duration::from_millis(100 << (failures - 1).min(7)).min(Duration::from_secs(10));
            let delay = backoff.delay(failures, Duration::from_nanos(seed));
            prop_assert!(delay >= full / 2 && delay <= full, "{delay:?} of {full:?}");
        }
    }

    #[test]
    fn different_seeds_spread_the_delays() {
        let waits: std::collections::BTreeSet<_> =
            (0..50).map(|seed| Backoff::STORE.delay(5, Duration::from_nanos(seed))).collect();
        assert!(waits.len() > 30, "only {} different delays", waits.len());
    }
}
