//! Configuration of the Redis client.

use std::{fmt, net::IpAddr, time::Duration};

use redis::{ConnectionAddr, IntoConnectionInfo as _, ProtocolVersion, RedisConnectionInfo, TlsCertificates};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use crate::node::Address;

/// How to connect to Redis.
#[derive(Clone)]
pub struct KvConfig {
    /// `redis://` or `rediss://` (TLS), with user and password if required. One node, or the seed
    /// nodes of a Cluster.
    pub urls: Vec<String>,
    /// Whether it is a Cluster. Several URLs always mean a Cluster.
    pub cluster: bool,
    /// Whether to allow a remote node that has neither TLS nor a password.
    pub allow_insecure: bool,
    /// Default deadline of a call.
    pub deadline: Duration,
    /// PEM root certificates to trust instead of the system's.
    pub ca_pem: Option<Vec<u8>>,
}

impl KvConfig {
    /// Default deadline. A call that takes longer costs more than the database transaction it
    /// saves.
    pub const DEADLINE: Duration = Duration::from_millis(100);

    /// A single node with default settings.
    pub fn single(url: impl Into<String>) -> Self {
        Self {
            urls: vec![url.into()],
            cluster: false,
            allow_insecure: false,
            deadline: Self::DEADLINE,
            ca_pem: None,
        }
    }

    /// A Cluster, by some of its nodes, with default settings.
    pub fn cluster(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { urls: urls.into_iter().map(Into::into).collect(), cluster: true, ..Self::single("") }
    }
}

impl fmt::Debug for KvConfig {
    /// URLs carry passwords, so only their number is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvConfig")
            .field("urls", &self.urls.len())
            .field("cluster", &self.cluster)
            .field("allow_insecure", &self.allow_insecure)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// An invalid configuration. Never shows a URL, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no URL.
    #[error("redis.urls is empty")]
    NoUrl,
    /// An invalid URL.
    #[error("redis.urls, entry {entry}: {why}")]
    BadUrl {
        /// Which entry, from 1.
        entry: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The nodes of a Cluster differ in credentials or TLS, or use a database other than 0.
    #[error("redis.urls: all nodes of a cluster need the same user, password and TLS, and database 0")]
    Mixed,
    /// A remote node without TLS or a password: traffic could be read and changed on the way.
    #[error(
        "redis at {host} is not on this machine and has neither TLS nor a password; use rediss:// or a password, \
         or set redis.allow_insecure = true if the network between is yours alone"
    )]
    Insecure {
        /// The node's host.
        host: String,
    },
    /// The root certificates cannot be parsed.
    #[error("redis.ca_file has no valid PEM certificates: {0}")]
    BadAuthorities(String),
}

/// Credentials and TLS for all nodes, including those discovered later in a Cluster.
pub(crate) struct Endpoint {
    settings: RedisConnectionInfo,
    tls: bool,
    ca_pem: Option<Vec<u8>>,
    allow_insecure: bool,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("tls", &self.tls).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Validates the configuration. Returns the endpoint and the seed nodes.
    pub(crate) fn new(config: &KvConfig) -> Result<(Self, Vec<Address>), ConfigError> {
        let nodes: Vec<(RedisConnectionInfo, bool, Address)> = config
            .urls
            .iter()
            .enumerate()
            .map(|(index, url)| parse(url).map_err(|why| ConfigError::BadUrl { entry: index + 1, why }))
            .collect::<Result<_, _>>()?;
        let (first, tls, _) = nodes.first().ok_or(ConfigError::NoUrl)?;
        let same = |(other, other_tls, _): &(RedisConnectionInfo, bool, Address)| {
            other_tls == tls && other.username() == first.username() && other.password() == first.password()
        };
        let in_cluster = config.cluster || nodes.len() > 1;
        if !nodes.iter().all(same) || (in_cluster && nodes.iter().any(|(node, ..)| node.db() != 0)) {
            return Err(ConfigError::Mixed);
        }
        if let Some(pem) = &config.ca_pem {
            check_authorities(pem)?;
        }
        let endpoint = Self {
            settings: first.clone(),
            tls: *tls,
            ca_pem: config.ca_pem.clone(),
            allow_insecure: config.allow_insecure,
        };
        let addresses: Vec<Address> = nodes.into_iter().map(|(_, _, address)| address).collect();
        for address in &addresses {
            endpoint.client(address)?;
        }
        Ok((endpoint, addresses))
    }

    /// A client for one node. It does not connect yet.
    pub(crate) fn client(&self, address: &Address) -> Result<redis::Client, ConfigError> {
        let Address { host, port } = address.clone();
        let protected = self.tls || self.settings.password().is_some();
        if !protected && !self.allow_insecure && !is_loopback(&host) {
            return Err(ConfigError::Insecure { host });
        }
        let address = if self.tls {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let bad = |error: redis::RedisError| ConfigError::BadAuthorities(error.to_string());
        let info = address.into_connection_info().map_err(bad)?.set_redis_settings(self.settings.clone());
        match &self.ca_pem {
            Some(pem) if self.tls => {
                let authorities = TlsCertificates { client_tls: None, root_cert: Some(pem.clone()) };
                redis::Client::build_with_tls(info, authorities).map_err(bad)
            }
            _ => redis::Client::open(info).map_err(bad),
        }
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.tls
    }
}

fn parse(url: &str) -> Result<(RedisConnectionInfo, bool, Address), String> {
    if !url.starts_with("redis://") && !url.starts_with("rediss://") {
        return Err("the scheme must be redis:// or rediss://".to_owned());
    }
    let info = url.into_connection_info().map_err(|error| error.to_string())?;
    // With RESP3 the client crate notices a lost connection at once and reconnects before the next
    // call.
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => Ok((settings, false, Address { host: host.clone(), port: *port })),
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            Err("#insecure would accept any certificate; set redis.ca_file instead".to_owned())
        }
        ConnectionAddr::TcpTls { host, port, .. } => {
            Ok((settings, true, Address { host: host.clone(), port: *port }))
        }
        _ => Err("only TCP is supported".to_owned()),
    }
}

