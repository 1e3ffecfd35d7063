//! The HTTP client: bounded in time, size and number, with a circuit breaker per target.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};
use urr_kernel::{Breaker, BreakerLimits, Clock, Refused};

/// Carries the current trace to the other side.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Wire<C> = legacy::Client<C, Full<Bytes>>;

/// The numbers of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// To open a TCP connection.
    pub connect: Duration,
    /// One try from start to the last byte of the answer; connecting is part of it.
    pub read: Duration,
    /// Bytes of an answer: a seat map of 100,000 seats is about 6 MB of JSON.
    pub answer_bytes: usize,
    /// Requests to one target at the same time; more wait for their turn within `read`.
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
            answer_bytes: 8 * 1024 * 1024,
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

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing reached the other side, so asking again is safe whatever was asked.
    #[error("{target} could not be reached")]
    NotSent {
        /// Who was asked.
        target: Arc<str>,
        /// What went wrong.
        source: BoxError,
    },
    /// The request may or may not have taken effect.
    #[error("{target} was asked but gave no complete answer")]
    Unknown {
        /// Who was asked.
        target: Arc<str>,
        /// What went wrong.
        source: BoxError,
    },
    /// The target failed too often lately and is left alone for a while.
    #[error("{target} is left alone for now")]
    Open {
        /// Who would have been asked.
        target: Arc<str>,
        /// How long it is left alone.
        source: Refused,
    },
    /// The other side answered more than [`ClientLimits::answer_bytes`].
    #[error("{target} answered more than {limit} bytes")]
    TooLarge {
        /// Who was asked.
        target: Arc<str>,
        /// How many bytes would have been read.
        limit: usize,
    },
    /// The path or a header could not be written as HTTP: a mistake of the caller.
    #[error("the request to {target} is not valid HTTP")]
    Invalid {
        /// Who would have been asked.
        target: Arc<str>,
        /// What is wrong with it.
        source: BoxError,
    },
}

impl CallError {
    /// When asking again makes sense, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Open { source, .. } => Some(source.retry_after),
            _ => None,
        }
    }

    fn is_network(&self) -> bool {
        matches!(self, Self::NotSent { .. } | Self::Unknown { .. })
    }
}

/// One request to a target.
#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
    idempotent: bool,
    within: Option<Duration>,
}

impl Call {
    /// POST of a JSON document. `path` starts with a slash and is appended to the target's base URL.
    pub fn post_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { method: Method::POST, headers, idempotent: false, ..Self::get(path) }.with_body(body.into())
    }

    /// GET, which is idempotent by definition.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            idempotent: true,
            within: None,
        }
    }

    /// Sets a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Promises that asking twice does no more than asking once, so that network errors are tried again.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// All tries and pauses together take no longer than this.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }
}

/// A complete answer, of whatever status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
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
        let bad = |reason: String| BadTarget { base: base.to_owned(), reason };
        let uri: Uri = base.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
        let authority = uri.authority().ok_or_else(|| bad("it names no host".to_owned()))?;
        if authority.as_str().contains('@') {
            return Err(bad("it must not carry a user or a password".to_owned()));
        }
        if uri.query().is_some() {
            return Err(bad("it must not carry a query".to_owned()));
        }
        let wire = match uri.scheme_str() {
            Some("http") => Connection::Plain(self.plain.clone()),
            Some("https") => Connection::Tls(self.tls().map_err(|error| bad(error.to_string()))?),
            _ => return Err(bad("its scheme is neither http nor https".to_owned())),
        };
        let name: Arc<str> = uri.to_string().trim_end_matches('/').into();
        Ok(Target(Arc::new(Inner {
            seconds: metrics::histogram!("urr_http_client_seconds", "target" => name.to_string()),
            failures: metrics::counter!("urr_http_client_failures_total", "target" => name.to_string()),
            refusals: metrics::counter!("urr_http_client_refusals_total", "target" => name.to_string()),
            name,
            wire,
            limits: self.limits,
            clock: self.clock.clone(),
            breaker: Mutex::new(Breaker::new(self.limits.breaker)),
            turns: Semaphore::new(self.limits.in_flight),
        })))
    }

    fn tls(&self) -> Result<Wire<HttpsConnector<HttpConnector>>, BoxError> {
        if let Some(wire) = self.tls.get() {
            return Ok(wire.clone());
        }
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
        Ok(self.tls.get_or_init(|| pool(&self.limits).build(https)).clone())
    }
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

/// One place to send requests to.
#[derive(Clone)]
pub struct Target(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    wire: Connection,
    limits: ClientLimits,
    clock: Clock,
    breaker: Mutex<Breaker>,
    turns: Semaphore,
    seconds: metrics::Histogram,
    failures: metrics::Counter,
    refusals: metrics::Counter,
}

