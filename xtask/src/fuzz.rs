//! `cargo xtask fuzz`: what reads tokens of strangers, tried with millions of them.
//!
//! The targets are libFuzzer's, in the package `fuzz`. Its coverage comes from a pass that stable Rust has as well; what it leaves out is
//! the sanitizer of addresses, which has little to say about code without `unsafe`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{ambient, command::output};

/// How long each target runs, in seconds, unless something else is said.
const SECONDS: u32 = 30;

/// The longest input: longer than any token, as parsers look at no more than that.
const MAX_LEN: usize = 5_000;

/// What counts which branches were taken, so that inputs which take new ones are kept.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

pub(crate) fn main(words: &[&str]) -> Result<ExitCode> {
    let seconds = match words {
        [] => SECONDS,
        ["--seconds", seconds] => seconds.parse().context("--seconds takes a number")?,
        _ => bail!("fuzz takes nothing but --seconds N"),
    };
    let root = ambient::root();
    let programs = build(&root)?;
    for name in targets(&root)? {
        let runs = run(&root, &programs, &name, seconds)?;
        eprintln!("{name:14} {runs:>12} runs in {seconds} s, nothing found");
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds every target. Answers with where they are.
fn build(root: &Path) -> Result<PathBuf> {
    // With a target, build scripts and macros are built without the flags.
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
    let files = fs::read_dir(root.join("fuzz/targets")).context("fuzz/targets is not there")?;
    let mut names = Vec::new();
    for file in files {
        let path = file?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Runs one target for a while, from what earlier runs learnt. Answers with how many inputs it tried.
fn run(root: &Path, programs: &Path, name: &str, seconds: u32) -> Result<u64> {
    let (corpus, found) = (root.join("target/fuzz/corpus").join(name), root.join("target/fuzz/found"));
    for dir in [&corpus, &found] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
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
    let runs: u64 =
        runs.and_then(|number| number.trim().parse().ok()).context("it says not how often it ran")?;
    ensure!(runs > 0, "{name} tried nothing:\n{said}");
    Ok(runs)
}
