//! The handlers of one path, callable without axum's router. The gateway matches the path in its
//! own table; a router would match it again, record the match and clone its routes.

use std::{fmt, marker::PhantomData, pin::Pin, sync::Arc};

use axum::{Router, extract::Request, handler::Handler, response::Response};
use http::Method;

use crate::Respond;

pub(crate) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler with its argument types erased.
trait Call<S>: Send + Sync {
    fn call(&self, request: Request, state: S) -> Answering;
}

struct Typed<H, T>(H, PhantomData<fn() -> T>);

impl<H: Handler<T, S, Future = Answering>, T: 'static, S: 'static> Call<S> for Typed<H, T> {
    fn call(&self, request: Request, state: S) -> Answering {
        self.0.clone().call(request, state)
    }
}

/// A handler bound to its state.
struct BoundHandler<S>(Arc<dyn Call<S>>, S);

impl<S: Clone + Send + Sync, S2> Call<S2> for BoundHandler<S> {
    fn call(&self, request: Request, _: S2) -> Answering {
        self.0.call(request, self.1.clone())
    }
}

/// The handler of one method of a path without parameters.
pub(crate) struct Endpoint<S> {
    method: Method,
    call: Arc<dyn Call<S>>,
}

impl<S: Clone + Send + Sync + 'static> Endpoint<S> {
    pub(crate) fn new<H: Handler<T, S, Future = Answering>, T: 'static>(method: Method, handler: H) -> Self {
        Self { method, call: Arc::new(Typed(handler, PhantomData)) }
    }

    pub(crate) fn with_state<S2>(self, state: S) -> Endpoint<S2> {
        Endpoint { method: self.method, call: Arc::new(BoundHandler(self.call, state)) }
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

/// All handlers of one path.
#[derive(Clone, Debug, Default)]
pub struct AtPath {
    /// Handlers that are called directly.
    endpoints: Vec<Endpoint<()>>,
    /// All handlers. Used for path parameters, HEAD and 405.
    router: Router,
}

impl AtPath {
    pub(crate) fn new(router: Router, endpoints: Vec<Endpoint<()>>) -> Self {
        Self { endpoints, router }
    }

    /// Adds other handlers of the same path.
    pub fn merge(&mut self, other: Self) {
        self.endpoints.extend(other.endpoints);
        self.router = std::mem::take(&mut self.router).merge(other.router);
    }

    /// Handles a request for this path.
    pub async fn respond(&self, request: Request) -> Response {
        match self.endpoints.iter().find(|endpoint| endpoint.method == *request.method()) {
            Some(endpoint) => endpoint.call.call(request, ()).await,
            None => self.router.respond(request).await,
        }
    }
}
