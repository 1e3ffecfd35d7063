//! Server processes: started in their own process group, identified later, and stopped reliably.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::{ambient::Stopwatch, command::last_lines};

/// Start time limit; Kafka on two busy cores needs about 15 s.
pub(crate) const START_LIMIT: Duration = Duration::from_mins(2);
/// Time between the stop signal and SIGKILL.
const STOP_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// A process id and its start time, so that a reused process id is not mistaken for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) began: u64,
    pub(crate) signal: String,
}

impl Process {
    /// Starts a server in its own process group, so that Ctrl-C does not reach it, with its output
    /// in `log`.
    pub(crate) fn spawn(command: &mut Command, log: &Path, signal: &str) -> Result<Self> {
        let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let err = out.try_clone()?;
        let name = command.get_program().to_string_lossy().into_owned();
        command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let pid = child.id();
        let (began, _) = stat(pid).with_context(|| format!("{name} ended at once; see {}", log.display()))?;
        let process = Self { pid, began, signal: signal.to_owned() };
        // The reaper finds the process by this file if xtask dies.
        fs::write(log.with_extension("pid"), process.to_json().to_string())?;
        Ok(process)
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"pid": self.pid, "began": self.began, "signal": self.signal})
    }

    pub(crate) fn from_json(value: &Value) -> Result<Self> {
        let pid = value["pid"].as_u64().context("no pid")?;
        let began = value["began"].as_u64().context("no began")?;
        let signal = value["signal"].as_str().context("no signal")?.to_owned();
        Ok(Self { pid: u32::try_from(pid)?, began, signal })
    }

    pub(crate) fn from_note(note: &Path) -> Result<Self> {
        Self::from_json(&serde_json::from_str(&fs::read_to_string(note)?)?)
    }

    pub(crate) fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|(began, state)| began == self.began && state != 'Z')
    }

    fn send(&self, signal: &str) {
        if self.is_alive() {
            let kill = format!("kill -{signal} {}", self.pid);
            // The process may have ended already; the wait that follows decides.
            let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
        }
    }
}

/// Stops all of them: first the signal of each, then SIGKILL after the limit.
pub(crate) fn end(processes: &[Process]) {
    for process in processes {
        process.send(&process.signal);
    }
    let watch = Stopwatch::start();
    while processes.iter().any(Process::is_alive) {
        if watch.elapsed() > STOP_LIMIT {
            for process in processes {
                process.send("KILL");
            }
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// Polls `ready`. If a process ends or the limit passes, returns an error with the last log lines.
pub(crate) fn wait(processes: &[Process], log: &Path, mut ready: impl FnMut() -> bool) -> Result<()> {
    let watch = Stopwatch::start();
    while !ready() {
        if !processes.iter().all(Process::is_alive) {
            bail!("it ended while starting; {}", end_of(log));
        }
        if watch.elapsed() > START_LIMIT {
            bail!("it did not answer within {} s; {}", START_LIMIT.as_secs(), end_of(log));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn end_of(log: &Path) -> String {
    match fs::read_to_string(log) {
        Ok(text) => format!("the end of {}: {}", log.display(), last_lines(&text)),
        Err(error) => format!("{} cannot be read: {error}", log.display()),
    }
}

/// Start time in clock ticks since boot, and the state letter, from `/proc/PID/stat`.
fn stat(pid: u32) -> Option<(u64, char)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program name in parentheses, which may contain spaces and
    // parentheses.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    // proc(5): the start time is field 22; field 3, the state, was just read.
    let began = fields.nth(22 - 4)?.parse().ok()?;
    Some((began, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("server.log");
        let process = Process::spawn(Command::new("sleep").arg("60"), &log, "TERM").unwrap();
        assert!(process.is_alive());
        end(std::slice::from_ref(&process));
        assert!(!process.is_alive());
    }

    #[test]
    fn a_reused_process_id_is_not_mistaken_for_ours() {
        let me = std::process::id();
        let (began, _) = stat(me).unwrap();
        let other = Process { pid: me, began: began + 1, signal: "TERM".to_owned() };
        assert!(!other.is_alive());
        // The other process is this test itself: a wrong match would kill it here.
        end(&[other]);
    }

    #[test]
    fn a_server_that_dies_during_start_returns_its_log_as_error() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("server.log");
        let process =
            Process::spawn(Command::new("sh").args(["-c", "echo no disk; exit 1"]), &log, "TERM").unwrap();
        let error = wait(&[process], &log, || false).unwrap_err().to_string();
        assert!(error.contains("no disk"), "{error}");
    }
}
