//! `urr stampede` with a small crowd, so that the command keeps working.

use std::{net::SocketAddr, path::Path, process::Stdio, time::Duration};

use anyhow::ensure;
use urr_e2e::{
    http::{Connection, Request},
    program::{self, Signal},
};
use urr_testkit::until;

/// The clock is sixty times as fast, so ten minutes of waiting take ten seconds; the rest is for a
/// busy machine.
const LIMIT: Duration = Duration::from_secs(55);

#[tokio::test]
async fn two_thousand_fans_are_admitted_in_order() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stampede = program::find()?.command();
    stampede.args("stampede queue --fans 2000 --minutes 10 --speed 60 --connections 16 --dir".split(' '));
    let output = tokio::time::timeout(LIMIT, stampede.arg(dir.path()).output()).await??;
    let (said, complained) = (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}\n{complained}");
    for line in [
        "in       2000 of 2000 were let in and went",
        "order    every place was given once, nobody moved back",
        "joined    2000",
        "admitted  2000",
        "fair      no entry overtook",
    ] {
        assert!(said.contains(line), "no line begins with {line:?}:\n{said}");
    }
    assert!(complained.contains("gone of 2,000"), "progress is shown:\n{complained}");
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 0, "it leaves nothing behind");
    Ok(())
}

#[tokio::test]
async fn ctrl_c_stops_the_server_and_removes_its_files() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stampede = program::find()?.command();
    stampede.args("stampede queue --fans 2000 --minutes 600 --speed 1 --connections 4 --dir".split(' '));
    stampede.arg(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let stampede = stampede.spawn()?;
    let mut server = None;
    until(LIMIT, async || {
        server = listening(dir.path());
        let Some(address) = server else { return false };
        let ready = Connection::to(address).send(&Request::get("/health/ready")).await;
        ready.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    program::send(Signal::INT, &stampede)?;
    let output = tokio::time::timeout(LIMIT, stampede.wait_with_output()).await??;
    let said = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(130), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for line in ["requests ", "memory   urr serve used ", "stopped  before the end"] {
        assert!(said.contains(line), "no line begins with {line:?}:\n{said}");
    }
    assert_eq!(processes(dir.path()), [""; 0], "the server has ended");
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 0, "its files are removed");
    Ok(())
}

/// The command lines of processes with a path in `dir`.
fn processes(dir: &Path) -> Vec<String> {
    let dir = dir.to_string_lossy();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&*dir)).collect()
}

/// The address of the server whose files are in `dir`.
fn listening(dir: &Path) -> Option<SocketAddr> {
    processes(dir).iter().find_map(|line| line.split_once("--listen ")?.1.split(' ').next()?.parse().ok())
}

#[tokio::test]
async fn stampede_refuses_a_foreign_server() -> anyhow::Result<()> {
    for there in [["--listen", "0.0.0.0:3001"], ["--set", "redis.urls=redis://there:6379"]] {
        let refused = program::find()?.run(&[&["stampede", "queue"][..], &there].concat()).await;
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("its own server on loopback"), "{why}");
    }
    Ok(())
}
