//! Chance that can be repeated: the same seed rolls the same numbers.

/// A small generator (`SplitMix64`): plenty for choosing seats and moments, and nothing else.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// The seed of every run unless `URR_E2E_SEED` says otherwise. A green run stays green.
const SEED: u64 = 20_260_601;

impl Dice {
    /// Dice that roll what this seed says.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed of this run, printed so that a failure can be repeated.
    pub fn of_this_run(test: &str) -> Self {
        let seed = setting("URR_E2E_SEED", SEED);
        eprintln!("{test}: URR_E2E_SEED={seed}");
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`. The bias of the remainder is of no consequence for the small ends used here.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "nothing is below zero");
        self.roll() % end
    }

    /// A place in something that has `len` places.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("an index below a usize is one")
    }

    /// True in `percent` of a hundred rolls.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Dice of their own for somebody else, so that the order in which they roll does not matter.
    pub fn split(&mut self) -> Self {
        Self(self.roll())
    }
}

/// A number from the environment, or what it is otherwise.
#[expect(clippy::disallowed_methods, reason = "the length of a run is set from outside")]
pub fn setting(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_rolls_the_same_and_another_does_not() {
        let rolls = |seed| {
            let mut dice = Dice::seeded(seed);
            (0..8).map(|_| dice.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(rolls(1), rolls(1));
        assert_ne!(rolls(1), rolls(2));
        assert!((0..100).all(|_| Dice::seeded(3).index(4) < 4));
    }
}
