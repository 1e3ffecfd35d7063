//! Holds back requests until the database server answers and its schema has been checked. Health
//! endpoints answer from the start; all other requests get 503 until then.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use axum::{
    extract::Request,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use urr_http::{Problem, Respond, StatusCode};
use urr_telemetry::Check;

/// `Retry-After` while the process starts: servers that start together need a second or two.
const COME_BACK: Duration = Duration::from_secs(1);

/// Closed at first; once opened it stays open. Clones share their state.
pub(crate) struct StartupGuard<R>(Arc<OnceLock<R>>);

impl<R> StartupGuard<R> {
    /// Refuses requests until [`StartupGuard::open`] is called.
    pub(crate) fn closed() -> Self {
        Self(Arc::default())
    }

    /// Passes all further requests to `behind`.
    pub(crate) fn open(&self, behind: R) {
        assert!(self.0.set(behind).is_ok(), "open is called once");
    }
}

impl<R> Clone for StartupGuard<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Respond> Respond for StartupGuard<R> {
    async fn respond(&self, request: Request) -> Response {
        match self.0.get() {
            Some(behind) => behind.respond(request).await,
            None => not_yet(),
        }
    }
}

/// A 503 that closes the connection. So a gateway in front can tell it from the 503 of one route,
/// and tries another replica.
fn not_yet() -> Response {
    let message = "The server is starting and waits for its database.";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "http.not_ready", message);
    let mut answer = problem.retry_after(COME_BACK).into_response();
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

#[async_trait]
impl<R: Respond> Check for StartupGuard<R> {
    async fn check(&self) -> Result<(), String> {
        if self.0.get().is_some() {
            Ok(())
        } else {
            Err("the database schema has not been checked yet".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, routing::get};

    use super::*;

    #[tokio::test]
    async fn requests_get_503_until_the_door_is_opened() {
        let guard = StartupGuard::closed();
        let knock = async || guard.respond(Request::get("/x").body(Body::empty()).unwrap()).await;
        let answer = knock().await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()["retry-after"], "1");
        assert_eq!(answer.headers()["connection"], "close");
        assert!(guard.check().await.is_err());
        guard.open(Router::new().route("/x", get(async || "in")));
        assert_eq!(knock().await.status(), StatusCode::OK);
        assert!(guard.check().await.is_ok());
    }
}
