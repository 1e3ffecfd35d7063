//! `cargo xtask tests -- ARGUMENTS…`: runs what `cargo test ARGUMENTS…` runs, several binaries at
//! once.
//!
//! `cargo test` runs one binary after the other, and most tests wait for a commit, a process or a
//! timer. The binaries are independent, so several run concurrently. The black-box tests run last
//! and alone, because they measure how much happens before a process is killed.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    fmt::Write as _,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{
    ambient::{self, Stopwatch},
    command::forget_cargo,
    services,
};

/// The crate whose binaries run last.
const BLACK_BOX: &str = "urr-e2e";
/// Concurrent tests per binary and core. As many binaries as cores run at once. Each black-box test
/// has its own processes.
const TESTS_PER_CORE: usize = 2;
const OF_THE_BLACK_BOX: usize = 1;
/// Time limit of one binary; the longest takes a few minutes.
const LIMIT: Duration = Duration::from_mins(15);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// One test binary.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    package: String,
    /// Such as `urr-http server`.
    name: String,
    program: PathBuf,
    dir: PathBuf,
}

/// Concurrency of a run.
#[derive(Clone, Copy)]
struct Load {
    binaries: usize,
    /// Per binary.
    tests: usize,
}

/// Result of one binary.
struct Ended {
    passed: bool,
    said: String,
}

pub(crate) fn main(words: &[&str]) -> Result<ExitCode> {
    let words = words.strip_prefix(&["--"]).unwrap_or(words);
    let binaries = build(words)?;
    ensure!(!binaries.is_empty(), "cargo test {} has no test binary", words.join(" "));
    let logs = ambient::root().join("target/tests");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let (last, first): (Vec<Binary>, Vec<Binary>) =
        binaries.into_iter().partition(|binary| binary.package == BLACK_BOX);
    let cores = thread::available_parallelism()?.get();
    let load = |tests_per_core| Load { binaries: cores, tests: cores * tests_per_core };
    let mut failed = run(first, load(TESTS_PER_CORE), &logs)?;
    failed.extend(run(last, load(OF_THE_BLACK_BOX), &logs)?);
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}; the logs are in {}", failed.join(", "), logs.display());
    Ok(ExitCode::FAILURE)
}

/// Builds the tests and returns the longest ones first: crates that use Kafka, then by binary size.
fn build(arguments: &[&str]) -> Result<Vec<Binary>> {
    let mut cargo = forget_cargo(&mut Command::new("cargo"))
        .arg("test")
        .args(arguments)
        .args(["--no-run", "--message-format", "json-render-diagnostics"])
        .current_dir(ambient::root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let mut binaries = Vec::new();
    let messages = cargo.stdout.take().context("cannot read the output of cargo")?;
    for line in BufReader::new(messages).lines() {
        binaries.extend(binary(&serde_json::from_str(&line?)?));
    }
    ensure!(cargo.wait()?.success(), "the tests do not build");
    let size = |binary: &Binary| fs::metadata(&binary.program).map_or(0, |file| file.len());
    let packages = services::with_kafka()?;
    binaries.sort_by_cached_key(|binary| Reverse((packages.contains(&binary.package), size(binary))));
    Ok(binaries)
}

/// The test binary in a JSON message of cargo, if the message is about one.
fn binary(message: &Value) -> Option<Binary> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let program = message["executable"].as_str().filter(|_| is_test)?;
    let dir = Path::new(message["manifest_path"].as_str()?).parent()?;
    // `path+file:///…/crates/http#urr-http@0.1.0`; the name is absent if the folder is called the
    // same.
    let (place, version) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = version.split_once('@').map_or_else(|| place.rsplit('/').next(), |(name, _)| Some(name))?;
    let target = message["target"]["name"].as_str()?;
    Some(Binary {
        package: package.to_owned(),
        name: format!("{package} {target}"),
        program: PathBuf::from(program),
        dir: dir.to_path_buf(),
    })
}

