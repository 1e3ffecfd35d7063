//! `urr` as a process: start it, wait until it is ready, stop or kill it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, kill_process};
use tokio::{
    process::{Child, Command},
    time::timeout,
};
use urr_kernel::{Clock, UserId};

pub use rustix::process::Signal;

use crate::{
    http::{Connection, Request},
    machine,
};

/// Time limit of a start. A million waiting users are restored within it.
const START: Duration = Duration::from_mins(1);

/// Time limit of a drain: what the product documents, because a supervisor kills after it.
const DRAIN: Duration = Duration::from_secs(30);

/// Pause between two polls of a process that starts.
const POLL: Duration = Duration::from_millis(2);

/// Log lines shown in errors.
const LOG_TAIL: usize = 25;

/// The path of the binary.
#[derive(Clone, Debug)]
pub struct Program(PathBuf);

impl Program {
    /// The binary at this path.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The binary that is running now.
    pub fn this() -> io::Result<Self> {
        std::env::current_exe().map(Self)
    }

    /// The binary with an empty environment: the caller's variables must not configure it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.env_clear().kill_on_drop(true).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end and returns its output.
    pub async fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        finish(self.command().args(args)).await
    }
}

/// Runs a command to its end and returns its output.
async fn finish(command: &mut Command) -> anyhow::Result<String> {
    let output = timeout(START, command.output()).await??;
    let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    ensure!(output.status.success(), "{:?} failed: {said}{errors}", command.as_std());
    Ok(said.trim().to_owned())
}

/// How to start a server. The same launch restarts the same server.
#[derive(Clone, Debug)]
pub struct Launch {
    program: Program,
    /// Its data directory.
    pub data_dir: PathBuf,
    /// Its address.
    pub listen: SocketAddr,
    log: PathBuf,
    settings: Vec<(String, String)>,
    env: Vec<(OsString, OsString)>,
    own_group: bool,
}

impl Launch {
    /// Serves on `listen` and logs to a file beside the data directory, which is created if
    /// missing.
    pub fn new(program: &Program, data_dir: &Path, listen: SocketAddr) -> io::Result<Self> {
        fs::create_dir_all(data_dir)?;
        Ok(Self {
            program: program.clone(),
            data_dir: data_dir.to_owned(),
            listen,
            log: data_dir.with_extension("log"),
            settings: Vec::new(),
            env: Vec::new(),
            own_group: false,
        })
    }

    /// The running binary on a free port, in its own process group: Ctrl-C reaches only the caller,
    /// which stops the server itself.
    pub(crate) fn of_this_program(data_dir: &Path) -> io::Result<Self> {
        let listen = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        Ok(Self { own_group: true, ..Self::new(&Program::this()?, data_dir, listen)? })
    }

    /// Adds a setting, as in the configuration file.
    pub fn set(mut self, key: &str, value: impl Into<String>) -> Self {
        self.settings.push((key.to_owned(), value.into()));
        self
    }

    /// Adds an environment variable, for values that must not appear in the process list.
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Starts the process without waiting.
    pub fn start(&self) -> anyhow::Result<Running> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = self.command(&["serve", "--listen", &self.listen.to_string()]);
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        command.stdout(log.try_clone()?).stderr(log);
        if self.own_group {
            command.process_group(0);
        }
        let clock = Clock::system();
        let child = command.spawn().context("could not start urr")?;
        Ok(Running { child, address: self.listen, log: self.log.clone(), clock })
    }

    /// An access token signed with this installation's key.
    pub async fn token(&self, user: UserId, role: &str) -> anyhow::Result<String> {
        self.run(&["token", "--user", &user.to_string(), "--role", role]).await
    }

    /// Runs another command of the binary with the same settings.
    pub async fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        finish(&mut self.command(args)).await
    }

    /// A command of the binary with the same settings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program.command();
        command.args(args).arg("--data-dir").arg(&self.data_dir);
        for (key, value) in &self.settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        command
    }

    /// Starts the process and waits until it is ready.
    pub async fn up(&self) -> anyhow::Result<Running> {
        let mut running = self.start()?;
        running.ready().await?;
        Ok(running)
    }
}

/// A started process. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its address.
    pub address: SocketAddr,
    log: PathBuf,
    /// Started with the process.
    clock: Clock,
}

impl Running {
    /// Waits until `/health/ready` answers 200. Returns the time since the start of the process.
    pub async fn ready(&mut self) -> anyhow::Result<Duration> {
        self.answers("/health/ready").await
    }

    /// Waits until `path` answers 200. Returns the time since the start of the process.
    pub async fn answers(&mut self, path: &str) -> anyhow::Result<Duration> {
        let mut connection = Connection::to(self.address).patience(Duration::from_secs(5));
        let mut last = String::from("no answer");
        let give_up = self.clock.ticks() + START;
        while self.clock.ticks() < give_up {
            match connection.send(&Request::get(path)).await {
                Ok(answer) if answer.status == 200 => return Ok(self.clock.ticks()),
                Ok(answer) => last = answer.show(),
                Err(_) => {
                    if let Some(status) = self.child.try_wait()? {
                        bail!("urr ended with {status} instead of serving:\n{}", self.log_tail());
                    }
                }
            }
            tokio::time::sleep(POLL).await;
        }
        bail!("urr did not answer {path} with 200 within {START:?} ({last}):\n{}", self.log_tail())
    }

    /// Waits until the process ends by itself.
    pub async fn ended(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let status = timeout(within, self.child.wait()).await;
        Ok(status.with_context(|| format!("urr did not end within {within:?}:\n{}", self.log_tail()))??)
    }

    /// kill -9.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("urr had already ended with {status}:\n{}", self.log_tail());
        }
        Ok(self.child.kill().await?)
    }

    /// kill -9, unless the process has already ended.
    pub(crate) async fn kill_if_running(&mut self) -> io::Result<()> {
        match self.child.try_wait()? {
            Some(_) => Ok(()),
            None => self.child.kill().await,
        }
    }

    /// Sends SIGTERM, as a supervisor would, and waits for the end.
    pub async fn terminate(mut self) -> anyhow::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.ended(DRAIN).await
    }

    /// Sends SIGTERM; an error unless the process ends cleanly.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        let status = self.ended(DRAIN).await?;
        ensure!(status.success(), "urr ended with {status} instead of 0:\n{}", self.log_tail());
        Ok(())
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        send(signal, &self.child)
    }

    /// Reads the memory of the process.
    pub(crate) fn memory(&self) -> ProcessMemory {
        ProcessMemory(self.child.id().unwrap_or_default())
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_else(|error| error.to_string().into_bytes());
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }
}

/// Sends a signal to a child process.
pub fn send(signal: Signal, child: &Child) -> anyhow::Result<()> {
    let id = child.id().context("urr has already ended")?;
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("invalid process id")?;
    kill_process(pid, signal).with_context(|| format!("signal to {id}"))
}

/// The memory of a process in bytes; zero once it has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessMemory(u32);

impl ProcessMemory {
    /// Resident memory.
    pub(crate) fn resident(self) -> u64 {
        machine::memory_of(&self.0.to_string(), "VmRSS")
    }

    /// Peak of the resident memory.
    pub(crate) fn peak(self) -> u64 {
        machine::memory_of(&self.0.to_string(), "VmHWM")
    }
}