fn check_authorities(pem: &[u8]) -> Result<(), ConfigError> {
    let bad = |why: String| ConfigError::BadAuthorities(why);
    let mut found = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        certificate.map_err(|error| bad(error.to_string()))?;
        found += 1;
    }
    if found == 0 { Err(bad("there is no certificate in it".to_owned())) } else { Ok(()) }
}

fn is_loopback(host: &str) -> bool {
    host.parse::<IpAddr>()
        .map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(config: &KvConfig) -> Option<ConfigError> {
        Endpoint::new(config).err()
    }

    #[test]
    fn a_remote_node_needs_tls_a_password_or_allow_insecure() {
        let insecure = |host: &str| Some(ConfigError::Insecure { host: host.to_owned() });
        for (url, allow_insecure, expected) in [
            ("redis://127.0.0.1:6379", false, None),
            ("redis://127.8.8.8", false, None),
            ("redis://localhost:6379", false, None),
            ("redis://[::1]:6379", false, None),
            ("redis://10.0.0.5:6379", false, insecure("10.0.0.5")),
            ("redis://cache.example.com", false, insecure("cache.example.com")),
            ("redis://localhost.example.com", false, insecure("localhost.example.com")),
            ("redis://user@10.0.0.5:6379", false, insecure("10.0.0.5")),
            ("redis://10.0.0.5:6379", true, None),
            ("redis://:secret@10.0.0.5:6379", false, None),
            ("rediss://10.0.0.5:6379", false, None),
            ("rediss://user:secret@cache.example.com", false, None),
        ] {
            let config = KvConfig { allow_insecure, ..KvConfig::single(url) };
            assert_eq!(refusal(&config), expected, "{url} allow_insecure={allow_insecure}");
        }
        let config = KvConfig::cluster(["redis://127.0.0.1:1", "redis://10.0.0.5:1"]);
        assert_eq!(refusal(&config), insecure("10.0.0.5"), "one insecure node is enough");
    }

    #[test]
    fn the_error_names_the_setting_that_allows_it() {
        let message = refusal(&KvConfig::single("redis://10.0.0.5:6379")).unwrap().to_string();
        assert!(message.contains("10.0.0.5") && message.contains("redis.allow_insecure"), "{message}");
    }

    #[test]
    fn discovered_nodes_must_be_secure_too() {
        let (endpoint, _) = Endpoint::new(&KvConfig::cluster(["redis://127.0.0.1:1"])).unwrap();
        let later = Address { host: "10.0.0.5".to_owned(), port: 1 };
        assert_eq!(
            endpoint.client(&later).unwrap_err(),
            ConfigError::Insecure { host: "10.0.0.5".to_owned() }
        );
    }

    #[test]
    fn invalid_urls_are_refused_without_leaking_passwords() {
        for url in [
            "http://:hunter2@h",
            "redis:///",
            "redis://:hunter2@h:port",
            "unix:///run/redis",
            "rediss://h/#insecure",
        ] {
            let message =
                refusal(&KvConfig::single(url)).unwrap_or_else(|| panic!("{url} was accepted")).to_string();
            assert!(message.starts_with("redis.urls, entry 1: "), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        assert_eq!(refusal(&KvConfig::cluster(Vec::<String>::new())), Some(ConfigError::NoUrl));
    }

    #[test]
    fn cluster_nodes_must_share_credentials_and_tls() {
        for urls in [
            ["redis://:a@h:1", "redis://:b@h:2"],
            ["redis://:a@h:1", "rediss://:a@h:2"],
            ["redis://x:a@h:1", "redis://y:a@h:2"],
            ["redis://:a@h:1/1", "redis://:a@h:2/1"],
        ] {
            assert_eq!(refusal(&KvConfig::cluster(urls)), Some(ConfigError::Mixed), "{urls:?}");
        }
        assert_eq!(refusal(&KvConfig::single("redis://:a@h:1/1")), None, "a single node has databases");
    }

    #[test]
    fn authorities_that_are_not_pem_are_refused() {
        let config = KvConfig { ca_pem: Some(b"nonsense".to_vec()), ..KvConfig::single("rediss://h") };
        assert!(matches!(refusal(&config), Some(ConfigError::BadAuthorities(_))), "{:?}", refusal(&config));
    }

    #[test]
    fn a_password_is_not_printed() {
        let config = KvConfig::single("redis://:hunter2@h");
        assert!(!format!("{config:?}").contains("hunter2"));
        let (endpoint, _) = Endpoint::new(&config).unwrap();
        assert!(!format!("{endpoint:?}").contains("hunter2"));
    }
}
