//! A call target: retries, circuit breaker and concurrency limit.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{sleep, timeout},
};
use urr_kernel::{Breaker, Clock};

use super::{Answer, BoxError, Call, CallError, ClientLimits, Wire};

/// W3C trace context, sent with every call.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A service to call. Clones share its circuit breaker and limits.
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

pub(super) enum Connection {
    Plain(Wire<HttpConnector>),
    Tls(Wire<HttpsConnector<HttpConnector>>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.0.name).finish()
    }
}

impl Target {
    pub(super) fn new(name: Arc<str>, wire: Connection, limits: ClientLimits, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            seconds: metrics::histogram!("urr_http_client_seconds", "target" => name.to_string()),
            failures: metrics::counter!("urr_http_client_failures_total", "target" => name.to_string()),
            refusals: metrics::counter!("urr_http_client_refusals_total", "target" => name.to_string()),
            name,
            wire,
            limits,
            clock,
            breaker: Mutex::new(Breaker::new(limits.breaker)),
            turns: Semaphore::new(limits.in_flight),
        }))
    }

    /// The base URL.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether the circuit breaker refuses calls right now.
    pub fn is_open(&self) -> bool {
        let target = &*self.0;
        target.is_open(target.clock.ticks())
    }

    /// Sends the call, with retries after network errors if it is idempotent. A response of any
    /// status is `Ok`.
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

/// Up to a tenth of the pause, taken from the clock's nanoseconds, so that callers that failed
/// together spread out.
fn jitter(ticks: Duration, pause: Duration) -> Duration {
    pause / 10 * (ticks.subsec_nanos() % 1_000) / 1_000
}

impl Inner {
    async fn attempt(&self, call: &Call, time: Duration) -> Result<Answer, CallError> {
        let request = self.request(call)?;
        let asked = self.clock.ticks();
        // With an open breaker the call fails before it waits for a permit.
        if self.is_open(asked) {
            self.permit(asked)?;
        }
        let _turn = self.turn(time).await?;
        // Measured from here: the wait for a permit says nothing about the target.
        let started = self.clock.ticks();
        let left = time.saturating_sub(started.saturating_sub(asked));
        self.permit(started)?;
        let result = timeout(left, self.exchange(request)).await;
        let took = self.clock.ticks().saturating_sub(started);
        let had_its_time = result.is_ok() || left >= time.min(self.limits.breaker.slow_call) / 2;
        // On a timeout it is unknown whether the request was sent.
        let result = result.unwrap_or_else(|elapsed| {
            Err(CallError::Unknown { target: self.name.clone(), source: elapsed.into() })
        });
        let succeeded = result.as_ref().is_ok_and(|answer| !is_outage(answer.status));
        if had_its_time {
            self.breaker().report(self.clock.ticks(), took, succeeded);
        }
        self.seconds.record(took);
        if !succeeded {
            self.failures.increment(1);
        }
        result
    }

    fn is_open(&self, now: Duration) -> bool {
        self.breaker().is_open(now)
    }

    fn permit(&self, now: Duration) -> Result<(), CallError> {
        self.breaker().permit(now).map_err(|source| {
            self.refusals.increment(1);
            CallError::Open { target: self.name.clone(), source }
        })
    }

    /// Waits for a permit. On a timeout nothing was sent.
    async fn turn(&self, time: Duration) -> Result<SemaphorePermit<'_>, CallError> {
        match timeout(time, self.turns.acquire()).await {
            Ok(turn) => Ok(turn.expect("the semaphore is never closed")),
            Err(elapsed) => {
                self.failures.increment(1);
                Err(CallError::NotSent { target: self.name.clone(), source: elapsed.into() })
            }
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
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

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, CallError> {
        let target = || self.name.clone();
        let response = self.wire.request(request).await.map_err(|error| {
            if error.is_connect() {
                CallError::NotSent { target: target(), source: error.into() }
            } else {
                CallError::Unknown { target: target(), source: error.into() }
            }
        })?;
        self.read(response).await
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

/// Statuses that count as an outage of the target. A 500 may be a bug in one method, so it does not
/// count.
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

#[cfg(test)]
mod tests;
