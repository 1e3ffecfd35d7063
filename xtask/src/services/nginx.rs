//! nginx: tests start it themselves, each in front of its own server.

use std::path::{Path, PathBuf};

use crate::command::find;

/// Debian installs it in a directory that is only on root's PATH.
const FOR_ROOT: &str = "/usr/sbin/nginx";

/// The installed program.
pub(super) fn program() -> Option<PathBuf> {
    find("nginx").or_else(|| Path::new(FOR_ROOT).exists().then(|| FOR_ROOT.into()))
}
