//! PostgreSQL from the distribution's packages, with a temporary data directory.

use std::{
    fs,
    os::unix::{fs::MetadataExt as _, fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use super::{
    ports::free_port,
    process::{self, Process},
};
use crate::command::{find, output};

/// Test binaries run concurrently, and each test has its own connection pools.
const MAX_CONNECTIONS: u32 = 300;

/// The directory of the newest installed server.
pub(crate) fn binaries() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| bin.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop().map(|(_, bin)| bin).or_else(|| Some(find("initdb")?.parent()?.to_path_buf()))
}

pub(crate) fn start(dir: &Path, durable: bool, running: &mut Vec<Process>) -> Result<String> {
    let bin = binaries().context("PostgreSQL's initdb is not installed")?;
    let port = free_port();
    let data = dir.join("postgres");
    let log = dir.join("postgres.log");
    fs::create_dir(&data)?;
    let owner = Owner::of(dir)?;
    chown(&data, Some(owner.user), Some(owner.group))
        .context("cannot change the owner of the data directory")?;

    let mut init = owner.command(&bin.join("initdb"), dir);
    init.arg("-D").arg(&data).args([
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]);
    output(&mut init)?;

    let mut server = owner.command(&bin.join("postgres"), dir);
    server.arg("-D").arg(&data);
    let mut settings = vec![
        format!("port={port}"),
        format!("max_connections={MAX_CONNECTIONS}"),
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        // A transaction that a test leaves open must not block the other tests.
        "idle_in_transaction_session_timeout=60s".to_owned(),
    ];
    if durable {
        settings.extend(["shared_buffers=512MB", "max_wal_size=4GB"].map(str::to_owned));
    } else {
        // The data is temporary. Benchmarks and crash tests, which need durability, use
        // `--durable`.
        settings.extend(["fsync=off", "full_page_writes=off"].map(str::to_owned));
    }
    for setting in settings {
        server.args(["-c", &setting]);
    }
    // SIGQUIT stops PostgreSQL without a checkpoint, which temporary data does not need.
    running.push(Process::spawn(&mut server, &log, "QUIT")?);
    process::wait(running, &log, || {
        let mut ask = Command::new(bin.join("pg_isready"));
        ask.args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
        ask.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    })?;
    Ok(format!("postgres://postgres@127.0.0.1:{port}/postgres"))
}

/// The user that runs the server: PostgreSQL refuses to run as root.
struct Owner {
    user: u32,
    group: u32,
    change: bool,
}

impl Owner {
    /// The owner of `dir`, which xtask created; if that is root, the account `postgres` or
    /// `nobody`.
    fn of(dir: &Path) -> Result<Self> {
        let made_by = fs::metadata(dir)?;
        if made_by.uid() != 0 {
            return Ok(Self { user: made_by.uid(), group: made_by.gid(), change: false });
        }
        let accounts = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let (user, group) = account(&accounts, "postgres").or_else(|| account(&accounts, "nobody")).context(
            "PostgreSQL will not run as root, and there is neither a user postgres nor a user nobody",
        )?;
        Ok(Self { user, group, change: true })
    }

    fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        // The other user may not have access to the current directory.
        command.current_dir(dir);
        if self.change {
            command.uid(self.user).gid(self.group);
        }
        command
    }
}

/// User and group id of an account in the format of passwd(5).
fn account(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let user = fields.nth(1)?.parse().ok()?;
        Some((user, fields.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_matched_by_its_full_name() {
        let passwd =
            "root:x:0:0:root:/:/bin/sh\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:,,,:/:/bin/sh\n";
        assert_eq!(account(passwd, "postgres"), Some((101, 104)));
        assert_eq!(account(passwd, "nobody"), None);
    }
}
