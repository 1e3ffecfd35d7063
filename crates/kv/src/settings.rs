//! Settings of the Redis client.

use std::{fs, io, path::PathBuf};

use urr_settings::{List, Millis, Problems, RedisUrl, settings};

use crate::KvConfig;

settings! {
    /// `[redis]`.
    pub struct Settings in "redis"
        "Sheds contention before the database. Without it the same work is done in memory, per process."
    {
        /// One node, or the start nodes of a cluster. None means no Redis.
        pub urls: List<RedisUrl> = "",
        /// Whether the nodes form a Redis Cluster.
        pub cluster: bool = "false",
        /// The certificate authorities of the nodes, as PEM; the machine's own list if left out.
        pub ca_file: Option<PathBuf> = "",
        /// Allows a node beyond loopback without TLS or a password.
        pub allow_insecure: bool = "false",
        /// Milliseconds one call may take before the work goes on without Redis.
        pub deadline("deadline_ms"): Millis<5, 10_000> = "100",
    }
}

impl Settings {
    /// Whether Redis is configured.
    pub fn is_on(&self) -> bool {
        !self.urls.is_empty()
    }

    /// The client configuration, or `None` without Redis. Fails if `ca_file` cannot be read.
    pub fn config(&self) -> io::Result<Option<KvConfig>> {
        if !self.is_on() {
            return Ok(None);
        }
        Ok(Some(KvConfig {
            urls: self.urls.iter().map(|url| url.expose().to_owned()).collect(),
            cluster: self.cluster,
            allow_insecure: self.allow_insecure,
            deadline: self.deadline,
            ca_pem: self.ca_file.as_ref().map(fs::read).transpose()?,
        }))
    }

    /// Reports a cluster without nodes, and several nodes without `redis.cluster`.
    pub fn check(&self, problems: &mut Problems<'_>) {
        let urls = const { Self::info("redis.urls") };
        if self.urls.is_empty() && self.cluster {
            problems.missing(urls, "redis.cluster = true needs it");
        }
        if self.urls.len() > 1 && !self.cluster {
            problems.stray(urls, "names several nodes; set redis.cluster = true, or keep one");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_deadline_matches_kv_config() {
        assert_eq!(Settings::default().deadline, KvConfig::DEADLINE);
        assert!(Settings::default().config().unwrap().is_none());
    }
}
