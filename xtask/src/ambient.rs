//! The only xtask code that reads the environment and the clock.

use std::{
    ffi::OsString,
    path::PathBuf,
    time::{Duration, Instant},
};

/// The environment variable, if it is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "xtask is not part of the product and has no configuration file"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The names of all environment variables.
#[expect(
    clippy::disallowed_methods,
    reason = "variables that cargo sets for xtask are removed from the cargo it starts"
)]
pub(crate) fn variables() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name)
}

/// Returns whether a skipped service is a failure.
pub(crate) fn in_ci() -> bool {
    variable("CI").is_some_and(|value| value == "true" || value == "1")
}

/// The root of the work tree.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the workspace").to_path_buf()
}

/// Measures elapsed real time since its creation.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "waiting for another process needs the system clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
