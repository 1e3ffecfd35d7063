//! Private Redis servers, for tests that would disturb the shared ones.

use std::{
    io::ErrorKind,
    process::{Child, Command, Stdio},
};

use redis::{Cmd, FromRedisValue, aio::MultiplexedConnection};
use tempfile::TempDir;
use urr_testkit::{free_port, services, until};

use super::LIMIT;

/// A server process, killed on drop.
pub(super) struct Server {
    pub(super) port: u16,
    child: Child,
    pub(super) dir: TempDir,
    settings: Vec<String>,
}

impl Server {
    /// Starts a server and waits until it accepts connections. `None` if tests run without
    /// services.
    pub(super) async fn start(settings: &[&str]) -> Option<Self> {
        let server = Self::prepare(settings)?;
        let password = settings.iter().skip_while(|word| **word != "--requirepass").nth(1).copied();
        until(LIMIT, async || server.try_connect(password).await.is_ok()).await;
        Some(server)
    }

    /// Starts a server without waiting for it.
    pub(super) fn prepare(settings: &[&str]) -> Option<Self> {
        services::redis()?;
        let (port, dir) = (free_port(), tempfile::tempdir().unwrap());
        let settings: Vec<String> = settings.iter().map(|word| (*word).to_owned()).collect();
        let child = match spawn(port, &dir, &settings) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                services::not_installed("redis-server");
                return None;
            }
            child => child.unwrap(),
        };
        Some(Self { port, child, dir, settings })
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut self.connect_as(None).await).await.unwrap()
    }

    pub(super) async fn connect_as(&self, password: Option<&str>) -> MultiplexedConnection {
        self.try_connect(password).await.unwrap()
    }

    async fn try_connect(&self, password: Option<&str>) -> redis::RedisResult<MultiplexedConnection> {
        let login = password.map(|password| format!(":{password}@")).unwrap_or_default();
        let client = redis::Client::open(format!("redis://{login}127.0.0.1:{}", self.port))?;
        client.get_multiplexed_async_connection().await
    }

    /// Kills the process, like a power failure.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Restarts it on the same port and directory.
    pub(super) async fn restart(&mut self) {
        self.child = spawn(self.port, &self.dir, &self.settings).unwrap();
        until(LIMIT, async || self.try_connect(None).await.is_ok()).await;
    }

    /// Suspends (`STOP`) or resumes (`CONT`) the process.
    pub(super) fn signal(&self, name: &str) {
        let signal = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(signal.unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, dir: &TempDir, settings: &[String]) -> std::io::Result<Child> {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
    command.arg("--dir").arg(dir.path()).args(settings);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
