//! A clock that runs faster than the machine's is for tests alone.

use super::{Config, Profile, Storage, resolve::Problems, settings as s};

impl Problems<'_> {
    /// A process whose clock runs faster may serve nobody but whoever tests it.
    pub(super) fn clock(&mut self, config: &Config) {
        if config.clock_speed == 1 {
            return;
        }
        let speed = &s::CLOCK_SPEED.info;
        if config.profile == Profile::Production {
            self.stray(speed, "is for tests; profile = production keeps the machine's time");
        }
        if config.redis.is_some() || matches!(config.storage, Storage::Postgres { .. }) {
            self.stray(speed, "is for files and memory alone: a server's clock is its own");
        }
        if !config.listen.ip().is_loopback() || config.internal_listen.is_some() {
            self.stray(
                speed,
                "is for tests on this machine: `listen` must be on loopback, and no other process may call",
            );
        }
    }
}
