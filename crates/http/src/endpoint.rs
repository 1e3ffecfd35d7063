//! What answers at one path. A router that has found the path finds it once more, notes what it found and copies its routes; whoever has
//! a table of its own has done all of that.

use std::{fmt, marker::PhantomData, pin::Pin, sync::Arc};

use axum::{Router, extract::Request, handler::Handler, response::Response};
use http::Method;

use crate::Respond;

pub(crate) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler whose arguments nobody need know.
trait Call<S>: Send + Sync {
    fn call(&self, request: Request, state: S) -> Answering;
}

struct Typed<H, T>(H, PhantomData<fn() -> T>);

impl<H: Handler<T, S, Future = Answering>, T: 'static, S: 'static> Call<S> for Typed<H, T> {
    fn call(&self, request: Request, state: S) -> Answering {
        self.0.clone().call(request, state)
    }
}

/// A handler that has been given its state.
struct Stated<S>(Arc<dyn Call<S>>, S);

impl<S: Clone + Send + Sync, S2> Call<S2> for Stated<S> {
    fn call(&self, request: Request, _: S2) -> Answering {
        self.0.call(request, self.1.clone())
    }
}

/// What answers one method of a path without parameters.
pub(crate) struct Endpoint<S> {
    method: Method,
    call: Arc<dyn Call<S>>,
}

impl<S: Clone + Send + Sync + 'static> Endpoint<S> {
    pub(crate) fn new<H: Handler<T, S, Future = Answering>, T: 'static>(method: Method, handler: H) -> Self {
        Self { method, call: Arc::new(Typed(handler, PhantomData)) }
    }

    pub(crate) fn with_state<S2>(self, state: S) -> Endpoint<S2> {
        Endpoint { method: self.method, call: Arc::new(Stated(self.call, state)) }
    }
}

impl<S> Clone for Endpoint<S> {
    fn clone(&self) -> Self {
        Self { method: self.method.clone(), call: Arc::clone(&self.call) }
    }
}

impl<S> fmt::Debug for Endpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.method).finish()
    }
}

/// Everything that answers at one path, and at no other.
#[derive(Clone, Debug, Default)]
pub struct AtPath {
    /// Handlers that can be asked at once.
    endpoints: Vec<Endpoint<()>>,
    /// All of them, for the rest: what takes parameters from the path, HEAD, and methods that nobody takes.
    router: Router,
}

impl AtPath {
    pub(crate) fn new(router: Router, endpoints: Vec<Endpoint<()>>) -> Self {
        Self { endpoints, router }
    }

    /// Adds what else answers at the same path.
    pub fn merge(&mut self, other: Self) {
        self.endpoints.extend(other.endpoints);
        self.router = std::mem::take(&mut self.router).merge(other.router);
    }

    /// The answer to a request for this path.
    pub async fn respond(&self, request: Request) -> Response {
        match self.endpoints.iter().find(|endpoint| endpoint.method == *request.method()) {
            Some(endpoint) => endpoint.call.call(request, ()).await,
            None => self.router.respond(request).await,
        }
    }
}
