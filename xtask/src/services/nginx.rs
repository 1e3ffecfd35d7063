//! nginx: tests start it themselves, in front of a site of theirs.

use std::path::{Path, PathBuf};

use crate::command::find;

/// Debian puts it where only root looks.
const FOR_ROOT: &str = "/usr/sbin/nginx";

/// The program, if it is there.
pub(super) fn program() -> Option<PathBuf> {
    find("nginx").or_else(|| Path::new(FOR_ROOT).exists().then(|| FOR_ROOT.into()))
}