/// Runs the binaries and returns the names of those that failed.
fn run(binaries: Vec<Binary>, load: Load, logs: &Path) -> Result<Vec<String>> {
    let waiting = Mutex::new(binaries.into_iter());
    let failed = Mutex::new(Vec::new());
    let skipped = Mutex::new(BTreeSet::new());
    let work = || -> Result<()> {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(binary) = next else { return Ok(()) };
            let watch = Stopwatch::start();
            let ended = run_one(&binary, load.tests, logs, LIMIT)?;
            report(
                &binary,
                &ended,
                watch.elapsed(),
                &mut skipped.lock().unwrap_or_else(PoisonError::into_inner),
            );
            if !ended.passed {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(binary.name);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..load.binaries).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a worker panicked")).flatten())
    })?;
    Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn run_one(binary: &Binary, tests: usize, logs: &Path, limit: Duration) -> Result<Ended> {
    let path = logs.join(format!("{}.log", binary.name.replace([' ', '/'], ".")));
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut child = Command::new(&binary.program)
        .current_dir(&binary.dir)
        .env("CARGO_MANIFEST_DIR", &binary.dir)
        .env("RUST_TEST_THREADS", tests.to_string())
        .stdin(Stdio::null())
        .stderr(log.try_clone()?)
        .stdout(log)
        .spawn()
        .with_context(|| format!("cannot run {}", binary.program.display()))?;
    let watch = Stopwatch::start();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if watch.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(BETWEEN_LOOKS);
    };
    let mut said = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    if status.is_none() {
        let _ = writeln!(said, "\nit was ended after {} s", limit.as_secs());
    }
    Ok(Ended { passed: status.is_some_and(|status| status.success()), said })
}

/// Prints one line per passed binary, the whole output of a failed one, and each skipped service
/// once.
fn report(binary: &Binary, ended: &Ended, took: Duration, skipped: &mut BTreeSet<String>) {
    for line in ended.said.lines().filter(|line| line.starts_with("SKIPPED:")) {
        if skipped.insert(line.to_owned()) {
            eprintln!("{line}");
        }
    }
    let took = took.as_secs_f32();
    if ended.passed {
        let tests = ended.said.lines().find_map(|line| line.strip_prefix("test result: ok. "));
        let tests = tests.and_then(|line| line.split_once(';')).map_or("", |(passed, _)| passed);
        eprintln!("{took:6.1} s  {}: {tests}", binary.name);
    } else {
        eprintln!("{took:6.1} s  {}: FAILED\n{}", binary.name, ended.said);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script(name: &str, text: &str, dir: &Path) -> Binary {
        use std::os::unix::fs::PermissionsExt as _;
        let program = dir.join(name);
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Binary { package: "urr-x".to_owned(), name: name.to_owned(), program, dir: dir.to_path_buf() }
    }

    #[test]
    fn test_binaries_are_read_from_cargo_messages() {
        let mut message = json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///w/crates/http#urr-http@0.1.0",
            "manifest_path": "/w/crates/http/Cargo.toml",
            "target": { "name": "server" },
            "profile": { "test": true },
            "executable": "/w/target/debug/deps/server-1",
        });
        let found = binary(&message).unwrap();
        assert_eq!((found.name.as_str(), found.dir.to_str()), ("urr-http server", Some("/w/crates/http")));
        message["package_id"] = json!("path+file:///w/xtask#0.1.0");
        assert_eq!(binary(&message).unwrap().package, "xtask");
        message["profile"]["test"] = json!(false);
        assert_eq!(binary(&message), None, "the program itself is not a test");
        message["profile"]["test"] = json!(true);
        message["executable"] = Value::Null;
        assert_eq!(binary(&message), None, "a library is not executable");
    }

    #[test]
    fn a_failed_binary_fails_the_run_and_the_others_continue() {
        let dir = tempfile::tempdir().unwrap();
        let done = dir.path().join("done");
        let binaries = vec![
            script("bad", "exit 101", dir.path()),
            script("good", &format!("touch {}", done.display()), dir.path()),
        ];
        assert_eq!(run(binaries, Load { binaries: 1, tests: 1 }, dir.path()).unwrap(), ["bad"]);
        assert!(done.exists());
    }

    #[test]
    fn a_hanging_binary_is_killed_and_fails() {
        let dir = tempfile::tempdir().unwrap();
        let hangs = script("hangs", "echo begun; exec sleep 60", dir.path());
        let ended = run_one(&hangs, 1, dir.path(), Duration::from_millis(200)).unwrap();
        assert!(!ended.passed);
        assert!(ended.said.starts_with("begun"), "{}", ended.said);
    }
}
