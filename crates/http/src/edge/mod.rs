//! Middleware around every handler: request id, limits on concurrency, body size and time, error
//! bodies, security headers, metrics and the access log. One function instead of a stack of layers,
//! which would box the request at every step.

mod finish;
mod log;
mod numbers;
mod route;

use std::{
    fmt,
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::Request,
    response::{IntoResponse as _, Response},
};
use crossbeam_utils::CachePadded;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderName, Method, Uri, header};
use http_body_util::Limited;
use tokio::time::{error::Elapsed, timeout};
use tracing::{Instrument as _, Span};
use urr_kernel::{Clock, Ids, RequestId};
use urr_telemetry::Health;

pub(crate) use self::route::{body_bytes, reading};
pub use self::{
    log::AccessLog,
    route::{allow_time, name_route, named, request_id},
};
use self::{log::Log, numbers::Numbers, route::Arrival};
use crate::{Limits, Problem, Respond, codes, extract::too_large, server::MissingHost};

/// The request id, in requests and responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Length of a hyphenated UUID. Checked because the parser accepts shorter and longer forms.
const UUID_LEN: usize = 36;

/// W3C trace context of the caller.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// `Retry-After` of a shed request. Requests take milliseconds, so a second is enough.
const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

/// Paths that are never shed. An orchestrator must not kill a process for being busy, and metrics
/// matter most under load.
const PROBES: [&str; 3] = ["/health/live", "/health/ready", "/metrics"];

/// Logged as method and path of a request that could not be parsed.
const UNREAD: &str = "*";

/// Everything the edge is built from.
#[derive(Clone, Debug)]
pub struct EdgeParts {
    /// Limits on requests.
    pub limits: Limits,
    /// Generates request ids.
    pub ids: Ids,
    /// Measures request durations.
    pub clock: Clock,
    /// Sampling of the access log.
    pub access_log: AccessLog,
    /// While it drains, responses carry `Connection: close`.
    pub health: Health,
    /// Whether to send `Strict-Transport-Security`. Only for sites served over TLS.
    pub hsts: bool,
}

/// Wraps a router in the edge. Metrics are labelled with the route's path; a router that another
/// layer hides in a fallback must pass through [`named`] first.
pub fn edge(router: Router, parts: EdgeParts) -> Router {
    crate::router(Edge::around(if router.has_routes() { named(router) } else { router }, parts))
}

/// The edge around a responder. See the module documentation.
pub struct Edge<R> {
    inner: R,
    limits: Limits,
    ids: Ids,
    clock: Clock,
    health: Health,
    /// Template of the headers of every response.
    headers: HeaderMap,
    numbers: Numbers,
    // Written by every request. Padding keeps them off the cache lines of the read-only fields
    // above.
    log: CachePadded<Log>,
    in_flight: CachePadded<AtomicUsize>,
}

/// What the edge keeps of a request after the handler took it.
struct RequestInfo {
    method: Method,
    uri: Uri,
    arrival: Arrival,
    started: Duration,
}

impl<R> fmt::Debug for Edge<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl<R: Respond> Respond for Edge<R> {
    async fn respond(&self, mut request: Request) -> Response {
        let id = inbound_id(request.headers()).unwrap_or_else(|| self.ids.next());
        let limit =
            if is_auth(request.uri().path()) { self.limits.auth_body_bytes } else { self.limits.body_bytes };
        let seen = RequestInfo {
            method: request.method().clone(),
            uri: request.uri().clone(),
            arrival: Arrival::new(id, limit),
            started: self.clock.ticks(),
        };
        let span = span(&seen, request.headers());
        request.extensions_mut().insert(seen.arrival.clone());
        let response = if span.is_disabled() {
            self.answer(request, &seen.arrival).await
        } else {
            // Boxed, so that untraced requests do not carry the size of an instrumented future.
            Box::pin(self.answer(request, &seen.arrival)).instrument(span.clone()).await
        };
        let response = self.finish(&seen, response);
        if !span.is_disabled() {
            let route = seen.arrival.route().unwrap_or("none");
            span.record("otel.name", format!("{} {route}", seen.method));
            span.record("http.route", route);
            span.record("http.response.status_code", response.status().as_u16());
        }
        response
    }

    fn refuse(&self, problem: Problem) -> Response {
        let seen = RequestInfo {
            method: Method::from_bytes(UNREAD.as_bytes()).expect("`*` is a valid method token"),
            uri: Uri::from_static(UNREAD),
            arrival: Arrival::new(self.ids.next(), 0),
            started: self.clock.ticks(),
        };
        self.finish(&seen, problem.into_response())
    }
}

impl<R: Respond> Edge<R> {
    /// Wraps a responder. It reports its route names through [`name_route`] or [`named`].
    pub fn around(inner: R, parts: EdgeParts) -> Self {
        Self {
            inner,
            limits: parts.limits,
            ids: parts.ids,
            clock: parts.clock,
            health: parts.health,
            headers: finish::usual_headers(parts.hsts),
            numbers: Numbers::default(),
            log: CachePadded::new(Log::new(parts.access_log)),
            in_flight: CachePadded::default(),
        }
    }

