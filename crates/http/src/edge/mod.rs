//! What happens to every request before and after its handler, in one function instead of a stack of layers: a request id, a
//! place among the requests in progress, limits of size and time, the shape of errors, security headers, numbers and a log line.

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
use crate::{Limits, Problem, Respond, codes, extract::too_large, server::Nameless};

/// Names the request, in and out.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A UUID in its hyphenated form; parsers also take shorter and longer ones.
const UUID_LEN: usize = 36;

/// The caller's trace.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What a refused client is told to wait: requests take milliseconds, so a second is enough for the crowd to thin.
const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

/// Probes are answered even when everything else is refused: a busy process must not be killed for being busy, and whoever wants to know
/// how busy it is has to learn it then.
const PROBES: [&str; 3] = ["/health/live", "/health/ready", "/metrics"];

/// The method and the path of a request that nobody could read, in the log.
const UNREAD: &str = "*";

/// What the edge needs.
#[derive(Clone, Debug)]
pub struct EdgeParts {
    /// What is accepted.
    pub limits: Limits,
    /// Where request ids come from.
    pub ids: Ids,
    /// Measures requests.
    pub clock: Clock,
    /// How many lines the access log has.
    pub access_log: AccessLog,
    /// Once it drains, clients are asked to close their connections.
    pub health: Health,
    /// Whether browsers are told to use nothing but TLS from now on. Only for sites that are served by TLS.
    pub hsts: bool,
}

/// Puts the edge around a router. Routes get metrics under their own names; routers that another layer wraps in a
/// fallback pass through [`named`] first.
pub fn edge(router: Router, parts: EdgeParts) -> Router {
    crate::router(Edge::around(if router.has_routes() { named(router) } else { router }, parts))
}

/// The edge around whoever answers.
pub struct Edge<R> {
    inner: R,
    limits: Limits,
    ids: Ids,
    clock: Clock,
    health: Health,
    /// What every answer has.
    headers: HeaderMap,
    numbers: Numbers,
    // Every request writes to these. Beside the others, they would take those from all other cores each time.
    log: CachePadded<Log>,
    in_flight: CachePadded<AtomicUsize>,
}

/// What is still known of a request after its handler took it.
struct Seen {
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
        let seen = Seen {
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
            // In a box, so that requests that nobody traces are not moved with room for a second one.
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
        let seen = Seen {
            method: Method::from_bytes(UNREAD.as_bytes()).expect("a test asks for it"),
            uri: Uri::from_static(UNREAD),
            arrival: Arrival::new(self.ids.next(), 0),
            started: self.clock.ticks(),
        };
        self.finish(&seen, problem.into_response())
    }
}

impl<R: Respond> Edge<R> {
    /// Puts the edge around whoever answers. Who knows the names of routes tells them by [`name_route`] or [`named`].
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

    /// The handler's answer, or why there is none.
    async fn answer(&self, request: Request, arrival: &Arrival) -> Response {
        let Some(_turn) = self.enter(request.uri().path()) else {
            return Problem::of(
                codes::OVERLOADED,
                "Too many requests are in progress. Please try again in a moment.",
            )
            .retry_after(OVERLOAD_PAUSE)
            .into_response();
        };
        if request.extensions().get::<Nameless>().is_some() && !request.headers().contains_key(header::HOST) {
            return Problem::of(codes::HOST_REQUIRED, "An HTTP/1.1 request names its host.").into_response();
        }
        let request = match length(&request, arrival.body_bytes()) {
            Length::Fits => request,
            Length::Unknown => request.map(|body| Body::new(Limited::new(body, arrival.body_bytes()))),
            Length::TooLarge => return too_large(arrival.body_bytes()).into_response(),
        };
        let mut handler = pin!(AssertUnwindSafe(self.inner.respond(request)).catch_unwind());
        // Whoever answers without waiting needs no timer.
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

    /// What the handler answers, unless it takes too long.
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

    /// A place among the requests in progress, given back when it is dropped.
    fn enter(&self, path: &str) -> Option<Turn<'_>> {
        let turn = Turn(&self.in_flight);
        let ahead = self.in_flight.fetch_add(1, Ordering::Relaxed);
        (ahead < self.limits.max_in_flight || PROBES.contains(&path)).then_some(turn)
    }
}

struct Turn<'e>(&'e AtomicUsize);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The id a proxy or another role gave the request. Anything but a UUID is replaced, so that nobody writes into our logs.
fn inbound_id(headers: &HeaderMap) -> Option<RequestId> {
    let text = headers.get(REQUEST_ID)?.to_str().ok()?;
    if text.len() == UUID_LEN { text.parse().ok() } else { None }
}

/// Whether the small body limit holds: `/api/auth` and everything below it, with or without the version.
fn is_auth(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/api") else { return false };
    let rest = rest.strip_prefix("/v1").unwrap_or(rest);
    rest.strip_prefix("/auth").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What a request says about the length of its body.
enum Length {
    Fits,
    /// Refused before a byte of it is read.
    TooLarge,
    /// Cut off on the way.
    Unknown,
}

fn length(request: &Request, limit: usize) -> Length {
    match request.body().size_hint().upper() {
        Some(length) if length > u64::try_from(limit).unwrap_or(u64::MAX) => Length::TooLarge,
        Some(_) => Length::Fits,
        None => Length::Unknown,
    }
}

/// A span of its own only when somebody collects it: at the default log level it costs nothing.
fn span(seen: &Seen, headers: &HeaderMap) -> Span {
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
    fn the_small_limit_holds_for_auth_in_every_version_and_nowhere_else() {
        for path in ["/api/auth", "/api/auth/login", "/api/v1/auth", "/api/v1/auth/login"] {
            assert!(is_auth(path), "{path}");
        }
        for path in ["/", "/api", "/api/v1", "/api/authors", "/auth/login", "/api/v2/auth", "/api//auth"] {
            assert!(!is_auth(path), "{path}");
        }
    }
}
