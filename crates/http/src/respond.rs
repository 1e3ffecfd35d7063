//! Whoever answers requests.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use tower::Service as _;

use crate::Problem;

/// Answers requests: a router, or what stands before one. A stack of routers boxes and moves every request at every step; a stack of
/// these is one future.
pub trait Respond: Send + Sync + 'static {
    /// The answer to one request.
    fn respond(&self, request: Request) -> impl Future<Output = Response> + Send;

    /// What somebody is answered whose request nobody can read: the problem, with whatever stands around every answer.
    fn refuse(&self, problem: Problem) -> Response {
        problem.into_response()
    }
}

impl Respond for Router {
    async fn respond(&self, request: Request) -> Response {
        self.clone().call(request).await.unwrap_or_else(|impossible| match impossible {})
    }
}

/// The same as a router, for whoever wants one.
pub fn router(responder: impl Respond) -> Router {
    let responder = Arc::new(responder);
    Router::new().fallback_service(tower::service_fn(move |request| {
        let responder = Arc::clone(&responder);
        async move { Ok::<_, Infallible>(responder.respond(request).await) }
    }))
}
