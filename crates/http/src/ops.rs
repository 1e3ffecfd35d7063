//! Health and metrics endpoints for operators and load balancers.

use std::{fmt, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::{Method, header};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};
use urr_telemetry::{Health, Metrics};

use crate::{About, Json, PUBLIC, Problem, Respond, RouteName, StatusCode, codes, named};

const LIVE: &str = "/health/live";
const READY: &str = "/health/ready";
const METRICS: &str = "/metrics";

/// `/health/live`: the process runs. `/health/ready`: it can serve, or 503 `http.not_ready` with
/// the parts that are missing. `/metrics`: the Prometheus text format. For operators only: the last
/// two reveal internals.
pub fn ops_routes(health: Health, metrics: Metrics) -> Router {
    let numbers = async move || {
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render())
    };
    Router::new()
        .route(LIVE, get(live))
        .route(READY, get(ready))
        .with_state(health)
        .route(METRICS, get(numbers))
}

/// Serves `/health/live` in front of `routes`, without their token, so that an orchestrator can
/// probe the internal listener.
pub fn live_route(routes: Router) -> Router {
    named(Router::new().route(LIVE, get(live))).fallback_service(routes)
}

/// Their entries in the API document.
pub fn ops_names() -> [RouteName; 3] {
    // Never rate-limited: an orchestrator must not take a busy process for a dead one.
    let policy = PUBLIC.unlimited();
    let name = |path, about| RouteName { method: Method::GET, any_method: false, path, policy, about };
    let ready = About::new("Whether the process can serve").answer::<Condition>(StatusCode::OK);
    let numbers = About::new("Numbers for Prometheus, for operators").bare(StatusCode::OK);
    [
        name(LIVE, About::new("Whether the process runs").answer::<Condition>(StatusCode::OK)),
        name(READY, ready),
        name(METRICS, numbers.refuses([StatusCode::NOT_FOUND])),
    ]
}

/// Health of the process.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only used for its JSON schema")]
struct Condition {
    /// `live` or `ready`.
    status: String,
    /// Checked parts. Only operators get them.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<String>>,
}

/// The public variant: status only, no reasons.
fn probe_routes(health: Health) -> Router {
    Router::new().route(LIVE, get(live)).route(READY, get(ready_or_not)).with_state(health)
}

/// Decides whether a request comes from an operator.
type IsOperator = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// Adds the health and metrics endpoints to a responder.
pub struct WithOps<R> {
    ops: Router,
    probes: Router,
    is_operator: IsOperator,
    inner: R,
}

impl<R> WithOps<R> {
    /// Serves health and metrics itself and passes everything else to `inner`. Only operators get
    /// details and metrics; others get the bare status.
    pub fn new(
        inner: R,
        health: Health,
        metrics: Metrics,
        is_operator: impl Fn(&Request) -> bool + Send + Sync + 'static,
    ) -> Self {
        let probes = named(probe_routes(health.clone()));
        Self { ops: named(ops_routes(health, metrics)), probes, is_operator: Arc::new(is_operator), inner }
    }
}

impl<R> fmt::Debug for WithOps<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithOps").finish_non_exhaustive()
    }
}

impl<R: Respond> Respond for WithOps<R> {
    async fn respond(&self, request: Request) -> Response {
        match request.uri().path() {
            LIVE | READY | METRICS if (self.is_operator)(&request) => self.ops.respond(request).await,
            LIVE | READY | METRICS => self.probes.respond(request).await,
            _ => self.inner.respond(request).await,
        }
    }
}

async fn live() -> Json<Value> {
    Json(json!({"status": "live"}))
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

async fn ready_or_not(State(health): State<Health>) -> Response {
    let is_ready = health.report().await.iter().all(|(_, answer)| answer.is_ok()) && !health.is_draining();
    if is_ready {
        return Json(json!({"status": "ready"})).into_response();
    }
    Problem::of(codes::NOT_READY, "Not ready.").into_response()
}
