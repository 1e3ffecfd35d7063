//! Servers on every set of stores: SQLite, PostgreSQL, Redis; directly or through a proxy that can
//! fail.

use std::path::Path;

use urr_testkit::{Proxy, fresh_database, services};

use crate::program::{self, Launch};

/// The sets of stores of both waiting rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Memory and SQLite.
    Embedded,
    /// Memory and PostgreSQL.
    Postgres,
    /// One Redis and PostgreSQL.
    Redis,
    /// A Redis Cluster and PostgreSQL.
    Cluster,
}

impl Backend {
    /// A migrated server on fresh stores; `None`, with a message, if one of them is missing.
    pub async fn launch(self, dir: &Path) -> anyhow::Result<Option<Launch>> {
        if self == Self::Embedded {
            return program::launch(&dir.join("data")).map(Some);
        }
        match Stores::of(self).await {
            Some(stores) => stores.launch(dir).await.map(Some),
            None => Ok(None),
        }
    }
}

/// The stores of one test. The database is its own, so nothing is shared with other tests.
#[derive(Clone, Debug)]
pub struct Stores {
    /// A PostgreSQL database.
    pub postgres: String,
    /// A Redis server, or the nodes of a cluster separated by commas; empty if there is none.
    pub redis: String,
}

impl Stores {
    /// A fresh database and the shared Redis; `None`, with a message, if one of them is missing.
    pub async fn fresh() -> Option<Self> {
        Self::of(Backend::Redis).await
    }

    /// A fresh database and the other stores of this backend; `None`, with a message, if one is
    /// missing.
    pub async fn of(backend: Backend) -> Option<Self> {
        let redis = match backend {
            Backend::Embedded | Backend::Postgres => String::new(),
            Backend::Redis => services::redis()?,
            Backend::Cluster => services::redis_cluster()?,
        };
        let postgres = fresh_database(&[]).await?.url;
        Some(Self { postgres, redis })
    }

    /// The number of deadlocks PostgreSQL has detected; the server retries them. Call it last: it
    /// ends every connection.
    pub async fn deadlocks(&self) -> i64 {
        let (_, name) = self.postgres.rsplit_once('/').expect("the URL names a database");
        urr_testkit::deadlocks(name.split('?').next().unwrap_or(name)).await
    }

    /// A migrated server on these stores.
    pub async fn launch(&self, dir: &Path) -> anyhow::Result<Launch> {
        let launch = self.settings(program::launch(&dir.join("data"))?);
        launch.run(&["migrate"]).await?;
        Ok(launch)
    }

    /// Adds these stores to a launch.
    pub fn settings(&self, launch: Launch) -> Launch {
        launch
            .set("storage.kind", "postgres")
            .set("storage.url", &self.postgres)
            .set("redis.urls", &self.redis)
            .set("redis.cluster", self.redis.contains(',').to_string())
    }
}

/// Starts a proxy in front of the server, and returns it with the URL through it.
pub async fn through_proxy(url: &str) -> (Proxy, String) {
    let (before, server, after) = split(url);
    let proxy = Proxy::start(server).await;
    let url = format!("{before}{}{after}", proxy.address());
    (proxy, url)
}

/// Splits a URL into the parts before, in and after `host:port`.
fn split(url: &str) -> (&str, &str, &str) {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url[scheme..].find(['/', '?']).map_or(url.len(), |at| scheme + at);
    let start = url[scheme..end].rfind('@').map_or(scheme, |at| scheme + at + 1);
    (&url[..start], &url[start..end], &url[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_and_port_are_replaced() {
        assert_eq!(split("postgres://u:p@h:1/d?x=y"), ("postgres://u:p@", "h:1", "/d?x=y"));
        assert_eq!(split("redis://127.0.0.1:6379"), ("redis://", "127.0.0.1:6379", ""));
    }
}
