//! The endpoint and credentials of an AWS service.

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

/// The endpoint of one AWS service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsConfig {
    /// The region, such as `ap-northeast-2`.
    pub region: String,
    /// Overrides the endpoint, such as `http://127.0.0.1:8000` for a local emulator.
    pub endpoint: Option<String>,
    /// Default deadline of a call.
    pub deadline: Duration,
}

impl AwsConfig {
    /// DynamoDB replies in under ten milliseconds, except for the first call of a connection and
    /// the rare lost packet. There is no fallback for it, so its deadline is longer than that of
    /// Redis.
    pub const DEADLINE: Duration = Duration::from_millis(500);

    /// The region's own endpoint, with defaults.
    pub fn region(region: impl Into<String>) -> Self {
        Self { region: region.into(), endpoint: None, deadline: Self::DEADLINE }
    }

    /// A local emulator.
    pub fn local(endpoint: impl Into<String>) -> Self {
        Self { endpoint: Some(endpoint.into()), ..Self::region("local") }
    }

    /// Rejects unsafe or incomplete configurations.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.region.is_empty() {
            return Err(ConfigError::NoRegion);
        }
        self.stand_in().map(drop)
    }

    /// Whether the endpoint is a local emulator.
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

    /// What a client is built from. Sends nothing, but may read credential files.
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

/// Pinned SDK defaults: a newer set is adopted deliberately, not by an update.
pub(crate) const BEHAVIOR: fn() -> BehaviorVersion = BehaviorVersion::v2026_01_12;

/// Attempts per call. A throttled or restarting server often succeeds milliseconds later; the
/// deadline bounds all attempts.
const TRIES: u32 = 3;
/// Backoff before the second attempt; doubled before the third.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Connect timeout; the remaining deadline may be shorter.
const CONNECT: Duration = Duration::from_secs(1);

/// What a client is built from.
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

/// Why a configuration is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The region is missing.
    #[error("no region is set; set aws.region, such as ap-northeast-2")]
    NoRegion,
    /// Not a usable URL.
    #[error("{0:?} is not an endpoint such as https://dynamodb.example or http://127.0.0.1:8000")]
    BadEndpoint(String),
    /// Plain HTTP over the network could be read and modified.
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
    fn plain_http_is_only_allowed_on_loopback() {
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
