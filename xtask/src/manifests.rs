//! The workspace members as reported by `cargo metadata`.

use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{ambient, command::output};

/// One entry of `packages` in `cargo metadata` per member.
pub(crate) fn packages() -> Result<Vec<Value>> {
    let described = output(
        Command::new("cargo")
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(ambient::root()),
    )?;
    let mut described: Value = serde_json::from_str(&described)?;
    match described["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => bail!("cargo metadata lists no packages"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `deny.toml` forbids this too, but `./test` runs cargo-deny only after a change of
    /// `deny.toml` or `Cargo.lock`, and the lock file does not contain version requirements.
    #[test]
    fn no_dependency_allows_every_version() {
        let packages = packages().unwrap();
        let mut seen = 0;
        for package in &packages {
            for dependency in package["dependencies"].as_array().unwrap() {
                let from_registry = !dependency["source"].is_null();
                seen += usize::from(from_registry);
                assert!(
                    !from_registry || dependency["req"] != "*",
                    "{} allows every version of {}",
                    package["name"],
                    dependency["name"]
                );
            }
        }
        assert!(seen > 100, "{seen}");
    }
}
