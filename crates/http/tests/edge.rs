//! Tests of the edge through a router.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{AppendHeaders, IntoResponse as _, Response},
    routing::{get, post},
};
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use urr_http::{
    AccessLog, Caller, EdgeParts, Json, Limits, Path, Problem, Query, allow_time, edge, ops_routes,
    request_id,
};
use urr_kernel::{Actor, Clock, EventId, Ids, Role, Timestamp, UserId};
use urr_telemetry::{Health, Metrics};

fn parts(limits: Limits) -> EdgeParts {
    let clock = Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000));
    EdgeParts {
        limits,
        ids: Ids::seeded(clock.clone(), 7),
        clock,
        access_log: AccessLog { sample: 1 },
        health: Health::new(),
        hsts: false,
    }
}

fn app(router: Router) -> Router {
    edge(router, parts(Limits::default()))
}

fn get_request(path: &str) -> Request {
    Request::get(path).body(Body::empty()).unwrap()
}

fn post_json(path: &str, body: impl Into<Body>) -> Request {
    Request::post(path).header(header::CONTENT_TYPE, "application/json").body(body.into()).unwrap()
}

async fn send(app: &Router, request: Request) -> (StatusCode, HeaderMap, Value) {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn code(app: &Router, request: Request) -> (u16, String) {
    let (status, headers, body) = send(app, request).await;
    assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json");
    assert_eq!(body["status"], status.as_u16());
    assert_eq!(body["error"], body["message"]);
    assert_eq!(body["requestId"], headers["x-request-id"].to_str().unwrap());
    (status.as_u16(), body["code"].as_str().unwrap().to_owned())
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountRequest {
    count: u32,
}

fn router() -> Router {
    Router::new()
        .route("/wish", post(async |Json(request): Json<CountRequest>| Json(json!({"count": request.count}))))
        .route("/api/auth/login", post(async |Json(_): Json<Value>| "in"))
        .route("/api/v1/auth/login", post(async |Json(_): Json<Value>| "in"))
}

#[tokio::test]
async fn bad_bodies_are_refused_with_their_own_codes() {
    let app = app(router());
    let request = |body: &'static str| post_json("/wish", body);
    assert_eq!(code(&app, request("{\"count\":")).await, is(400, "http.bad_json"));
    assert_eq!(code(&app, request("")).await, is(400, "http.bad_json"));
    assert_eq!(code(&app, request("{\"count\":1e400}")).await, is(400, "http.bad_json"));
    assert_eq!(code(&app, request("{\"count\":NaN}")).await, is(400, "http.bad_json"));
    assert_eq!(code(&app, request("{\"count\":1} x")).await, is(400, "http.bad_json"));
    assert_eq!(code(&app, request("{\"count\":1,\"count\":2}")).await, is(400, "http.bad_request"));
    assert_eq!(code(&app, request("{\"count\":1,\"other\":2}")).await, is(400, "http.bad_request"));
    assert_eq!(code(&app, request("{\"count\":99999999999}")).await, is(400, "http.bad_request"));
    assert_eq!(code(&app, request("{}")).await, is(400, "http.bad_request"));
    assert_eq!(code(&app, request("[1]")).await, is(400, "http.bad_request"));
    assert_eq!(code(&app, request(" \n[1]")).await, is(400, "http.bad_request"));
    let not_utf8 = post_json("/wish", b"{\"count\":1,\"\xff\xfe\":2}".to_vec());
    assert_eq!(code(&app, not_utf8).await, is(400, "http.bad_json"));
    let deep = post_json("/api/auth/login", "[".repeat(5_000));
    assert_eq!(code(&app, deep).await, is(400, "http.bad_json"));
    let (_, _, body) = send(&app, request("{\"count\":\"two\"}")).await;
    assert_eq!(body["path"], "count");
}

#[tokio::test]
async fn only_json_content_types_are_accepted() {
    async fn may_wish(_: Option<Json<CountRequest>>) {}
    let app = app(router().route("/may", post(may_wish)));
    let typed = |kind: Option<&str>, path: &str, body: &'static str| {
        let mut request = post_json(path, body);
        request.headers_mut().remove(header::CONTENT_TYPE);
        if let Some(kind) = kind {
            request.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
        }
        request
    };
    let one = "{\"count\":1}";
    for kind in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("text/json"), Some("json")]
    {
        let refused = is(415, "http.unsupported_media_type");
        assert_eq!(code(&app, typed(kind, "/wish", one)).await, refused, "{kind:?}");
        assert_eq!(code(&app, typed(kind, "/may", one)).await, refused, "{kind:?}");
        // An empty body is accepted with any content type.
        assert_eq!(send(&app, typed(kind, "/may", "")).await.0, StatusCode::OK, "{kind:?}");
    }
    for kind in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.urr+json"] {
        assert_eq!(send(&app, typed(Some(kind), "/wish", one)).await.0, StatusCode::OK, "{kind}");
        assert_eq!(send(&app, typed(Some(kind), "/may", "")).await.0, StatusCode::OK, "{kind}");
        assert_eq!(code(&app, typed(Some(kind), "/may", "{")).await, is(400, "http.bad_json"), "{kind}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_and_auth_has_a_smaller_one() {
    let app = app(router());
    let padded = |path, length: usize| post_json(path, format!("\"{}\"", "x".repeat(length - 2)));
    assert_eq!(code(&app, padded("/wish", 1024 * 1024 + 1)).await, is(413, "http.body_too_large"));
    assert_eq!(code(&app, padded("/wish", 1024 * 1024)).await, is(400, "http.bad_request"));
    for path in ["/api/auth/login", "/api/v1/auth/login"] {
        assert_eq!(code(&app, padded(path, 10_001)).await, is(413, "http.body_too_large"));
        assert_eq!(send(&app, padded(path, 10_000)).await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_cut_off_at_the_limit() {
    let app = app(router());
    let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024]));
    let endless = post_json("/wish", Body::from_stream(chunks));
    assert_eq!(code(&app, endless).await, is(413, "http.body_too_large"));
}

#[tokio::test]
async fn a_malformed_path_or_query_is_400() {
    #[derive(Deserialize)]
    struct Page {
        page: u32,
    }
    let router = Router::new()
        .route("/events/{id}", get(async |Path(id): Path<EventId>| id.to_string()))
        .route("/list", get(async |Query(page): Query<Page>| page.page.to_string()));
    let app = app(router);
    for id in ["42", "0190a1f0-0000-7000-8000-00000000000g", "%ff", "%2e%2e"] {
        assert_eq!(code(&app, get_request(&format!("/events/{id}"))).await, is(400, "http.bad_path"), "{id}");
    }
    for query in ["", "?page=-1", "?page=x", "?page=1&page=2"] {
        assert_eq!(
            code(&app, get_request(&format!("/list{query}"))).await,
            is(400, "http.bad_query"),
            "{query}"
        );
    }
    let good = get_request("/events/0190a1f0-0000-7000-8000-000000000001");
    assert_eq!(send(&app, good).await.0, StatusCode::OK);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let app = app(router());
    for path in ["/", "/nothing", "/wish/", "//wish", "/WISH", "/%77ish"] {
        assert_eq!(code(&app, get_request(path)).await, is(404, "http.not_found"), "{path}");
    }
    assert_eq!(code(&app, get_request("/wish")).await, is(405, "http.method_not_allowed"));
    for method in ["TRACE", "DELETE", "MADEUP"] {
        let request = Request::builder().method(method).uri("/wish").body(Body::empty()).unwrap();
        let (status, headers, _) = send(&app, request).await;
        assert_eq!(
            (status, &headers[header::ALLOW]),
            (StatusCode::METHOD_NOT_ALLOWED, &"POST".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn head_and_options_are_answered_without_a_body() {
    let app = app(Router::new().route("/page", get(async || "four")));
    let ask =
        |method: Method, path: &str| Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let (status, headers, body) = send(&app, ask(Method::HEAD, "/page")).await;
    assert_eq!(
        (status, &headers[header::CONTENT_LENGTH], body),
        (StatusCode::OK, &"4".parse().unwrap(), Value::Null)
    );
    let (status, headers, _) = send(&app, ask(Method::OPTIONS, "/page")).await;
    assert_eq!((status, &headers[header::ALLOW]), (StatusCode::NO_CONTENT, &"GET,HEAD".parse().unwrap()));
    let response = app.clone().oneshot(ask(Method::HEAD, "/none")).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn every_response_has_security_headers_and_handlers_can_override_them() {
    let router = Router::new()
        .route("/json", get(async || Json(1)))
        .route("/page", get(async || ([(header::CONTENT_SECURITY_POLICY, "default-src 'self'")], "page")))
        .route("/panic", get(async || -> Response { panic!("on purpose") }));
    let app = app(router);
    for path in ["/json", "/none", "/panic"] {
        let (_, headers, _) = send(&app, get_request(path)).await;
        assert!(headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("default-src 'none'"));
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
        assert_eq!(headers[header::REFERRER_POLICY], "same-origin");
        assert_eq!(headers[header::CACHE_CONTROL], "no-store");
        assert!(!headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
    }
    let (_, headers, _) = send(&app, get_request("/page")).await;
    assert_eq!(headers[header::CONTENT_SECURITY_POLICY], "default-src 'self'");
}

#[tokio::test]
async fn repeated_header_values_are_all_sent() {
    let cookies =
        [(header::SET_COOKIE, "a=1"), (header::SET_COOKIE, "b=2"), (header::CACHE_CONTROL, "private")];
    let routes = Router::new().route("/cookies", get(async move || AppendHeaders(cookies)));
    let (_, headers, _) = send(&app(routes), get_request("/cookies")).await;
    let all = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(all(header::SET_COOKIE), ["a=1", "b=2"]);
    assert_eq!(all(header::CACHE_CONTROL), ["private"], "the handler's value replaces the default");
    assert_eq!(all(header::X_FRAME_OPTIONS), ["DENY"]);
}

#[tokio::test]
async fn strict_transport_security_is_sent_when_configured() {
    let app = edge(router(), EdgeParts { hsts: true, ..parts(Limits::default()) });
    let (_, headers, _) = send(&app, get_request("/")).await;
    assert!(headers[header::STRICT_TRANSPORT_SECURITY].to_str().unwrap().starts_with("max-age=31536000"));
}

#[tokio::test]
async fn a_valid_request_id_is_kept_and_any_other_replaced() {
    let told = async |request: Request| Json(request_id(request.extensions()).unwrap().to_string());
    let app = app(Router::new().route("/id", get(told)));
    let ask = |id: &[u8]| {
        let mut request = get_request("/id");
        request.headers_mut().insert("x-request-id", http::HeaderValue::from_bytes(id).unwrap());
        request
    };
    let sane = "0190a1f0-0000-7000-8000-000000000001";
    let (_, headers, body) = send(&app, ask(sane.as_bytes())).await;
    assert_eq!((headers["x-request-id"].to_str().unwrap(), body.as_str().unwrap()), (sane, sane));
    let long = "x".repeat(5_000);
    for odd in
        ["", "1", "0190a1f000007000800000000000000001", "{0190a1f0-0000-7000-8000-000000000001}", &long]
    {
        let (_, headers, body) = send(&app, ask(odd.as_bytes())).await;
        let id = headers["x-request-id"].to_str().unwrap();
        assert_eq!((id.len(), id), (36, body.as_str().unwrap()), "{odd}");
    }
    let (_, headers, _) = send(&app, ask(b"\xff\xfe")).await;
    assert_eq!(headers["x-request-id"].len(), 36);
}

#[tokio::test]
async fn a_panic_is_a_500_without_details_and_the_next_request_is_served() {
    let router = Router::new()
        .route("/panic", get(async || -> Response { panic!("secret reason") }))
        .route("/fine", get(async || "fine"));
    let app = edge(router, parts(Limits { max_in_flight: 1, ..Limits::default() }));
    for _ in 0..3 {
        let (status, _, body) = send(&app, get_request("/panic")).await;
        assert_eq!((status.as_u16(), &body["code"]), (500, &json!("http.internal")));
        assert!(!body.to_string().contains("secret"));
    }
    assert_eq!(send(&app, get_request("/fine")).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_504() {
    let app = app(Router::new().route("/slow", get(async || -> Response { std::future::pending().await })));
    assert_eq!(code(&app, get_request("/slow")).await, is(504, "http.timeout"));
}

#[tokio::test(start_paused = true)]
async fn allow_time_extends_the_timeout_of_one_request() {
    let slow = async |request: Request| {
        allow_time(request.extensions(), Duration::from_mins(1));
        let secs = request.uri().query().unwrap().parse().unwrap();
        tokio::time::sleep(Duration::from_secs(secs)).await;
    };
    let app = app(Router::new().route("/slow", get(slow)));
    assert_eq!(send(&app, get_request("/slow?59")).await.0, StatusCode::OK);
    assert_eq!(code(&app, get_request("/slow?61")).await, is(504, "http.timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_408() {
    let app = app(router());
    let body = Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    assert_eq!(code(&app, post_json("/wish", body)).await, is(408, "http.slow_body"));
}

#[tokio::test]
async fn requests_above_the_limit_are_shed_but_probes_are_answered() {
    let gate = Arc::new(Semaphore::new(0));
    let (entered, waiting) = (Arc::new(Semaphore::new(0)), gate.clone());
    let arrived = entered.clone();
    let wait = async move || {
        arrived.add_permits(1);
        waiting.acquire().await.unwrap().forget();
        "done"
    };
    let health = Health::new();
    let router = Router::new().route("/hold", get(wait)).merge(ops_routes(health, Metrics::install()));
    let app = edge(router, parts(Limits { max_in_flight: 2, ..Limits::default() }));

    let mut held = tokio::task::JoinSet::new();
    for _ in 0..2 {
        held.spawn(app.clone().oneshot(get_request("/hold")));
    }
    entered.acquire_many(2).await.unwrap().forget();
    let (status, headers, body) = send(&app, get_request("/hold")).await;
    assert_eq!((status.as_u16(), &body["code"]), (503, &json!("http.overloaded")));
    assert_eq!((&headers[header::RETRY_AFTER], &body["retryAfter"]), (&"1".parse().unwrap(), &json!(1)));
    assert_eq!(send(&app, get_request("/health/live")).await.0, StatusCode::OK);
    assert_eq!(send(&app, get_request("/metrics")).await.0, StatusCode::OK);
    gate.add_permits(3);
    for response in held.join_all().await {
        assert_eq!(response.unwrap().status(), StatusCode::OK);
    }
    assert_eq!(send(&app, get_request("/hold")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_cancelled_request_frees_its_in_flight_slot() {
    let app = edge(
        Router::new()
            .route("/stuck", get(async || -> Response { std::future::pending().await }))
            .route("/fine", get(async || "fine")),
        parts(Limits { max_in_flight: 1, ..Limits::default() }),
    );
    let mut stuck = Box::pin(app.clone().oneshot(get_request("/stuck")));
    assert!(futures_util::poll!(&mut stuck).is_pending());
    assert_eq!(send(&app, get_request("/fine")).await.0, StatusCode::SERVICE_UNAVAILABLE);
    drop(stuck);
    assert_eq!(send(&app, get_request("/fine")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn caller_roles_are_enforced() {
    let router = Router::new()
        .route("/user", get(async |caller: Caller| caller.user().map(|id| id.to_string())))
        .route("/admin", get(async |caller: Caller| caller.admin().map(|_| "welcome")));
    let app = app(router);
    let id: UserId = "0190a1f0-0000-7000-8000-000000000001".parse().unwrap();
    let ask = |path: &str, role: Option<Role>| {
        let mut request = get_request(path);
        if let Some(role) = role {
            request.extensions_mut().insert(Actor::User { id, role });
        }
        request
    };
    assert_eq!(code(&app, ask("/user", None)).await, is(401, "auth.required"));
    assert_eq!(code(&app, ask("/admin", None)).await, is(401, "auth.required"));
    assert_eq!(code(&app, ask("/admin", Some(Role::User))).await, is(403, "auth.admin_required"));
    let unproven = code(&app, ask("/admin", Some(Role::UnprovenAdmin))).await;
    assert_eq!(unproven, is(403, "auth.second_factor_required"));
    assert_eq!(send(&app, ask("/user", Some(Role::UnprovenAdmin))).await.0, StatusCode::OK);
    assert_eq!(send(&app, ask("/user", Some(Role::User))).await.0, StatusCode::OK);
    assert_eq!(send(&app, ask("/admin", Some(Role::Admin))).await.0, StatusCode::OK);
}

#[tokio::test]
async fn problem_fields_and_retry_after_are_sent() {
    let taken = async || {
        Problem::new(StatusCode::CONFLICT, "tickets.seats_taken", "Taken.")
            .field("seats", json!(["A-1"]))
            .retry_after(Duration::from_secs(3))
            .into_response()
    };
    let (status, headers, body) = send(&app(Router::new().route("/", get(taken))), get_request("/")).await;
    assert_eq!((status, &headers[header::RETRY_AFTER]), (StatusCode::CONFLICT, &"3".parse().unwrap()));
    assert_eq!(
        (&body["seats"], &body["requestId"]),
        (&json!(["A-1"]), &json!(headers["x-request-id"].to_str().unwrap()))
    );
}
