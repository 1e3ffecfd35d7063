//! Running commands to completion.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::ambient;

/// The path of an installed program.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = ambient::variable("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|candidate| candidate.is_file())
}

/// Removes the variables that `cargo run` sets for xtask. A cargo started by xtask would see them
/// as a change and rebuild.
pub(crate) fn forget_cargo(command: &mut Command) -> &mut Command {
    for name in ambient::variables() {
        let ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST");
        if name.to_str().is_some_and(ours) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, last_lines(&format!("{printed}\n{said}")));
    }
    Ok(printed)
}

/// The last lines of a long output, short enough for an error message.
pub(crate) fn last_lines(text: &str) -> String {
    const LINES: usize = 6;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_returns_its_output_as_error() {
        assert_eq!(output(Command::new("echo").arg("yes")).unwrap(), "yes\n");
        let error =
            output(Command::new("sh").args(["-c", "echo disk full >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("disk full"), "{error}");
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program").is_none());
    }
}
