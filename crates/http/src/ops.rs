//! What operators and load balancers ask for.

use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::header;
use serde_json::{Map, Value, json};
use urr_telemetry::{Health, Metrics};

use crate::{Json, Problem, Respond, codes, named};

const LIVE: &str = "/health/live";
const READY: &str = "/health/ready";
const METRICS: &str = "/metrics";

/// `/health/live`: the process runs. `/health/ready`: it can serve, or 503 `http.not_ready` naming what is missing.
/// `/metrics`: the Prometheus text format.
pub fn ops_routes(health: Health, metrics: Metrics) -> Router {
    let live = async || Json(json!({"status": "live"}));
    let numbers = async move || {
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render())
    };
    Router::new()
        .route(LIVE, get(live))
        .route(READY, get(ready))
        .with_state(health)
        .route(METRICS, get(numbers))
}

/// What operators ask beside what everybody asks.
#[derive(Debug)]
pub struct WithOps<R> {
    ops: Router,
    inner: R,
}

impl<R> WithOps<R> {
    /// Answers what operators ask, and leaves the rest to `inner`.
    pub fn new(inner: R, health: Health, metrics: Metrics) -> Self {
        Self { ops: named(ops_routes(health, metrics)), inner }
    }
}

impl<R: Respond> Respond for WithOps<R> {
    async fn respond(&self, request: Request) -> Response {
        match request.uri().path() {
            LIVE | READY | METRICS => self.ops.respond(request).await,
            _ => self.inner.respond(request).await,
        }
    }
}

async fn ready(State(health): State<Health>) -> Response {
    let report = health.report().await;
    let missing: Map<String, Value> = report
        .iter()
        .filter_map(|(name, answer)| Some(((*name).to_owned(), Value::from(answer.as_ref().err()?.clone()))))
        .collect();
    let draining = health.is_draining();
    if missing.is_empty() && !draining {
        let parts: Vec<_> = report.iter().map(|(name, _)| *name).collect();
        return Json(json!({"status": "ready", "parts": parts})).into_response();
    }
    let message = if draining {
        "The server is draining.".to_owned()
    } else {
        let names: Vec<_> = missing.keys().map(String::as_str).collect();
        format!("Not ready: {}.", names.join(", "))
    };
    Problem::of(codes::NOT_READY, message)
        .field("draining", draining)
        .field("notReady", missing)
        .into_response()
}
