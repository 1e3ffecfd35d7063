//! The HTTP client: bounded in time, size and number, with a circuit breaker per target.

mod call;
mod lent;
mod pipe;
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

/// The numbers of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// To open a TCP connection.
    pub connect: Duration,
    /// One try from start to the last byte of the answer; waiting for a turn and connecting are part of it.
    pub read: Duration,
    /// Bytes of an answer: a seat map of 50,000 seats was measured at 8.9 MB of JSON, so the largest event has 18 MB.
    pub answer_bytes: usize,
    /// Requests to one target at the same time; more wait for their turn, and have what is left of `read` then.
    pub in_flight: usize,
    /// Idle connections kept per target.
    pub idle_connections: usize,
    /// How long an idle connection is kept: half of what our servers allow, so that none is reused as it closes.
    pub idle_time: Duration,
    /// How often an idempotent request is tried when the network fails.
    pub tries: u32,
    /// The pause before the second try; it doubles each time.
    pub pause: Duration,
    /// When to stop asking a target that fails.
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

/// A base URL that cannot be called.
#[derive(Debug, thiserror::Error)]
#[error("{base:?} is not a base URL such as http://127.0.0.1:3001: {reason}")]
pub struct BadTarget {
    base: String,
    reason: String,
}

/// Makes [`Target`]s that share one pool of connections. Clones share it too.
#[derive(Clone)]
pub struct Client {
    limits: ClientLimits,
    clock: Clock,
    plain: Wire<HttpConnector>,
    /// Built for the first `https` target, because reading the machine's roots takes a while.
    tls: Arc<OnceLock<Wire<HttpsConnector<HttpConnector>>>>,
    /// Trusted besides the machine's roots.
    roots: Arc<[CertificateDer<'static>]>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that trusts the machine's certificate authorities.
    pub fn new(limits: ClientLimits, clock: Clock) -> Self {
        Self::trusting(limits, clock, Vec::new())
    }

    /// A client that trusts these authorities as well, for roles with certificates of their own.
    pub fn trusting(limits: ClientLimits, clock: Clock, roots: Vec<CertificateDer<'static>>) -> Self {
        let plain = pool(&limits).build(connector(&limits));
        Self { limits, clock, plain, tls: Arc::default(), roots: roots.into() }
    }

    /// A place to send requests to, with a circuit breaker of its own. Clones of the target share the breaker.
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

    /// A place to pass requests on to, with connections of its own. `base` has no path: requests keep theirs.
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
            return Err("this machine has no certificate authorities to trust".into());
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

/// A base URL that names a host and nothing that must be kept secret.
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
