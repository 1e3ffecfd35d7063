//! What the edge tells the inside of a request, and the inside tells the edge: the body limit, which route matched, and how long
//! it may take.

use std::{
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    extract::{MatchedPath, Request},
};
use http::Extensions;
use tower::{Layer, Service};

use crate::Limits;

/// Travels with the request; the edge keeps the other end of what it is told.
#[derive(Clone)]
pub(super) struct Arrival {
    body_bytes: usize,
    told: Arc<Told>,
}

/// What the inside of a request tells the edge.
#[derive(Default)]
struct Told {
    route: OnceLock<Name>,
    time: OnceLock<Duration>,
}

/// The name of a route, as its router or a table of routes knows it.
enum Name {
    Matched(MatchedPath),
    Listed(&'static str),
}

impl Arrival {
    pub(super) fn new(body_bytes: usize) -> Self {
        Self { body_bytes, told: Arc::default() }
    }

    pub(super) fn route(&self) -> Option<&str> {
        match self.told.route.get()? {
            Name::Matched(path) => Some(path.as_str()),
            Name::Listed(path) => Some(path),
        }
    }

    /// What the request may take beyond `usual`, if it was given more.
    pub(super) fn more_time(&self, usual: Duration) -> Option<Duration> {
        self.told.time.get()?.checked_sub(usual).filter(|more| !more.is_zero())
    }
}

/// Tells the edge the name of the route that a request takes, for metrics and the access log. For layers that know it before the
/// router does, or send the request elsewhere; the first name stays.
pub fn name_route(extensions: &Extensions, route: &'static str) {
    if let Some(arrival) = extensions.get::<Arrival>() {
        let _already = arrival.told.route.set(Name::Listed(route));
    }
}

/// Lets one request take longer than [`Limits::request_time`], counted from its start, because what it waits for does: a payment
/// provider answers within a minute.
pub fn allow_time(extensions: &Extensions, limit: Duration) {
    if let Some(arrival) = extensions.get::<Arrival>() {
        let _already = arrival.told.time.set(limit);
    }
}

/// How many bytes the body may have; without an edge around the router, the default.
pub(crate) fn body_bytes(request: &Request) -> usize {
    request.extensions().get().map_or(Limits::default().body_bytes, |arrival: &Arrival| arrival.body_bytes)
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
            let _already = arrival.told.route.set(Name::Matched(path.clone()));
        }
        self.0.call(request)
    }
}
