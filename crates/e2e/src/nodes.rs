//! Redis nodes: commands to a single node, and a Cluster per test that can be cut off.

use std::{io, process::Stdio, time::Duration};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
};
use urr_testkit::{Proxy, free_port, services, until, within};

/// Time limit of a command, and of forming a cluster.
const LIMIT: Duration = Duration::from_mins(1);

/// Hash slots of a cluster.
const SLOTS: u16 = 16_384;

/// Primaries of the cluster: the fewest with which a key can be on more than one other node.
const PRIMARIES: u16 = 3;

/// Sends commands to a Redis at `host:port`. Returns the first line of each reply.
pub async fn say(server: &str, commands: &[&[&str]]) -> anyhow::Result<Vec<String>> {
    let mut connection = BufReader::new(TcpStream::connect(server).await?);
    let mut answers = Vec::new();
    for words in commands {
        let parts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let text = format!("*{}\r\n{}", words.len(), parts.collect::<String>());
        connection.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        within(LIMIT, connection.read_line(&mut answer)).await?;
        answers.push(answer.trim_end().to_owned());
    }
    Ok(answers)
}

/// A Redis Cluster whose nodes announce the addresses of proxies. The nodes reach each other
/// directly, so cutting a proxy separates only the clients from the cluster.
pub struct Cluster {
    nodes: Vec<Node>,
}

struct Node {
    address: String,
    bus_port: u16,
    proxy: Proxy,
    _server: Child,
    _dir: TempDir,
}

impl Cluster {
    /// Starts a new cluster; `None`, with a message, if Redis is not installed.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        if services::redis_cluster().is_none() {
            return Ok(None);
        }
        let mut cluster = Self { nodes: Vec::new() };
        for _ in 0..PRIMARIES {
            match Node::start().await {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    eprintln!("SKIPPED: a cluster of the test's own: redis-server is not installed");
                    return Ok(None);
                }
                node => cluster.nodes.push(node?),
            }
        }
        cluster.join().await?;
        Ok(Some(cluster))
    }

    /// Assigns hash slots to each node and joins the nodes.
    async fn join(&self) -> anyhow::Result<()> {
        for (node, number) in self.nodes.iter().zip(0..) {
            until(LIMIT, async || say(&node.address, &[&["PING"]]).await.is_ok()).await;
            let share = SLOTS / PRIMARIES;
            let last = if number + 1 == PRIMARIES { SLOTS - 1 } else { (number + 1) * share - 1 };
            let (first, last, epoch) =
                ((number * share).to_string(), last.to_string(), (number + 1).to_string());
            let commands: [&[&str]; 2] =
                [&["CLUSTER", "ADDSLOTSRANGE", &first, &last], &["CLUSTER", "SET-CONFIG-EPOCH", &epoch]];
            let answers = say(&node.address, &commands).await?;
            ensure!(answers == ["+OK", "+OK"], "{answers:?}");
        }
        let first = self.nodes.first().context("the cluster has no nodes")?;
        for node in &self.nodes[1..] {
            let [port, bus_port] = [node.proxy.address().port(), node.bus_port].map(|port| port.to_string());
            let answers = say(&first.address, &[&["CLUSTER", "MEET", "127.0.0.1", &port, &bus_port]]).await?;
            ensure!(answers == ["+OK"], "{answers:?}");
        }
        for node in &self.nodes {
            // Any key will do: a node that does not see all slots served replies that the cluster
            // is down.
            until(LIMIT, async || {
                let answer = say(&node.address, &[&["GET", "any"]]).await;
                answer.is_ok_and(|lines| !lines[0].starts_with("-CLUSTERDOWN"))
            })
            .await;
        }
        Ok(())
    }

    /// The URLs of its nodes, through the proxies.
    pub fn urls(&self) -> String {
        let urls: Vec<String> =
            self.nodes.iter().map(|node| format!("redis://{}", node.proxy.address())).collect();
        urls.join(",")
    }

    /// The proxies between the nodes and their clients.
    pub fn proxies(&mut self) -> impl Iterator<Item = &mut Proxy> {
        self.nodes.iter_mut().map(|node| &mut node.proxy)
    }
}

impl Node {
    async fn start() -> io::Result<Self> {
        let (port, bus_port, dir) = (free_port(), free_port(), tempfile::tempdir()?);
        let address = format!("127.0.0.1:{port}");
        let proxy = Proxy::start(&address).await;
        let [port, bus, announced] = [port, bus_port, proxy.address().port()].map(|port| port.to_string());
        let server = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"])
            .args(["--cluster-enabled", "yes", "--cluster-port", &bus])
            .args(["--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", &announced])
            .args(["--cluster-announce-bus-port", &bus])
            .arg("--dir")
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { address, bus_port, proxy, _server: server, _dir: dir })
    }
}
