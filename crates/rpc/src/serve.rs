//! The server side of a service: `/internal/<domain>/<method>`.

use std::{future::Future, time::Duration};

use axum::{
    Json,
    extract::{FromRequest, Request},
    response::{IntoResponse as _, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use urr_http::Problem;
use urr_kernel::{Actor, Clock, CommonError, Ids};

use crate::{
    Ctx, REQUEST_BUDGET, ServiceError, problem,
    remote::{ACTOR, BUDGET, REQUEST_ID},
};

/// The context and the request of one internal call, from its headers and body.
#[derive(Debug)]
pub struct Internal<Q> {
    /// The caller and its deadline.
    pub ctx: Ctx,
    /// The request.
    pub request: Q,
}

impl<Q: DeserializeOwned> FromRequest<(Clock, Ids)> for Internal<Q> {
    type Rejection = Problem;

    async fn from_request(request: Request, (clock, ids): &(Clock, Ids)) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let request_id = text(REQUEST_ID).and_then(|id| id.parse().ok()).unwrap_or_else(|| ids.next());
        let actor = text(ACTOR).and_then(|json| serde_json::from_str(json).ok()).unwrap_or(Actor::Anonymous);
        let budget = text(BUDGET)
            .and_then(|ms| ms.parse().ok())
            .map_or(REQUEST_BUDGET, |ms| Duration::from_millis(ms).min(REQUEST_BUDGET));
        let ctx = Ctx::new(request_id, actor, clock.clone(), budget);
        parts.extensions.insert(request_id);
        let urr_http::Json(request) =
            urr_http::Json::from_request(Request::from_parts(parts, body), &()).await?;
        Ok(Self { ctx, request })
    }
}

/// Awaits the service until the caller's deadline and writes the reply or the problem.
pub async fn answer<A: Serialize, E: ServiceError>(
    budget: Duration,
    work: impl Future<Output = Result<A, E>>,
) -> Response {
    match tokio::time::timeout(budget, work).await {
        Ok(Ok(reply)) => Json(reply).into_response(),
        Ok(Err(error)) => problem(&error).into_response(),
        Err(_) => problem(&E::from(CommonError::Unavailable)).into_response(),
    }
}
