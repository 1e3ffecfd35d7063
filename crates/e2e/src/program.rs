//! The binary under test.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};

pub use urr_stampede::program::{Launch, Program, Running, Signal, send};

/// `URR_BIN`, or the binary in `target`: release, else dist, else debug.
#[expect(clippy::disallowed_methods, reason = "the binary under test comes from the environment")]
pub fn find() -> anyhow::Result<Program> {
    if let Some(path) = std::env::var_os("URR_BIN") {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "URR_BIN={} is not a file", path.display());
        return Ok(Program::at(path));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let found = ["release", "dist", "debug"].map(|profile| target.join(profile).join("urr"));
    found.into_iter().find(|path| path.is_file()).map(Program::at).context(
        "there is no urr binary: build one with `cargo build --release -p urr-app`, or name it with URR_BIN",
    )
}

/// A free loopback address.
pub fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, urr_testkit::free_port()))
}

/// A server on a free port, without demo data. All requests of a test come from one address, so
/// rate limits are off; tests of the limits turn them on.
pub fn launch(data_dir: &Path) -> anyhow::Result<Launch> {
    Ok(Launch::new(&find()?, data_dir, free_address())?
        .set("demo", "false")
        .set("log.filter", "warn")
        .set("limits.enabled", "false")
        .set("queue.guard", "false"))
}
