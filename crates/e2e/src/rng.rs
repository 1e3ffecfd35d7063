//! The seed and the length of a run, from the environment.

pub use urr_stampede::rng::SeededRng;

/// The default seed; `URR_E2E_SEED` overrides it. It is fixed, so that runs are repeatable.
const SEED: u64 = 20_260_601;

/// A generator with the seed of this run, which is printed so that a failure can be repeated.
pub fn of_this_run(test: &str) -> SeededRng {
    let seed = setting("URR_E2E_SEED", SEED);
    eprintln!("{test}: URR_E2E_SEED={seed}");
    SeededRng::seeded(seed)
}

/// A number from the environment, or a default.
#[expect(clippy::disallowed_methods, reason = "run length and seed come from the environment")]
pub fn setting(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => otherwise,
    }
}
