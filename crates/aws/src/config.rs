//! Where AWS is, and what we show it.

use std::{net::IpAddr, time::Duration};

use aws_config::{
    BehaviorVersion, Region, default_provider::credentials::DefaultCredentialsChain,
    provider_config::ProviderConfig, retry::RetryConfig, timeout::TimeoutConfig,
};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider, SharedHttpClient};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use http::Uri;

/// Where one service of AWS is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsConfig {
    /// Such as `ap-northeast-2`.
    pub region: String,
    /// A server that stands in for AWS's own, such as `http://127.0.0.1:8000`.
    pub endpoint: Option<String>,
    /// How long a call may take unless it says otherwise.
    pub deadline: Duration,
}

impl AwsConfig {
    /// DynamoDB answers in less than ten milliseconds, except for the first call of a connection and the rare one that is lost on the way.
    /// Nothing else could answer instead, so it is given longer than Redis.
    pub const DEADLINE: Duration = Duration::from_millis(500);

    /// AWS's own servers of a region, with everything else as usual.
    pub fn region(region: impl Into<String>) -> Self {
        Self { region: region.into(), endpoint: None, deadline: Self::DEADLINE }
    }

    /// A server on this machine that stands in for AWS.
    pub fn local(endpoint: impl Into<String>) -> Self {
        Self { endpoint: Some(endpoint.into()), ..Self::region("local") }
    }

    /// Refuses what must not be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.region.is_empty() {
            return Err(ConfigError::NoRegion);
        }
        self.stand_in().map(drop)
    }

    /// Whether the endpoint is a stand-in on this machine.
    fn stand_in(&self) -> Result<bool, ConfigError> {
        let Some(endpoint) = &self.endpoint else { return Ok(false) };
        let bad = || ConfigError::BadEndpoint(endpoint.clone());
        let uri: Uri = endpoint.parse().map_err(|_| bad())?;
        let host = uri.host().filter(|_| !endpoint.contains('@')).ok_or_else(bad)?;
        match uri.scheme_str() {
            Some("https") => Ok(false),
            Some("http") if is_loopback(host) => Ok(true),
            Some("http") => Err(ConfigError::Insecure { host: host.to_owned() }),
            _ => Err(bad()),
        }
    }

    /// What a client of a service is built from. Nothing is sent, but files of the machine may be read.
    pub(crate) async fn load(&self) -> Loaded {
        let crypto = Provider::Rustls(CryptoMode::Ring);
        let http = Builder::new().tls_provider(crypto).build_https();
        let region = Region::new(self.region.clone());
        let credentials = if self.stand_in() == Ok(true) {
            SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "stand-in"))
        } else {
            let provider = ProviderConfig::without_region()
                .with_region(Some(region.clone()))
                .with_behavior_version(Some(BEHAVIOR()))
                .with_http_client(http.clone());
            let chain = DefaultCredentialsChain::builder().configure(provider).region(region.clone());
            SharedCredentialsProvider::new(chain.build().await)
        };
        Loaded { region, endpoint: self.endpoint.clone(), credentials, http }
    }
}

/// The SDK's habits of this day. A newer set is taken on purpose, not by an update.
pub(crate) const BEHAVIOR: fn() -> BehaviorVersion = BehaviorVersion::v2026_01_12;

/// How often one call is sent: a busy or restarting server of AWS is met again in milliseconds, and the deadline ends it anyway.
const TRIES: u32 = 3;
/// Before the second try; doubled before the third.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// To open a connection; what is left of the deadline may end it sooner.
const CONNECT: Duration = Duration::from_secs(1);

/// What a client of a service is built from.
pub(crate) struct Loaded {
    pub(crate) region: Region,
    pub(crate) endpoint: Option<String>,
    pub(crate) credentials: SharedCredentialsProvider,
    pub(crate) http: SharedHttpClient,
}

pub(crate) fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(TRIES).with_initial_backoff(FIRST_PAUSE)
}

pub(crate) fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().connect_timeout(CONNECT).build()
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>()
        .map_or_else(|_| bare.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// A configuration that will not be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// AWS is in many places.
    #[error("no region is named; set aws.region, such as ap-northeast-2")]
    NoRegion,
    /// Nothing that can be called.
    #[error("{0:?} is no endpoint such as https://dynamodb.example or http://127.0.0.1:8000")]
    BadEndpoint(String),
    /// Anybody on the way could read and write.
    #[error("the endpoint at {host} is not on this machine and has no TLS; use https://")]
    Insecure {
        /// The endpoint's host.
        host: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        let insecure = |host: &str| Err(ConfigError::Insecure { host: host.to_owned() });
        for (endpoint, expected) in [
            ("http://127.0.0.1:8000", Ok(())),
            ("http://localhost:8000", Ok(())),
            ("http://[::1]:8000", Ok(())),
            ("https://dynamodb.ap-northeast-2.amazonaws.com", Ok(())),
            (
                "http://dynamodb.ap-northeast-2.amazonaws.com",
                insecure("dynamodb.ap-northeast-2.amazonaws.com"),
            ),
            ("http://10.0.0.5:8000", insecure("10.0.0.5")),
            ("http://localhost.example.com", insecure("localhost.example.com")),
            ("ftp://127.0.0.1", Err(ConfigError::BadEndpoint("ftp://127.0.0.1".to_owned()))),
            ("http://a:b@127.0.0.1", Err(ConfigError::BadEndpoint("http://a:b@127.0.0.1".to_owned()))),
            ("127.0.0.1:8000", Err(ConfigError::BadEndpoint("127.0.0.1:8000".to_owned()))),
        ] {
            assert_eq!(AwsConfig::local(endpoint).check(), expected, "{endpoint}");
        }
        assert_eq!(AwsConfig::region("").check(), Err(ConfigError::NoRegion));
        assert_eq!(AwsConfig::region("ap-northeast-2").check(), Ok(()));
    }
}
