//! What the edge tells the inside of a request, and the inside tells the edge: the body limit, and which route matched.

use std::{
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use axum::{
    Router,
    extract::{MatchedPath, Request},
};
use tower::{Layer, Service};

use crate::Limits;

/// Travels with the request; the edge keeps the other end of `route`.
#[derive(Clone)]
pub(super) struct Arrival {
    body_bytes: usize,
    pub(super) route: Arc<OnceLock<MatchedPath>>,
}

impl Arrival {
    pub(super) fn new(body_bytes: usize) -> Self {
        Self { body_bytes, route: Arc::default() }
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
            let _already = arrival.route.set(path.clone());
        }
        self.0.call(request)
    }
}
