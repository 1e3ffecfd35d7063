//! How many places are set aside at a time.
//!
//! What was set aside and not given is skipped when whoever counts dies, and people then wait for nobody; so it is no more than will be
//! wanted in a moment. But each time costs a write, which all who arrive wait for; so in a rush it is not done for every arrival.

use std::time::Duration;

/// For how long a block should last: a crash in a rush skips what came in this time, and the database is written to this often.
const LASTS: Duration = Duration::from_millis(250);

/// A block is no larger, whatever was measured.
const MAX_BLOCK: u64 = 10_000;

/// How quickly places were wanted of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// When places were set aside last, how many, and how many had been given by then.
    at: Duration,
    block: u64,
    tail: u64,
}

impl Demand {
    /// How many to set aside, now that `count` are wanted behind `tail`.
    ///
    /// As many as are wanted, and in a rush what will be wanted in the next moment. A block is at most twice as large as the one before:
    /// two people who come together are no rush.
    pub(super) fn next(&mut self, tail: u64, count: u64, now: Duration) -> u64 {
        let given = u128::from(tail.saturating_sub(self.tail));
        let elapsed = now.saturating_sub(self.at).as_micros().max(1);
        let soon = u64::try_from(given * LASTS.as_micros() / elapsed).unwrap_or(u64::MAX);
        let block = count.max(soon.min(2 * self.block).min(MAX_BLOCK));
        *self = Self { at: now, block, tail };
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals one by one, so many a second. Answers with the size of each block.
    fn blocks(per_second: u64, seconds: u64) -> Vec<u64> {
        let mut demand = Demand::default();
        let (mut reserved, mut blocks) = (0, Vec::new());
        for tail in 0..per_second * seconds {
            if tail == reserved {
                let now = Duration::from_micros(tail * 1_000_000 / per_second);
                blocks.push(demand.next(tail, 1, now));
                reserved += blocks.last().unwrap();
            }
        }
        blocks
    }

    #[test]
    fn in_calm_times_nothing_is_set_aside_that_nobody_wants() {
        assert!(blocks(1, 60).iter().all(|block| *block == 1));
        assert!(blocks(4, 60).iter().all(|block| *block == 1));
    }

    #[test]
    fn in_a_rush_a_crash_skips_a_quarter_of_a_second_and_the_database_is_written_to_a_few_times_a_second() {
        for per_second in [100, 1_000, 20_000] {
            let blocks = blocks(per_second, 10);
            assert!(blocks.iter().all(|block| *block <= per_second / 4), "{per_second}: {blocks:?}");
            assert!(blocks.len() < 10 * 6 + 15, "{per_second}: {} writes", blocks.len());
        }
    }

    #[test]
    fn a_crowd_that_comes_at_once_gets_what_it_wants_and_no_more() {
        let mut demand = Demand::default();
        assert_eq!(demand.next(0, 70_000, Duration::ZERO), 70_000);
        assert_eq!(demand.next(70_000, 5, Duration::from_millis(1)), MAX_BLOCK);
        assert_eq!(demand.next(80_000, 5, Duration::from_hours(1)), 5, "the rush is over");
    }
}
