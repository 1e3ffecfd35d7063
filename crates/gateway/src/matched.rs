//! The guard and the route it guards are the same: a last look between the table and the handler.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use axum::{
    Router,
    extract::{MatchedPath, Request},
    response::{IntoResponse as _, Response},
};
use futures_util::future::Either;
use http::StatusCode;
use tower::{Layer, Service};

/// The path of the route whose guards the request has passed.
#[derive(Clone, Copy)]
pub(crate) struct Guarded(pub(crate) &'static str);

/// Routes that answer only if they are the ones whose guards were asked. Table and router match paths alike, so this never refuses
/// anything, unless that changes.
pub(crate) fn guarded(router: Router) -> Router {
    if router.has_routes() { router.route_layer(Same) } else { router }
}

#[derive(Clone, Copy)]
struct Same;

impl<S> Layer<S> for Same {
    type Service = SameOnly<S>;

    fn layer(&self, inner: S) -> SameOnly<S> {
        SameOnly(inner)
    }
}

#[derive(Clone)]
struct SameOnly<S>(S);

impl<S> Service<Request> for SameOnly<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let extensions = request.extensions();
        let matched = extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let guarded = extensions.get::<Guarded>().map(|guarded| guarded.0);
        if matched.is_some() && matched == guarded {
            return Either::Left(self.0.call(request));
        }
        tracing::error!(matched, guarded, "a route was reached past its guards");
        Either::Right(ready(Ok(StatusCode::NOT_FOUND.into_response())))
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, routing::get};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_route_answers_only_after_its_own_guards() {
        let router = guarded(Router::new().route("/a/{id}", get("a")).route("/b", get("b")));
        for (guards, path, status) in [
            (Some("/a/{id}"), "/a/1", StatusCode::OK),
            (Some("/b"), "/a/1", StatusCode::NOT_FOUND),
            (None, "/b", StatusCode::NOT_FOUND),
        ] {
            let mut request = Request::get(path).body(Body::empty()).unwrap();
            if let Some(guards) = guards {
                request.extensions_mut().insert(Guarded(guards));
            }
            assert_eq!(router.clone().oneshot(request).await.unwrap().status(), status, "{path}");
        }
    }
}
