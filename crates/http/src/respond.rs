//! The trait of everything that answers requests.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use tower::Service as _;

use crate::Problem;

/// A router, or a layer in front of one. A stack of axum routers boxes and moves the request at
/// every step; a stack of responders is a single future.
pub trait Respond: Send + Sync + 'static {
    /// Handles one request.
    fn respond(&self, request: Request) -> impl Future<Output = Response> + Send;

    /// The response to a request that could not be parsed. Layers add their usual headers.
    fn refuse(&self, problem: Problem) -> Response {
        problem.into_response()
    }
}

impl Respond for Router {
    async fn respond(&self, request: Request) -> Response {
        self.clone().call(request).await.unwrap_or_else(|impossible| match impossible {})
    }
}

/// Wraps a responder in an axum router.
pub fn router(responder: impl Respond) -> Router {
    let responder = Arc::new(responder);
    Router::new().fallback_service(tower::service_fn(move |request| {
        let responder = Arc::clone(&responder);
        async move { Ok::<_, Infallible>(responder.respond(request).await) }
    }))
}
