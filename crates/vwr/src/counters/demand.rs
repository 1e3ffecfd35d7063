//! Size of the next block of reserved positions.
//!
//! Positions that were reserved and not given are skipped after a crash, and visitors then wait for
//! absent ones; so blocks must be small. Every reservation costs a write that all arrivals wait
//! for; so in a rush it must cover more than one arrival.

use std::time::Duration;

/// How long a block should last. A crash in a rush skips this much, and the database is written
/// this often.
const LASTS: Duration = Duration::from_millis(250);

/// Largest block.
const MAX_BLOCK: u64 = 10_000;

/// Recent demand for positions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// When positions were last reserved, how many, and how many had been given by then.
    at: Duration,
    block: u64,
    tail: u64,
}

impl Demand {
    /// How many to reserve when `count` more are needed after `tail`.
    ///
    /// As many as needed, and in a rush also those expected until the next write. A block is at
    /// most twice the previous one: two visitors who arrive together are no rush.
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

    /// One arrival at a time, at a constant rate. Returns the size of each block.
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
    fn no_extra_positions_are_reserved_at_low_demand() {
        assert!(blocks(1, 60).iter().all(|block| *block == 1));
        assert!(blocks(4, 60).iter().all(|block| *block == 1));
    }

    #[test]
    fn blocks_last_a_quarter_of_a_second_in_a_rush() {
        for per_second in [100, 1_000, 20_000] {
            let blocks = blocks(per_second, 10);
            assert!(blocks.iter().all(|block| *block <= per_second / 4), "{per_second}: {blocks:?}");
            assert!(blocks.len() < 10 * 6 + 15, "{per_second}: {} writes", blocks.len());
        }
    }

    #[test]
    fn a_burst_reserves_exactly_what_it_needs() {
        let mut demand = Demand::default();
        assert_eq!(demand.next(0, 70_000, Duration::ZERO), 70_000);
        assert_eq!(demand.next(70_000, 5, Duration::from_millis(1)), MAX_BLOCK);
        assert_eq!(demand.next(80_000, 5, Duration::from_hours(1)), 5, "demand falls after a rush");
    }
}
