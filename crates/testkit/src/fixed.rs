//! Reproducible time and randomness.

use urr_kernel::{Clock, Ids, Timestamp};

use crate::environment;

/// 2026-06-01T03:00:00Z, noon in Seoul: far from midnight and from the turn of a year in every zone
/// we show.
const NOON: Timestamp = Timestamp::from_micros(1_780_282_800_000_000);

/// A clock that stands still until the test advances it.
pub fn fixed_clock() -> Clock {
    Clock::fixed(NOON)
}

/// The seed of this test: `URR_TEST_SEED` repeats an earlier one, otherwise each call returns
/// another. It is printed, and the test runner shows the output of failed tests.
///
/// # Panics
///
/// If `URR_TEST_SEED` is not a number.
pub fn seed() -> u64 {
    let seed = chosen(environment::variable("URR_TEST_SEED").as_deref());
    eprintln!("URR_TEST_SEED={seed}");
    seed
}

fn chosen(asked: Option<&str>) -> u64 {
    asked.map_or_else(
        || u64::from_le_bytes(Ids::random(Clock::system()).bytes()),
        |text| text.parse().expect("URR_TEST_SEED is a whole number"),
    )
}

/// Ids that are the same for the same [`seed`].
pub fn seeded_ids(clock: &Clock) -> Ids {
    Ids::seeded(clock.clone(), seed())
}

/// A fixed clock and seeded ids that follow it.
pub fn fixed() -> (Clock, Ids) {
    let clock = fixed_clock();
    let ids = seeded_ids(&clock);
    (clock, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_clock_is_noon_in_seoul() {
        assert_eq!(fixed_clock().now().to_string(), "2026-06-01T03:00:00Z");
    }

    #[test]
    fn requested_seed_is_used_and_others_differ() {
        assert_eq!(chosen(Some("17")), 17);
        assert_ne!(chosen(None), chosen(None));
    }
}
