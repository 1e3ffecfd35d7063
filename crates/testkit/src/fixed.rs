//! Time and chance that a failing test can repeat.

use urr_kernel::{Clock, Ids, Timestamp};

use crate::environment;

/// 2026-06-01T03:00:00Z, noon in Seoul: far from midnight and from the turn of a year in every zone we show.
const NOON: Timestamp = Timestamp::from_micros(1_780_282_800_000_000);

/// A clock that stands still until the test moves it.
pub fn fixed_clock() -> Clock {
    Clock::fixed(NOON)
}

/// The seed of this test: `URR_TEST_SEED` repeats an earlier one, otherwise each call gives another. It is printed, and
/// the test runner shows what a failed test printed.
///
/// # Panics
/// When `URR_TEST_SEED` is not a number.
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

/// Ids that come out the same for the same [`seed`].
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
    fn the_clock_shows_noon_in_seoul() {
        assert_eq!(fixed_clock().now().to_string(), "2026-06-01T03:00:00Z");
    }

    #[test]
    fn a_seed_that_was_asked_for_is_used_and_otherwise_each_differs() {
        assert_eq!(chosen(Some("17")), 17);
        assert_ne!(chosen(None), chosen(None));
    }
}
