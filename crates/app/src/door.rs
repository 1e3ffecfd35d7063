//! The door of a process whose database server is not there yet: health answers from the first moment, everything else once the
//! tables were seen to be right.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use axum::{Router, extract::Request, response::IntoResponse as _};
use tower::Service as _;
use urr_http::{Problem, StatusCode};
use urr_telemetry::Check;

/// What somebody at a shut door is told to wait: servers that start together need a second or two.
const COME_BACK: Duration = Duration::from_secs(1);

/// Shut until it is opened, and then open for ever. Clones are the same door.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<OnceLock<Router>>);

impl Door {
    /// From now on requests go through to `router`.
    pub(crate) fn open(&self, router: Router) {
        assert!(self.0.set(router).is_ok(), "a door is opened once");
    }

    /// What stands in front of the door.
    pub(crate) fn router(&self) -> Router {
        let door = self.clone();
        Router::new().fallback_service(tower::service_fn(move |request: Request| {
            let behind = door.0.get().cloned();
            async move {
                Ok::<_, Infallible>(match behind {
                    Some(mut router) => router.call(request).await.unwrap_or_else(|error| match error {}),
                    None => not_yet().into_response(),
                })
            }
        }))
    }
}

fn not_yet() -> Problem {
    let message = "The server is starting and waits for its database.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "http.not_ready", message).retry_after(COME_BACK)
}

#[async_trait]
impl Check for Door {
    async fn check(&self) -> Result<(), String> {
        if self.0.get().is_some() { Ok(()) } else { Err("the tables have not been looked at yet".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, routing::get};

    use super::*;

    #[tokio::test]
    async fn nobody_comes_in_before_the_door_is_opened() {
        let door = Door::default();
        let mut router = door.router();
        let mut knock = async || router.call(Request::get("/x").body(Body::empty()).unwrap()).await.unwrap();
        let answer = knock().await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()["retry-after"], "1");
        assert!(door.check().await.is_err());
        door.open(Router::new().route("/x", get(async || "in")));
        assert_eq!(knock().await.status(), StatusCode::OK);
        assert!(door.check().await.is_ok());
    }
}
