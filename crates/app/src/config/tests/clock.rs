//! `clock_speed`.

use super::{ConfigInput, SECRET};

#[test]
fn a_fast_clock_is_refused_beyond_local_tests() {
    assert_eq!(ConfigInput::new().config().clock_speed, 1);
    let fast = || ConfigInput::new().env("URR_CLOCK_SPEED", "60");
    assert_eq!(fast().config().clock_speed, 60);
    let production = fast().env("URR_PROFILE", "production").env("URR_SECURITY_SECRET", SECRET);
    let problems = production.problems();
    assert!(problems.iter().any(|problem| problem.contains("profile = production keeps")), "{problems:?}");
    for (name, value) in [
        ("URR_LISTEN", "0.0.0.0:3001"),
        ("URR_INTERNAL_LISTEN", "127.0.0.1:3002"),
        ("URR_REDIS_URLS", "redis://localhost"),
    ] {
        let problem = fast().env(name, value).problem();
        assert!(problem.starts_with("URR_CLOCK_SPEED: `clock_speed` is for"), "{problem}");
    }
}
