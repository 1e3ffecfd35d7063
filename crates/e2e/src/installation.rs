//! A whole installation, in one process or in several. Clients see no difference.

use std::{net::SocketAddr, path::Path};

use urr_testkit::services;

use crate::{
    http::Connection,
    people::{ADMIN, PASSWORD},
    program::{self, Launch, Running, free_address},
    stores::Stores,
};

/// The shared `security.secret`. Only tests use it, so it need not be secret.
pub const SECRET: &str = "7f3a9c51e8d24b06af1790c3d65e82b47f3a9c51e8d24b06af1790c3d65e82b4";
const INDEX_KEY: &str = "0b5e27d1c8f94a63be12f07d6a39c5e80b5e27d1c8f94a63be12f07d6a39c5e8";

/// The token between processes.
pub const TOKEN: &str = "between-processes-0f6b1c9d";

/// The processes and their addresses.
#[derive(Debug)]
pub struct Installation {
    /// The process with the role `auth`: tests stop and start it.
    pub auth: Launch,
    /// The running one.
    pub auth_running: Running,
    /// The public address.
    pub front: SocketAddr,
    /// A process that checks tokens by itself: with several processes, neither the gateway nor
    /// `auth`.
    pub other: SocketAddr,
    /// The internal listener.
    pub internal: SocketAddr,
    /// How the gateway was started.
    pub gateway: Launch,
    /// The other processes.
    running: Vec<Running>,
}

/// Changes the launch of a process, given its name and its default launch.
pub type Change = fn(&str, Launch) -> Launch;

impl Installation {
    /// Everything in one process, on SQLite.
    pub async fn whole(dir: &Path, change: Change) -> anyhow::Result<Self> {
        let internal = free_address();
        let launch = program::launch(&dir.join("whole"))?;
        let launch = change("whole", with_accounts(shared(launch), internal));
        let running = launch.up().await?;
        let front = running.address;
        Ok(Self {
            gateway: launch.clone(),
            auth: launch,
            auth_running: running,
            front,
            other: front,
            internal,
            running: Vec::new(),
        })
    }

    /// `auth`, sales and the gateway in processes of their own, each with its own SQLite files.
    pub async fn apart(dir: &Path, change: Change) -> anyhow::Result<Self> {
        let launch = |name: &str| program::launch(&dir.join(name)).map(shared);
        Self::up(launch, change).await
    }

    /// The same on PostgreSQL, Redis and Kafka; `None`, with a message, if one of them is missing.
    pub async fn on_servers(dir: &Path, change: Change) -> anyhow::Result<Option<Self>> {
        let (Some(stores), Some(kafka)) = (Stores::fresh().await, services::kafka()) else { return Ok(None) };
        let launch = |name: &str| {
            let launch = program::launch(&dir.join(name)).map(shared)?;
            Ok(stores
                .settings(launch)
                .set("bus.kind", "kafka")
                .set("bus.brokers", &kafka)
                .set("bus.replication", "1"))
        };
        launch("tables")?.run(&["migrate"]).await?;
        Self::up(launch, change).await.map(Some)
    }

    async fn up(launch: impl Fn(&str) -> anyhow::Result<Launch>, change: Change) -> anyhow::Result<Self> {
        let (internal, url) = (free_address(), |address: SocketAddr| format!("http://{address}"));
        let auth = with_accounts(launch("auth")?, internal).set("roles", "auth");
        let auth = change("auth", auth);
        let sales = launch("sales")?.set("roles", "catalog,tickets").set("remote.auth", url(internal));
        let sales = change("sales", sales);
        let gateway = launch("gateway")?
            .set("roles", "gateway")
            .set("remote.auth", url(internal))
            .set("upstream.auth", url(auth.listen))
            .set("upstream.catalog", url(sales.listen))
            .set("upstream.tickets", url(sales.listen));
        let gateway = change("gateway", gateway);
        let auth_running = auth.up().await?;
        let running = vec![sales.up().await?, gateway.up().await?];
        let (other, front) = (running[0].address, running[1].address);
        Ok(Self { auth, auth_running, front, other, internal, gateway, running })
    }

    /// A new connection to the public address.
    pub fn connect(&self) -> Connection {
        Connection::to(self.front)
    }

    /// Every public listener of the installation.
    pub fn listeners(&self) -> Vec<SocketAddr> {
        let mut all: Vec<_> = self.running.iter().map(|running| running.address).collect();
        all.push(self.auth_running.address);
        all
    }
}

fn shared(launch: Launch) -> Launch {
    launch.set("security.secret", SECRET).set("internal.token", TOKEN)
}

fn with_accounts(launch: Launch, internal: SocketAddr) -> Launch {
    launch
        .set("internal.listen", internal.to_string())
        .set("auth.index_key", INDEX_KEY)
        .set("admin.email", ADMIN)
        .set("admin.password", PASSWORD)
}