enum Connection {
    Plain(Wire<HttpConnector>),
    Tls(Wire<HttpsConnector<HttpConnector>>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.0.name).finish()
    }
}

impl Target {
    /// The base URL.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether the circuit breaker refuses calls right now.
    pub fn is_open(&self) -> bool {
        let target = &*self.0;
        target.breaker.lock().unwrap_or_else(PoisonError::into_inner).is_open(target.clock.ticks())
    }

    /// Asks, and asks again after network errors if the call is idempotent. An answer of any status is an answer.
    pub async fn send(&self, call: Call) -> Result<Answer, CallError> {
        let target = &*self.0;
        let started = target.clock.ticks();
        let mut pause = target.limits.pause;
        for tries_left in (0..target.limits.tries.max(1)).rev() {
            let spent = target.clock.ticks().saturating_sub(started);
            let time = call
                .within
                .map_or(target.limits.read, |all| all.saturating_sub(spent).min(target.limits.read));
            let error = match target.attempt(&call, time).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let spent = target.clock.ticks().saturating_sub(started);
            let over = call.within.is_some_and(|all| spent + pause >= all);
            if tries_left == 0 || over || !call.idempotent || !error.is_network() {
                return Err(error);
            }
            sleep(pause + jitter(target.clock.ticks(), pause)).await;
            pause *= 2;
        }
        unreachable!("the last try returns")
    }
}

/// Up to a tenth of the pause, from the clock's finest digits, so that callers that failed together spread out.
fn jitter(ticks: Duration, pause: Duration) -> Duration {
    pause / 10 * (ticks.subsec_nanos() % 1_000) / 1_000
}

impl Inner {
    async fn attempt(&self, call: &Call, time: Duration) -> Result<Answer, CallError> {
        let request = self.request(call)?;
        let started = self.clock.ticks();
        if let Err(source) = self.breaker().permit(started) {
            self.refusals.increment(1);
            return Err(CallError::Open { target: self.name.clone(), source });
        }
        let result = self.exchange(request, time).await;
        let took = self.clock.ticks().saturating_sub(started);
        let succeeded = result.as_ref().is_ok_and(|answer| !is_outage(answer.status));
        self.breaker().report(self.clock.ticks(), took, succeeded);
        self.seconds.record(took);
        if !succeeded {
            self.failures.increment(1);
        }
        result
    }

    fn breaker(&self) -> std::sync::MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, CallError> {
        let invalid = |source: BoxError| CallError::Invalid { target: self.name.clone(), source };
        if !call.path.starts_with('/') {
            return Err(invalid("the path does not start with a slash".into()));
        }
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", self.name, call.path))
            .body(Full::new(call.body.clone()))
            .map_err(|error| invalid(error.into()))?;
        let headers = request.headers_mut();
        headers.clone_from(&call.headers);
        if let Some(trace) = urr_telemetry::traceparent().and_then(|trace| trace.parse().ok()) {
            headers.insert(TRACEPARENT, trace);
        }
        Ok(request)
    }

    async fn exchange(&self, request: Request<Full<Bytes>>, time: Duration) -> Result<Answer, CallError> {
        let target = || self.name.clone();
        // A turn is not part of the exchange: whoever never got one has certainly sent nothing.
        let turn = match timeout(time, self.turns.acquire()).await {
            Ok(turn) => turn.expect("the semaphore is never closed"),
            Err(elapsed) => return Err(CallError::NotSent { target: target(), source: elapsed.into() }),
        };
        let answer = timeout(time, async {
            let response = self.wire.request(request).await.map_err(|error| {
                if error.is_connect() {
                    CallError::NotSent { target: target(), source: error.into() }
                } else {
                    CallError::Unknown { target: target(), source: error.into() }
                }
            })?;
            self.read(response).await
        });
        let answer = answer.await;
        drop(turn);
        // Whether the request left before the time was up is not known.
        answer.unwrap_or_else(|elapsed| Err(CallError::Unknown { target: target(), source: elapsed.into() }))
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, CallError> {
        let (parts, body) = response.into_parts();
        let limit = self.limits.answer_bytes;
        match Limited::new(body, limit).collect().await {
            Ok(body) => Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_bytes() }),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(CallError::TooLarge { target: self.name.clone(), limit })
            }
            Err(source) => Err(CallError::Unknown { target: self.name.clone(), source }),
        }
    }
}

/// Answers that say the other side as a whole is in trouble. A 500 may be one broken method, so it does not count.
fn is_outage(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

impl Connection {
    async fn request(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, legacy::Error> {
        match self {
            Self::Plain(wire) => wire.request(request).await,
            Self::Tls(wire) => wire.request(request).await,
        }
    }
}
