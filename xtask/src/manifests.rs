//! The members of the workspace, as cargo describes them.

use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{ambient, command::output};

/// One entry of `packages` in `cargo metadata` for every member.
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

    /// What `deny.toml` forbids as well. `./test` asks cargo-deny only where `deny.toml` or `Cargo.lock` changed, and the lock does not
    /// tell which versions a manifest allows.
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
