//! Tests of readiness, metrics and the access log.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    io,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use urr_http::{AccessLog, Edge, EdgeParts, Limits, Path, Problem, WithOps, edge, ops_routes, router};
use urr_kernel::{Clock, Ids, Timestamp};
use urr_telemetry::{Check, Health, Metrics};

fn parts(sample: u32) -> EdgeParts {
    let clock = Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000));
    EdgeParts {
        limits: Limits::default(),
        ids: Ids::seeded(clock.clone(), 7),
        clock,
        access_log: AccessLog { sample },
        health: Health::new(),
        hsts: false,
    }
}

fn get_request(path: &str) -> Request {
    Request::get(path).body(Body::empty()).unwrap()
}

async fn send(app: &Router, request: Request) -> (StatusCode, HeaderMap, Value) {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

struct Down;

#[async_trait::async_trait]
impl Check for Down {
    async fn check(&self) -> Result<(), String> {
        Err("connection refused".to_owned())
    }
}

#[tokio::test]
async fn only_operators_see_why_a_process_is_not_ready() {
    let health = Health::new();
    let inner = Router::new().route("/", get(async || "inner"));
    let is_operator = |request: &Request| request.headers().contains_key("x-operator");
    let ops = WithOps::new(inner, health.clone(), Metrics::install(), is_operator);
    let app = router(Edge::around(ops, EdgeParts { health: health.clone(), ..parts(0) }));
    let ask = async |path: &str, is_operator: bool| {
        let mut request = get_request(path);
        if is_operator {
            request.headers_mut().insert("x-operator", "1".parse().unwrap());
        }
        let (status, _, body) = send(&app, request).await;
        (status.as_u16(), body)
    };
    assert_eq!(ask("/health/ready", false).await, (200, json!({"status": "ready"})));
    assert_eq!(ask("/metrics", false).await.0, 404);
    assert_eq!(ask("/metrics", true).await.0, 200);

    health.register("tickets database", Arc::new(Down));
    let (status, told) = ask("/health/ready", false).await;
    assert_eq!((status, &told["code"]), (503, &json!("http.not_ready")));
    assert!(!told.to_string().contains("database") && !told.to_string().contains("refused"), "{told}");
    let (status, told) = ask("/health/ready", true).await;
    assert_eq!((status, &told["notReady"]), (503, &json!({"tickets database": "connection refused"})));
    for is_operator in [true, false] {
        assert_eq!(ask("/health/live", is_operator).await, (200, json!({"status": "live"})));
    }
    assert_eq!(send(&app, get_request("/")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn readiness_lists_failed_checks_and_fails_while_draining() {
    let health = Health::new();
    let parts = EdgeParts { health: health.clone(), ..parts(0) };
    let app = edge(ops_routes(health.clone(), Metrics::install()), parts);
    assert_eq!(send(&app, get_request("/health/ready")).await.0, StatusCode::OK);

    health.register("tickets database", Arc::new(Down));
    let (status, _, body) = send(&app, get_request("/health/ready")).await;
    assert_eq!((status.as_u16(), &body["code"]), (503, &json!("http.not_ready")));
    assert_eq!(body["notReady"], json!({"tickets database": "connection refused"}));

    health.drain();
    let (_, headers, body) = send(&app, get_request("/health/ready")).await;
    assert_eq!((&body["draining"], &headers[header::CONNECTION]), (&json!(true), &"close".parse().unwrap()));
    assert_eq!(send(&app, get_request("/health/live")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn request_metrics_are_labelled_by_route() {
    let metrics = Metrics::install();
    let router = Router::new()
        .route("/counted/{id}", get(async |Path(_): Path<String>| "ok"))
        .merge(ops_routes(Health::new(), metrics.clone()));
    let app = edge(router, parts(0));
    for id in ["a", "b", "c"] {
        send(&app, get_request(&format!("/counted/{id}"))).await;
    }
    send(&app, get_request("/uncounted/secret")).await;
    let response = app.clone().oneshot(get_request("/metrics")).await.unwrap();
    assert!(response.headers()[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/plain"));
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&text).unwrap();
    let line = r#"urr_http_requests_total{route="/counted/{id}",method="GET",status="200"} 3"#;
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines logged during a request for `path`.
async fn logged(app: &Router, path: &str) -> Vec<Value> {
    let memory = LogBuffer::default();
    let writer = memory.clone();
    let subscriber =
        tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
    let _scope = tracing::subscriber::set_default(subscriber);
    send(app, get_request(path)).await;
    let text = memory.0.lock().unwrap().clone();
    let lines = String::from_utf8(text).unwrap();
    assert!(!lines.contains("secret"), "{lines}");
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn logging_app(sample: u32) -> Router {
    let broken = async || {
        let cause = io::Error::other("the disk is full");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "x.broken", "Sorry.")
            .caused_by(&cause)
            .into_response()
    };
    let router = Router::new()
        .route("/fine/{id}", get(async || "fine"))
        .route("/broken", get(broken))
        .route("/panic", get(async || -> Response { panic!("a wrong turn") }));
    edge(router, parts(sample))
}

#[tokio::test]
async fn a_sampled_request_is_logged_once_without_its_query() {
    let lines = logged(&logging_app(1), "/fine/7?token=secret").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!(
        (&line["path"], &line["route"], &line["status"]),
        (&json!("/fine/7"), &json!("/fine/{id}"), &json!(200))
    );
    assert_eq!((&line["level"], line["request_id"].as_str().unwrap().len()), (&json!("INFO"), 36));
    assert!(logged(&logging_app(0), "/fine/7?token=secret").await.is_empty());
}

#[tokio::test]
async fn server_errors_are_always_logged_with_their_cause() {
    let app = logging_app(0);
    let lines = logged(&app, "/broken?token=secret").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!((&line["level"], &line["code"]), (&json!("ERROR"), &json!("x.broken")));
    assert_eq!(line["cause"], "the disk is full");
    let lines = logged(&app, "/panic").await;
    assert_eq!((lines.len(), &lines[0]["cause"]), (1, &json!("panic: a wrong turn")));
    assert!(logged(&app, "/none").await.is_empty(), "client errors are not logged");
}
