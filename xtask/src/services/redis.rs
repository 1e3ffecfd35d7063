//! Redis: one node, and a cluster of three primaries with a replica each.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use super::{
    ports::free_port,
    process::{self, Process},
};
use crate::command::{find, output};

/// Three primaries with one replica each.
const CLUSTER_NODES: usize = 6;

pub(crate) fn start_single(dir: &Path, running: &mut Vec<Process>) -> Result<String> {
    let port = free_port();
    start_node(&dir.join("redis"), port, &[], running)?;
    Ok(format!("redis://127.0.0.1:{port}"))
}

pub(crate) fn start_cluster(dir: &Path, running: &mut Vec<Process>) -> Result<String> {
    let mut nodes = Vec::with_capacity(CLUSTER_NODES);
    for index in 0..CLUSTER_NODES {
        let (port, bus_port) = (free_port(), free_port().to_string());
        let settings = [
            ["--cluster-enabled", "yes"],
            ["--cluster-config-file", "nodes.conf"],
            ["--cluster-port", &bus_port],
            // Short enough for a failover within a test, long enough for two busy cores.
            ["--cluster-node-timeout", "2000"],
        ];
        start_node(&dir.join(format!("redis-cluster-{index}")), port, &settings, running)?;
        nodes.push(port);
    }
    let mut create = Command::new(find("redis-cli").context("redis-cli is not installed")?);
    create.args(["--cluster", "create"]).args(nodes.iter().map(|port| format!("127.0.0.1:{port}")));
    create.args(["--cluster-replicas", "1", "--cluster-yes"]);
    output(&mut create)?;

    let log = dir.join("redis-cluster-0.log");
    process::wait(running, &log, || nodes.iter().all(|port| is_settled(*port)))?;
    let list: Vec<String> = nodes.iter().map(|port| format!("redis://127.0.0.1:{port}")).collect();
    Ok(list.join(","))
}

/// Whether the node sees all slots covered and, if it is a replica, is connected to its primary.
fn is_settled(port: u16) -> bool {
    let cluster = ask(port, &["cluster", "info"]).unwrap_or_default();
    let whole = ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6", "cluster_size:3"];
    let replication = ask(port, &["info", "replication"]).unwrap_or_default();
    let follows = replication.contains("role:master") || replication.contains("master_link_status:up");
    follows && whole.iter().all(|line| cluster.lines().any(|seen| seen.trim() == *line))
}

/// Starts a node without persistence. When memory is full it refuses writes and evicts nothing.
fn start_node(dir: &Path, port: u16, settings: &[[&str; 2]], running: &mut Vec<Process>) -> Result<()> {
    fs::create_dir(dir)?;
    let log = dir.with_extension("log");
    let mut server = Command::new(find("redis-server").context("redis-server is not installed")?);
    server.arg("--dir").arg(dir);
    server.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--daemonize", "no"]);
    server.args(["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]);
    server.args(settings.as_flattened());
    running.push(Process::spawn(&mut server, &log, "KILL")?);
    process::wait(running, &log, || ask(port, &["ping"]).is_some_and(|answer| answer.trim() == "PONG"))
}

/// The reply of the node, or `None` if it does not answer.
fn ask(port: u16, words: &[&str]) -> Option<String> {
    let mut client = Command::new(find("redis-cli")?);
    client.args(["-h", "127.0.0.1", "-p", &port.to_string()]).args(words);
    let output = client.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
