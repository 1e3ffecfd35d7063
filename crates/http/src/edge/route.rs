//! What the edge tells the inside of a request, and the inside tells the edge: its id and the body limit, which route matched, and
//! how long it may take.

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

/// Travels with the request; the edge keeps the other end of what it is told.
#[derive(Clone)]
pub(super) struct Arrival(Arc<Told>);

/// What both sides tell each other. In one piece: whatever travels with every request is paid for by every request.
struct Told {
    id: RequestId,
    body_bytes: usize,
    route: OnceLock<Name>,
    /// In milliseconds; 0: as long as any other.
    time: AtomicU64,
    awaits_body: AtomicBool,
}

/// The name of a route, as its router or a table of routes knows it.
enum Name {
    Matched(MatchedPath),
    Listed(&'static str),
}

impl Arrival {
    pub(super) fn new(id: RequestId, body_bytes: usize) -> Self {
        let (route, time, awaits_body) = (OnceLock::new(), AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Told { id, body_bytes, route, time, awaits_body }))
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

    /// Whether the client has yet to send what the handler reads.
    pub(super) fn awaits_body(&self) -> bool {
        self.0.awaits_body.load(Ordering::Relaxed)
    }

    /// What the request may take beyond `usual`, if it was given more.
    pub(super) fn more_time(&self, usual: Duration) -> Option<Duration> {
        let time = Duration::from_millis(self.0.time.load(Ordering::Relaxed));
        time.checked_sub(usual).filter(|more| !more.is_zero())
    }
}

/// Tells the edge the name of the route that a request takes, for metrics and the access log. For layers that know it before the
/// router does, or send the request elsewhere; the first name stays.
pub fn name_route(extensions: &Extensions, route: &'static str) {
    if let Some(arrival) = extensions.get::<Arrival>() {
        let _already = arrival.0.route.set(Name::Listed(route));
    }
}

/// Lets one request take longer than [`Limits::request_time`], counted from its start, because what it waits for does: a payment
/// provider answers within a minute.
pub fn allow_time(extensions: &Extensions, limit: Duration) {
    if let Some(arrival) = extensions.get::<Arrival>() {
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        arrival.0.time.store(millis, Ordering::Relaxed);
    }
}

/// The id that the edge gave a request. `None`: there is no edge around whoever answers it.
pub fn request_id(extensions: &Extensions) -> Option<RequestId> {
    extensions.get().map(Arrival::id)
}

/// Reads a body, and lets the edge know that it waits for the client meanwhile.
pub(crate) async fn reading<F: Future>(extensions: &Extensions, read: F) -> F::Output {
    let Some(arrival) = extensions.get::<Arrival>() else { return read.await };
    arrival.0.awaits_body.store(true, Ordering::Relaxed);
    let body = read.await;
    arrival.0.awaits_body.store(false, Ordering::Relaxed);
    body
}

/// How many bytes the body may have; without an edge around the router, the default.
pub(crate) fn body_bytes(request: &Request) -> usize {
    request.extensions().get().map_or(Limits::default().body_bytes, Arrival::body_bytes)
}

/// Lets every route of this router tell the edge its name, for metrics and the access log. [`edge`](super::edge) does it by
/// itself for the router it is given; a layer that hides a router inside a fallback calls this on the hidden one.
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