    /// The handler's response, or the problem that replaces it.
    async fn answer(&self, request: Request, arrival: &Arrival) -> Response {
        let Some(_turn) = self.enter(request.uri().path()) else {
            return Problem::of(
                codes::OVERLOADED,
                "Too many requests are in progress. Please try again in a moment.",
            )
            .retry_after(OVERLOAD_PAUSE)
            .into_response();
        };
        if request.extensions().get::<MissingHost>().is_some()
            && !request.headers().contains_key(header::HOST)
        {
            return Problem::of(codes::HOST_REQUIRED, "An HTTP/1.1 request names its host.").into_response();
        }
        let request = match length(&request, arrival.body_bytes()) {
            Length::Fits => request,
            Length::Unknown => request.map(|body| Body::new(Limited::new(body, arrival.body_bytes()))),
            Length::TooLarge => return too_large(arrival.body_bytes()).into_response(),
        };
        let mut handler = pin!(AssertUnwindSafe(self.inner.respond(request)).catch_unwind());
        // Poll once first: a handler that is ready at once needs no timer.
        let at_once = poll_fn(|cx| Poll::Ready(handler.as_mut().poll(cx))).await;
        let answer = match at_once {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => self.in_time(handler, arrival).await,
        };
        match answer {
            Ok(Ok(response)) => response,
            Ok(Err(panic)) => {
                let mut problem = Problem::of(codes::INTERNAL, "The server failed. It has been logged.");
                problem.cause = Some(format!("panic: {}", panic_message(&*panic)));
                problem.into_response()
            }
            Err(_elapsed) if arrival.awaits_body() => {
                Problem::of(codes::SLOW_BODY, "The body took too long to arrive.").into_response()
            }
            Err(_elapsed) => Problem::of(codes::TIMEOUT, "The request took too long.").into_response(),
        }
    }

    /// Waits for the handler within the request's time limit.
    async fn in_time<F: Future>(
        &self,
        mut handler: Pin<&mut F>,
        arrival: &Arrival,
    ) -> Result<F::Output, Elapsed> {
        let usual = self.limits.request_time;
        let answer = timeout(usual, handler.as_mut()).await;
        match arrival.more_time(usual) {
            Some(more) if answer.is_err() => timeout(more, handler).await,
            _ => answer,
        }
    }

    /// Counts the request as in flight until the guard is dropped. `None` if too many are.
    fn enter(&self, path: &str) -> Option<InFlight<'_>> {
        let in_flight_guard = InFlight(&self.in_flight);
        let ahead = self.in_flight.fetch_add(1, Ordering::Relaxed);
        (ahead < self.limits.max_in_flight || PROBES.contains(&path)).then_some(in_flight_guard)
    }
}

struct InFlight<'e>(&'e AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The id set by a proxy or another role. Only a UUID is accepted: anything else could inject text
/// into our logs.
fn inbound_id(headers: &HeaderMap) -> Option<RequestId> {
    let text = headers.get(REQUEST_ID)?.to_str().ok()?;
    if text.len() == UUID_LEN { text.parse().ok() } else { None }
}

/// Whether `auth_body_bytes` applies: `/api/auth` and below, with or without the version.
fn is_auth(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/api") else { return false };
    let rest = rest.strip_prefix("/v1").unwrap_or(rest);
    rest.strip_prefix("/auth").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The announced body length against the limit.
enum Length {
    Fits,
    /// Refused before any byte is read.
    TooLarge,
    /// No length announced: the body is cut off at the limit while it is read.
    Unknown,
}

fn length(request: &Request, limit: usize) -> Length {
    match request.body().size_hint().upper() {
        Some(length) if length > u64::try_from(limit).unwrap_or(u64::MAX) => Length::TooLarge,
        Some(_) => Length::Fits,
        None => Length::Unknown,
    }
}

/// The request's span. Disabled, and free, unless a subscriber collects debug spans.
fn span(seen: &RequestInfo, headers: &HeaderMap) -> Span {
    let span = tracing::debug_span!(
        target: "urr_http::request",
        "request",
        otel.name = tracing::field::Empty,
        otel.kind = "server",
        request_id = %seen.arrival.id(),
        http.request.method = %seen.method,
        http.route = tracing::field::Empty,
        http.response.status_code = tracing::field::Empty,
    );
    if !span.is_disabled()
        && let Some(Ok(caller)) = headers.get(TRACEPARENT).map(http::HeaderValue::to_str)
    {
        urr_telemetry::follow(&span, caller);
    }
    span
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "without a message"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_auth_body_limit_covers_auth_routes_of_every_version_only() {
        for path in ["/api/auth", "/api/auth/login", "/api/v1/auth", "/api/v1/auth/login"] {
            assert!(is_auth(path), "{path}");
        }
        for path in ["/", "/api", "/api/v1", "/api/authors", "/auth/login", "/api/v2/auth", "/api//auth"] {
            assert!(!is_auth(path), "{path}");
        }
    }
}
