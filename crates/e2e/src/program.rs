//! The real binary: finding it, starting it, waiting until it answers, stopping it kindly or not.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use tokio::{process::Child, time::timeout};
use urr_kernel::{Clock, UserId};

use crate::http::{Connection, Request};

/// How long a start may take before it counts as hung. On two loaded cores a debug build needs a few seconds.
const START: Duration = Duration::from_secs(30);

/// How long a drain may take: what the product promises, because a supervisor kills after it.
const DRAIN: Duration = Duration::from_secs(30);

/// Pause between two questions whether the process is ready.
const ASK_AGAIN: Duration = Duration::from_millis(3);

/// Log lines shown when something went wrong.
const LOG_TAIL: usize = 25;

/// Where the binary is.
#[derive(Clone, Debug)]
pub struct Program(PathBuf);

impl Program {
    /// `URR_BIN`, or what the last build of this workspace left in `target`, release before dist and debug.
    #[expect(clippy::disallowed_methods, reason = "which binary is tested is set from outside")]
    pub fn find() -> anyhow::Result<Self> {
        if let Some(path) = std::env::var_os("URR_BIN") {
            let path = PathBuf::from(path);
            ensure!(path.is_file(), "URR_BIN={} is not a file", path.display());
            return Ok(Self(path));
        }
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
        let found = ["release", "dist", "debug"].map(|profile| target.join(profile).join("urr"));
        found.into_iter().find(|path| path.is_file()).map(Self).context(
            "there is no urr binary: build one with `cargo build --release -p urr-app`, or name it with URR_BIN",
        )
    }

    /// The binary with a clean environment: what the tests are told must not configure the product.
    #[expect(clippy::disallowed_methods, reason = "the child keeps the caller's PATH")]
    pub fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.0);
        command.env_clear().kill_on_drop(true).stdin(Stdio::null());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    /// Runs one short command to its end and gives back what it printed.
    pub async fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = timeout(START, self.command().args(args).output()).await??;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "urr {} failed: {errors}", args.join(" "));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// An address on loopback that nobody listens on.
pub fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, urr_testkit::free_port()))
}

/// How to start the binary. The same launch starts the same server again.
#[derive(Clone, Debug)]
pub struct Launch {
    program: Program,
    /// Where it keeps its files.
    pub data_dir: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    log: PathBuf,
    settings: Vec<(String, String)>,
    env: Vec<(OsString, OsString)>,
}

impl Launch {
    /// Serves on a free port, without demo data, logging into a file beside the data directory. A crowd comes from one address, so
    /// nobody is counted; who tests the limits sets them.
    pub fn new(program: &Program, data_dir: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(data_dir)?;
        let launch = Self {
            program: program.clone(),
            data_dir: data_dir.to_owned(),
            listen: free_address(),
            log: data_dir.with_extension("log"),
            settings: Vec::new(),
            env: Vec::new(),
        };
        Ok(launch
            .set("demo", "false")
            .set("log.filter", "warn")
            .set("limits.enabled", "false")
            .set("queue.guard", "false"))
    }

    /// With a setting, as in the configuration file.
    pub fn set(mut self, key: &str, value: impl Into<String>) -> Self {
        self.settings.push((key.to_owned(), value.into()));
        self
    }

    /// With an environment variable.
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Starts the process and does not wait for anything.
    pub fn start(&self) -> anyhow::Result<Running> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = self.program.command();
        command.arg("serve");
        command.arg("--data-dir").arg(&self.data_dir).arg("--listen").arg(self.listen.to_string());
        for (key, value) in &self.settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        command.stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().context("urr does not start")?;
        Ok(Running { child, address: self.listen, log: self.log.clone() })
    }

    /// An access token made with this installation's key.
    pub async fn token(&self, user: UserId, role: &str) -> anyhow::Result<String> {
        self.run(&["token", "--user", &user.to_string(), "--role", role]).await
    }

    /// Runs another command of the binary with the same settings.
    pub async fn run(&self, command: &[&str]) -> anyhow::Result<String> {
        let dir = self.data_dir.to_string_lossy();
        let settings: Vec<String> =
            self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut args = command.to_vec();
        args.extend(["--data-dir", &dir]);
        for setting in &settings {
            args.extend(["--set", setting]);
        }
        self.program.run(&args).await
    }

    /// Starts the process and waits until it says that it is ready.
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
    /// Where it listens.
    pub address: SocketAddr,
    log: PathBuf,
}

impl Running {
    /// Waits until `/health/ready` answers 200 and says how long that took.
    pub async fn ready(&mut self) -> anyhow::Result<Duration> {
        let clock = Clock::system();
        let mut connection = Connection::to(self.address).patience(Duration::from_secs(5));
        let mut last = String::from("no answer");
        while clock.ticks() < START {
            match connection.send(&Request::get("/health/ready")).await {
                Ok(answer) if answer.status == 200 => return Ok(clock.ticks()),
                Ok(answer) => last = answer.show(),
                Err(_) => {
                    if let Some(status) = self.child.try_wait()? {
                        bail!("urr ended with {status} instead of serving:\n{}", self.log_tail());
                    }
                }
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
        bail!("urr was not ready after {START:?} ({last}):\n{}", self.log_tail())
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

    /// Asks the process to stop, as an operator or a container would, and waits for it.
    pub async fn terminate(mut self) -> anyhow::Result<ExitStatus> {
        self.signal("TERM").await?;
        self.ended(DRAIN).await
    }

    /// Sends a signal by name.
    pub async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let pid = self.child.id().context("urr has already ended")?;
        let sent =
            tokio::process::Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().await?;
        ensure!(sent.success(), "kill -{name} {pid} failed");
        Ok(())
    }

    /// The last lines the process wrote.
    pub fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_else(|error| error.to_string().into_bytes());
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }
}
