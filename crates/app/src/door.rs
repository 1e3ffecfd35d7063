//! The door of a process whose database server is not there yet: health answers from the first moment, everything else once the
//! tables were seen to be right.

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

/// What somebody at a shut door is told to wait: servers that start together need a second or two.
const COME_BACK: Duration = Duration::from_secs(1);

/// Shut until it is opened, and then open for ever. Clones are the same door.
pub(crate) struct Door<R>(Arc<OnceLock<R>>);

impl<R> Door<R> {
    /// A door that is shut.
    pub(crate) fn shut() -> Self {
        Self(Arc::default())
    }

    /// From now on requests go through to `behind`.
    pub(crate) fn open(&self, behind: R) {
        assert!(self.0.set(behind).is_ok(), "a door is opened once");
    }
}

impl<R> Clone for Door<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Respond> Respond for Door<R> {
    async fn respond(&self, request: Request) -> Response {
        match self.0.get() {
            Some(behind) => behind.respond(request).await,
            None => not_yet(),
        }
    }
}

/// Hangs up, so that a gateway in front can tell it from the 503 of one route and asks others.
fn not_yet() -> Response {
    let message = "The server is starting and waits for its database.";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "http.not_ready", message);
    let mut answer = problem.retry_after(COME_BACK).into_response();
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

#[async_trait]
impl<R: Respond> Check for Door<R> {
    async fn check(&self) -> Result<(), String> {
        if self.0.get().is_some() { Ok(()) } else { Err("the tables have not been looked at yet".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, routing::get};

    use super::*;

    #[tokio::test]
    async fn nobody_comes_in_before_the_door_is_opened() {
        let door = Door::shut();
        let knock = async || door.respond(Request::get("/x").body(Body::empty()).unwrap()).await;
        let answer = knock().await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()["retry-after"], "1");
        assert_eq!(answer.headers()["connection"], "close");
        assert!(door.check().await.is_err());
        door.open(Router::new().route("/x", get(async || "in")));
        assert_eq!(knock().await.status(), StatusCode::OK);
        assert!(door.check().await.is_ok());
    }
}
