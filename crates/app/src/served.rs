//! `urr serve` as a process of its own: what is measured there is what is shipped, its memory and its start included.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use urr_kernel::Clock;

use crate::{bench::machine, failure::Failure};

/// A start that takes longer has failed.
const START: Duration = Duration::from_mins(1);

/// What a drain may take, and a little for the machine.
const STOP: Duration = Duration::from_secs(40);

/// The pause between two tries to reach it while it starts.
const TRY_AGAIN: Duration = Duration::from_millis(2);

/// The pause between two looks whether the process has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A server on loopback. Dropping it kills it.
pub(crate) struct Served {
    child: Child,
    /// What it complains about.
    log: PathBuf,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// How long it took from its start to the first answer: that it lives.
    pub(crate) answered: Duration,
    /// How long it took from its start to being ready.
    pub(crate) took: Duration,
}

impl Served {
    /// Starts this very program in `data_dir`, which must be there, and waits until it is ready. Neither the environment nor a
    /// configuration file has a say. What must not be seen in a list of processes goes into `env`.
    pub(crate) fn start(
        data_dir: &Path,
        settings: &[(&str, &str)],
        env: &[(&str, &str)],
        clock: &Clock,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::because("urr serve cannot be started", &error);
        let data_dir = data_dir.canonicalize().map_err(failed)?;
        let log = data_dir.join("serve.log");
        // Known before it starts, so that somebody can ask from then on; nobody else is given it so soon.
        let address =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).map_err(failed)?;
        let mut command = command(&data_dir, &["serve", "--listen", &address.to_string()]).map_err(failed)?;
        for (key, value) in settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        command.envs(env.iter().copied()).stdout(Stdio::piped());
        command.stderr(File::create(&log).map_err(failed)?);
        let began = clock.ticks();
        let mut child = command.spawn().map_err(failed)?;
        let first = child.stdout.take().map(first_line);
        let answered = first_answer(address, began, clock);
        let mut served = Self { child, log, address, answered: Duration::ZERO, took: Duration::ZERO };
        let line = first.and_then(|first| first.recv_timeout(START).ok()).unwrap_or_default();
        served.took = clock.ticks().saturating_sub(began);
        if !line.contains("is ready") {
            return Err(served.did_not("start"));
        }
        served.answered = answered.recv_timeout(START).map_err(|_| served.did_not("answer"))?;
        Ok(served)
    }

    /// What tells how much memory it has in use, for others to look at.
    pub(crate) fn meter(&self) -> Meter {
        Meter(self.child.id())
    }

    /// The most memory it ever had in use, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        machine::memory_of(&self.child.id().to_string(), "VmHWM")
    }

    /// Asks it to stop, as an operator would, and waits until it has.
    pub(crate) fn stop(mut self, clock: &Clock) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::because("urr serve cannot be stopped", &error);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| self.did_not("run"))?;
        kill_process(pid, Signal::TERM).map_err(|error| failed(error.into()))?;
        let until = clock.ticks() + STOP;
        while clock.ticks() < until {
            match self.child.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return Err(self.did_not("stop cleanly")),
                None => thread::sleep(LOOK_AGAIN),
            }
        }
        Err(self.did_not("stop in time"))
    }

    /// What went wrong, in the words of the process itself.
    fn did_not(&self, what: &str) -> Failure {
        const LINES: usize = 10;
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let said: Vec<&str> = said.lines().collect();
        let last = said[said.len().saturating_sub(LINES)..].iter().map(|line| format!("  {line}"));
        let first = format!("urr serve did not {what}; the last it said:");
        Failure(std::iter::once(first).chain(last).collect())
    }
}

/// Tells how much memory a process has in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter(u32);

impl Meter {
    /// In bytes; zero once the process has ended.
    pub(crate) fn bytes(self) -> u64 {
        machine::memory_of(&self.0.to_string(), "VmRSS")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended already, or it is not worth waiting for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This very program with arguments, on the files of `data_dir` and nothing else.
pub(crate) fn command(data_dir: &Path, args: &[&str]) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).arg("--data-dir").arg(data_dir).current_dir(data_dir).env_clear().stdin(Stdio::null());
    Ok(command)
}

/// How long it takes until somebody answers, once somebody does.
#[expect(clippy::disallowed_methods, reason = "it asks while the caller waits for something else")]
fn first_answer(address: SocketAddr, began: Duration, clock: &Clock) -> mpsc::Receiver<Duration> {
    let ((told, answered), clock) = (mpsc::channel(), clock.clone());
    thread::spawn(move || {
        while clock.ticks().saturating_sub(began) < START {
            if lives(address).unwrap_or(false) {
                // Nobody listens if it has ended meanwhile.
                let _ = told.send(clock.ticks().saturating_sub(began));
                return;
            }
            thread::sleep(TRY_AGAIN);
        }
    });
    answered
}

fn lives(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(START))?;
    stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    Ok(answer == *b"HTTP/1.1 200")
}

/// The first line, once it is there. What follows is read and dropped, so that the process is never kept waiting.
#[expect(clippy::disallowed_methods, reason = "it reads a pipe, for as long as the process lives")]
fn first_line(out: ChildStdout) -> mpsc::Receiver<String> {
    let (told, line) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            // Nobody listens after the first.
            let _ = told.send(line);
        }
    });
    line
}
