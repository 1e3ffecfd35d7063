//! How long to wait after a failure.

use std::{hash::Hasher as _, time::Duration};

/// Doubling waits with a ceiling and jitter, so that processes which failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure, before jitter.
    pub first: Duration,
    /// No wait is longer than this.
    pub max: Duration,
}

impl Backoff {
    /// For work that a store or a broker may refuse for a while: 1, 2, 4 … 30 s. Half a minute is what an operator
    /// who has just repaired something is willing to watch.
    pub const STORE: Self = Self { first: Duration::from_secs(1), max: Duration::from_secs(30) };

    /// The wait after `failures` failures in a row: between half of the doubled wait and all of it.
    ///
    /// `seed` is anything that differs between processes, such as [`Clock::ticks`](urr_kernel::Clock::ticks); the same
    /// seed gives the same wait, so a test with a fixed clock replays.
    pub fn delay(&self, failures: u32, seed: Duration) -> Duration {
        let doublings = failures.saturating_sub(1).min(MAX_DOUBLINGS);
        let full = self.first.saturating_mul(1 << doublings).min(self.max);
        let share = u32::from(mix(seed, failures));
        (full / 2).saturating_add((full / 2).saturating_mul(share) / u32::from(u8::MAX))
    }
}

/// 2^20 times the first wait is past every ceiling in use (a millisecond becomes 17 minutes).
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
        fn a_wait_is_between_half_and_all_of_the_doubled_one(failures in 1_u32..100, seed in any::<u64>()) {
            let backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(10) };
            let full = Duration::from_millis(100 << (failures - 1).min(7)).min(Duration::from_secs(10));
            let delay = backoff.delay(failures, Duration::from_nanos(seed));
            prop_assert!(delay >= full / 2 && delay <= full, "{delay:?} of {full:?}");
        }
    }

    #[test]
    fn different_seeds_spread_the_waits() {
        let waits: std::collections::BTreeSet<_> =
            (0..50).map(|seed| Backoff::STORE.delay(5, Duration::from_nanos(seed))).collect();
        assert!(waits.len() > 30, "only {} different waits", waits.len());
    }
}
