//! The HTTP client, with limits on time, size and concurrency and a circuit breaker per target.

mod call;
mod pipe;
mod recoverable_body;
mod target;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use urr_kernel::{BreakerLimits, Clock};

use self::target::Connection;
pub use self::{
    call::{Answer, Call, CallError},
    pipe::{Pipe, PipeError},
    target::Target,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Wire<C> = legacy::Client<C, Full<Bytes>>;

/// Limits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Timeout for a TCP connection.
    pub connect: Duration,
    /// Time limit of one attempt, including the wait for a permit and the connect.
    pub read: Duration,
    /// Largest response body. A seat map of 50,000 seats was measured at 8.9 MB of JSON, so the
    /// largest event needs 18 MB.
    pub answer_bytes: usize,
    /// Concurrent requests per target. Others wait; the wait counts against `read`.
    pub in_flight: usize,
    /// Idle connections kept per target.
    pub idle_connections: usize,
    /// How long idle connections are kept: half of the shortest keep-alive of our servers (10 s
    /// under load), so that none is reused while the server closes it.
    pub idle_time: Duration,
    /// Attempts of an idempotent request when the network fails.
    pub tries: u32,
    /// Pause before the second attempt. It doubles each time.
    pub pause: Duration,
    /// When to stop calling a failing target.
    pub breaker: BreakerLimits,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            read: Duration::from_secs(10),
            answer_bytes: 24 * 1024 * 1024,
            in_flight: 1_024,
            idle_connections: 64,
            idle_time: Duration::from_secs(5),
            tries: 3,
            pause: Duration::from_millis(500),
            breaker: BreakerLimits::SERVICE,
        }
    }
}

/// An invalid base URL.
#[derive(Debug, thiserror::Error)]
#[error("{base:?} is not a base URL such as http://127.0.0.1:3001: {reason}")]
pub struct BadTarget {
    base: String,
    reason: String,
}

/// Creates [`Target`]s that share a connection pool. Clones share it too.
#[derive(Clone)]
pub struct Client {
    limits: ClientLimits,
    clock: Clock,
    plain: Wire<HttpConnector>,
    /// Built for the first `https` target, because loading the system's root certificates is slow.
    tls: Arc<OnceLock<Wire<HttpsConnector<HttpConnector>>>>,
    /// Trusted in addition to the system's root certificates.
    roots: Arc<[CertificateDer<'static>]>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that trusts the system's root certificates.
    pub fn new(limits: ClientLimits, clock: Clock) -> Self {
        Self::trusting(limits, clock, Vec::new())
    }

    /// A client that also trusts these root certificates, for roles behind a private CA.
    pub fn trusting(limits: ClientLimits, clock: Clock, roots: Vec<CertificateDer<'static>>) -> Self {
        let plain = pool(&limits).build(connector(&limits));
        Self { limits, clock, plain, tls: Arc::default(), roots: roots.into() }
    }

    /// A target with its own circuit breaker. Clones of the target share the breaker.
    pub fn target(&self, base: &str) -> Result<Target, BadTarget> {
        let uri = base_uri(base)?;
        let bad = |reason: String| BadTarget { base: base.to_owned(), reason };
        let wire = match uri.scheme_str() {
            Some("http") => Connection::Plain(self.plain.clone()),
            Some("https") => Connection::Tls(self.tls().map_err(|error| bad(error.to_string()))?),
            _ => return Err(bad("its scheme is neither http nor https".to_owned())),
        };
        let name: Arc<str> = uri.to_string().trim_end_matches('/').into();
        Ok(Target::new(name, wire, self.limits, self.clock.clone()))
    }

    /// A target for forwarding requests, with its own connection pool. `base` must have no path:
    /// requests keep theirs.
    pub fn pipe(&self, base: &str) -> Result<Pipe, BadTarget> {
        let uri = base_uri(base)?;
        let bad = |reason: String| BadTarget { base: base.to_owned(), reason };
        if !matches!(uri.path(), "" | "/") {
            return Err(bad("it must not carry a path".to_owned()));
        }
        let wire = match uri.scheme_str() {
            Some("http") => pipe::Connection::Plain(pool(&self.limits).build(connector(&self.limits))),
            Some("https") => {
                let https = self.https().map_err(|error| bad(error.to_string()))?;
                pipe::Connection::Tls(pool(&self.limits).build(https))
            }
            _ => return Err(bad("its scheme is neither http nor https".to_owned())),
        };
        let name: Arc<str> = uri.to_string().trim_end_matches('/').into();
        Ok(Pipe::new(name, uri, wire))
    }

    fn tls(&self) -> Result<Wire<HttpsConnector<HttpConnector>>, BoxError> {
        if let Some(wire) = self.tls.get() {
            return Ok(wire.clone());
        }
        let https = self.https()?;
        Ok(self.tls.get_or_init(|| pool(&self.limits).build(https)).clone())
    }

    fn https(&self) -> Result<HttpsConnector<HttpConnector>, BoxError> {
        let mut roots = RootCertStore::empty();
        for root in self.roots.iter() {
            roots.add(root.clone())?;
        }
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 && self.roots.is_empty() {
            return Err("no trusted root certificates found on this system".into());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = connector(&self.limits);
        tcp.enforce_http(false);
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(https)
    }
}

/// Parses a base URL. It must have a host and no credentials or query.
fn base_uri(base: &str) -> Result<Uri, BadTarget> {
    let bad = |reason: String| BadTarget { base: base.to_owned(), reason };
    let uri: Uri = base.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
    let authority = uri.authority().ok_or_else(|| bad("it names no host".to_owned()))?;
    if authority.as_str().contains('@') {
        return Err(bad("it must not carry a user or a password".to_owned()));
    }
    if uri.query().is_some() {
        return Err(bad("it must not carry a query".to_owned()));
    }
    Ok(uri)
}

fn connector(limits: &ClientLimits) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(limits.connect));
    connector.set_nodelay(true);
    connector
}

fn pool(limits: &ClientLimits) -> legacy::Builder {
    let mut pool = legacy::Client::builder(TokioExecutor::new());
    pool.pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits.idle_time)
        .pool_max_idle_per_host(limits.idle_connections);
    pool
}
