//! `cargo xtask fuzz`: runs the libFuzzer targets of the package `fuzz` on the token parsers.
//!
//! Coverage comes from an LLVM pass that stable Rust includes. `AddressSanitizer` needs nightly and
//! is not used: the parsers contain no `unsafe` code.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{ambient, command::output};

/// Run time of each target in seconds, without `--seconds`.
const SECONDS: u32 = 30;

/// Maximum input length: longer than any token that a parser accepts.
const MAX_LEN: usize = 5_000;

/// Instruments branches, so that libFuzzer keeps inputs that reach new ones.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

pub(crate) fn main(words: &[&str]) -> Result<ExitCode> {
    let seconds = match words {
        [] => SECONDS,
        ["--seconds", seconds] => seconds.parse().context("--seconds takes a number")?,
        _ => bail!("fuzz has one option: --seconds N"),
    };
    let root = ambient::root();
    let programs = build(&root)?;
    for name in targets(&root)? {
        let runs = run(&root, &programs, &name, seconds)?;
        eprintln!("{name:14} {runs:>12} runs in {seconds} s, nothing found");
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds every target and returns the directory of the binaries.
fn build(root: &Path) -> Result<PathBuf> {
    // With an explicit target, build scripts and macros are built without these flags.
    let host = output(Command::new("rustc").arg("-vV"))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let dir = root.join("target/fuzz");
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--locked", "--release", "--target", host, "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(&dir)
        .env("RUSTFLAGS", FLAGS)
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the fuzz targets do not build; they need a C++ compiler (g++)");
    Ok(dir.join(host).join("release"))
}

/// The names of the targets.
fn targets(root: &Path) -> Result<Vec<String>> {
    let files = fs::read_dir(root.join("fuzz/targets")).context("cannot read fuzz/targets")?;
    let mut names = Vec::new();
    for file in files {
        let path = file?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Runs one target, starting from the corpus of earlier runs. Returns the number of inputs tried.
fn run(root: &Path, programs: &Path, name: &str, seconds: u32) -> Result<u64> {
    let (corpus, found) = (root.join("target/fuzz/corpus").join(name), root.join("target/fuzz/found"));
    for dir in [&corpus, &found] {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    let ran = Command::new(programs.join(name))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={MAX_LEN}"))
        .arg(format!("-artifact_prefix={}/{name}-", found.display()))
        .args(["-print_final_stats=1", "-verbosity=0"])
        .arg(&corpus)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run the target {name}"))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{name} failed; the input is in {}:\n{said}", found.display());
    let runs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let runs: u64 = runs
        .and_then(|number| number.trim().parse().ok())
        .context("libFuzzer did not report the number of runs")?;
    ensure!(runs > 0, "{name} tried nothing:\n{said}");
    Ok(runs)
}
