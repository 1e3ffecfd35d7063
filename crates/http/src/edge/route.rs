//! Per-request state shared by the edge and the handlers: request id, body limit, matched route and
//! time limit.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    extract::{MatchedPath, Request},
};
use http::Extensions;
use tower::{Layer, Service};
use urr_kernel::RequestId;

use crate::Limits;

/// Handle to the shared state: one in the request's extensions, one kept by the edge.
#[derive(Clone)]
pub(super) struct Arrival(Arc<RequestState>);

/// The shared state, in one allocation because every request pays for it.
struct RequestState {
    id: RequestId,
    body_bytes: usize,
    route: OnceLock<Name>,
    /// Time limit in milliseconds; 0 means the default.
    time: AtomicU64,
    awaits_body: AtomicBool,
}

/// A route's name, from axum's router or from a route table.
enum Name {
    Matched(MatchedPath),
    Listed(&'static str),
}

impl Arrival {
    pub(super) fn new(id: RequestId, body_bytes: usize) -> Self {
        let (route, time, awaits_body) = (OnceLock::new(), AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(RequestState { id, body_bytes, route, time, awaits_body }))
    }

    pub(super) fn id(&self) -> RequestId {
        self.0.id
    }

    pub(super) fn body_bytes(&self) -> usize {
        self.0.body_bytes
    }

    pub(super) fn route(&self) -> Option<&str> {
        match self.0.route.get()? {
            Name::Matched(path) => Some(path.as_str()),
            Name::Listed(path) => Some(path),
        }
    }

    /// Whether the handler is waiting for the request body.
    pub(super) fn awaits_body(&self) -> bool {
        self.0.awaits_body.load(Ordering::Relaxed)
    }

    /// Time allowed beyond `usual`, if [`allow_time`] extended it.
    pub(super) fn more_time(&self, usual: Duration) -> Option<Duration> {
        let time = Duration::from_millis(self.0.time.load(Ordering::Relaxed));
        time.checked_sub(usual).filter(|more| !more.is_zero())
    }
}

/// Sets the route name for metrics and the access log. For layers that know it before the router
/// does, or that forward the request elsewhere. Only the first call has an effect.
pub fn name_route(extensions: &Extensions, route: &'static str) {
    if let Some(arrival) = extensions.get::<Arrival>() {
        let _already = arrival.0.route.set(Name::Listed(route));
    }
}

/// Extends the time limit of one request beyond [`Limits::request_time`], counted from its start.
/// For calls to slow third parties: a payment provider may take a minute.
pub fn allow_time(extensions: &Extensions, limit: Duration) {
    if let Some(arrival) = extensions.get::<Arrival>() {
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        arrival.0.time.store(millis, Ordering::Relaxed);
    }
}

/// The request id set by the edge. `None` if there is no edge around the handler.
pub fn request_id(extensions: &Extensions) -> Option<RequestId> {
    extensions.get().map(Arrival::id)
}

/// Awaits `read` and marks the request as waiting for the client meanwhile, so that a timeout is
/// reported as 408 and not as 504.
pub(crate) async fn reading<F: Future>(extensions: &Extensions, read: F) -> F::Output {
    let Some(arrival) = extensions.get::<Arrival>() else { return read.await };
    arrival.0.awaits_body.store(true, Ordering::Relaxed);
    let body = read.await;
    arrival.0.awaits_body.store(false, Ordering::Relaxed);
    body
}

/// The body limit of this request, or the default if there is no edge.
pub(crate) fn body_bytes(request: &Request) -> usize {
    request.extensions().get().map_or(Limits::default().body_bytes, Arrival::body_bytes)
}

/// Reports the matched route of this router to the edge, for metrics and the access log.
/// [`edge`](super::edge) does this for its own router; call it on a router hidden in a fallback.
pub fn named(router: Router) -> Router {
    router.route_layer(Named)
}

#[derive(Clone, Copy)]
struct Named;

impl<S> Layer<S> for Named {
    type Service = Naming<S>;

    fn layer(&self, inner: S) -> Naming<S> {
        Naming(inner)
    }
}

#[derive(Clone)]
struct Naming<S>(S);

impl<S: Service<Request>> Service<Request> for Naming<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> S::Future {
        let extensions = request.extensions();
        if let (Some(arrival), Some(path)) = (extensions.get::<Arrival>(), extensions.get::<MatchedPath>()) {
            let _already = arrival.0.route.set(Name::Matched(path.clone()));
        }
        self.0.call(request)
    }
}
