//! The front door, seen from outside: behind the edge, in front of a router.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::Request,
    routing::{get, post},
};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use urr_gateway::{GatewayParts, layers};
use urr_http::{AccessLog, Caller, EdgeParts, Json, Limits, edge, ops_routes};
use urr_kernel::{Clock, Ids, Role, Timestamp, UserId};
use urr_passes::{
    Secret,
    access::{self, Access, LIFETIME, Signer, Verifier},
};
use uuid::Uuid;

struct Door {
    app: Router,
    clock: Clock,
    secret: Secret,
}

fn door() -> Door {
    let clock = Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000));
    let secret = Secret::new("correct horse battery staple, twice").unwrap();
    let who = async |caller: Caller, headers: HeaderMap| {
        let mut names: Vec<_> = headers.keys().map(ToString::to_string).collect();
        names.sort();
        Json(json!({"user": caller.0.user(), "admin": caller.0.is_admin(), "headers": names}))
    };
    let router = Router::new()
        .route("/api/who", get(who))
        .route("/api/me", get(async |caller: Caller| caller.user().map(|id| id.to_string())))
        .route("/api/admin/who", get(async |caller: Caller| caller.admin().map(|_| "admin")))
        .route("/api/auth/login", post(who))
        .route("/page", get(who));
    let parts = GatewayParts { access: Verifier::new([access::key(&secret)]), clock: clock.clone() };
    let edge_parts = EdgeParts {
        limits: Limits::default(),
        ids: Ids::seeded(clock.clone(), 7),
        clock: clock.clone(),
        access_log: AccessLog { sample: 0 },
        health: urr_telemetry::Health::new(),
        hsts: false,
    };
    let ops = ops_routes(edge_parts.health.clone(), urr_telemetry::Metrics::install());
    Door { app: edge(layers(router.merge(ops), parts), edge_parts), clock, secret }
}

impl Door {
    fn token(&self, role: Role) -> String {
        let access = Access { user: user(), role, email: None, session: Uuid::from_u128(2) };
        Signer::new(access::key(&self.secret), LIFETIME).sign(&access, Uuid::from_u128(3), self.clock.now())
    }

    async fn ask(&self, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    async fn send(&self, request: Request) -> (u16, Value) {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

fn user() -> UserId {
    UserId::from_uuid(Uuid::from_u128(1))
}

#[tokio::test]
async fn a_versioned_path_is_the_same_route() {
    let door = door();
    for path in ["/api/who", "/api/v1/who", "/api/v1/who?x=1"] {
        assert_eq!(door.ask(path, &[]).await.0, 200, "{path}");
    }
    for path in ["/api/v2/who", "/api/v1/v1/who", "/v1/api/who", "/api/V1/who", "/api/v1who", "/api/v1//who"]
    {
        let (status, body) = door.ask(path, &[]).await;
        assert_eq!((status, &body["code"]), (404, &json!("http.not_found")), "{path}");
    }
}

#[tokio::test]
async fn a_token_in_the_header_or_the_cookie_says_who_asks() {
    let door = door();
    let token = door.token(Role::User);
    let (bearer, cookie) = (format!("Bearer {token}"), format!("theme=dark; access_token={token}"));
    for header in [("authorization", bearer.as_str()), ("cookie", cookie.as_str())] {
        let (status, body) = door.ask("/api/v1/who", &[header]).await;
        assert_eq!((status, &body["user"], &body["admin"]), (200, &json!(user()), &json!(false)));
        assert_eq!(door.ask("/api/admin/who", &[header]).await.1["code"], "auth.admin_required");
    }
    let admin = format!("Bearer {}", door.token(Role::Admin));
    assert_eq!(door.ask("/api/v1/admin/who", &[("authorization", &admin)]).await.0, 200);
}

#[tokio::test]
async fn without_a_token_the_caller_is_nobody() {
    let door = door();
    assert_eq!(door.ask("/api/who", &[]).await.1["user"], Value::Null);
    let (status, body) = door.ask("/api/me", &[]).await;
    assert_eq!((status, &body["code"]), (401, &json!("auth.required")));
}

#[tokio::test]
async fn an_expired_token_and_an_invalid_one_are_told_apart() {
    let door = door();
    let token = door.token(Role::Admin);
    let bearer = format!("Bearer {token}");
    let forged = format!("Bearer {token}x");
    for (header, code) in [(&forged, "auth.token_invalid"), (&"Bearer ".to_owned(), "auth.token_invalid")] {
        let (status, body) = door.ask("/api/who", &[("authorization", header)]).await;
        assert_eq!((status, &body["code"]), (401, &json!(code)), "{header}");
        assert!(body["requestId"].is_string());
    }
    door.clock.advance(LIFETIME.saturating_sub(Duration::from_secs(1)));
    assert_eq!(door.ask("/api/who", &[("authorization", &bearer)]).await.0, 200);
    door.clock.advance(Duration::from_secs(1));
    let (status, body) = door.ask("/api/who", &[("authorization", &bearer)]).await;
    assert_eq!((status, &body["code"]), (401, &json!("auth.token_expired")));
}

#[tokio::test]
async fn a_bad_token_keeps_nobody_from_pages_or_from_signing_in() {
    let door = door();
    let (status, body) = door.ask("/page", &[("cookie", "access_token=old")]).await;
    assert_eq!((status, &body["user"]), (200, &Value::Null));
    for path in ["/api/auth/login", "/api/v1/auth/login"] {
        let request =
            Request::post(path).header(header::COOKIE, "access_token=old").body(Body::empty()).unwrap();
        let (status, body) = door.send(request).await;
        assert_eq!((status, &body["user"]), (200, &Value::Null));
    }
}

#[tokio::test]
async fn headers_that_only_we_may_set_do_not_come_in() {
    let door = door();
    let forged = [
        ("X-User-Id", "1"),
        ("x-user-role", "admin"),
        ("X-USER-EMAIL", "a@b"),
        ("x-queue-position", "1"),
        ("X-Urr-Actor", "{\"kind\":\"system\"}"),
        ("x-urr-budget-ms", "1"),
        ("x-userland", "stays"),
        ("x-forwarded-for", "stays"),
    ];
    let (_, body) = door.ask("/api/who", &forged).await;
    assert_eq!((&body["user"], &body["admin"]), (&Value::Null, &json!(false)));
    assert_eq!(body["headers"], json!(["x-forwarded-for", "x-userland"]));
}

#[tokio::test]
async fn a_path_in_disguise_reaches_no_guarded_route() {
    let door = door();
    let user = format!("Bearer {}", door.token(Role::User));
    let disguises = [
        "/api/admin/who/",
        "//api/admin/who",
        "/api//admin/who",
        "/api/./admin/who",
        "/api/auth/../admin/who",
        "/api/%61dmin/who",
        "/api/admin%2fwho",
        "/api/ADMIN/who",
        "/api/admin/who;x=1",
        "/api/admin/who.",
        "/api/v1/../admin/who",
        "/api/v1/%2e%2e/admin/who",
        "/api/auth/%2e%2e/admin/who",
        "/api/admin/who%00",
        "/api/v1;x/admin/who",
        "/x/../api/admin/who",
    ];
    for path in disguises {
        for headers in [&[][..], &[("authorization", user.as_str())][..]] {
            let (status, body) = door.ask(path, headers).await;
            assert_eq!((status, &body["code"]), (404, &json!("http.not_found")), "{path}");
        }
    }
    for path in [
        "/api/admin/who",
        "/api/v1/admin/who",
        "http://evil.example/api/admin/who",
        "/api/admin/who?/api/auth/",
    ] {
        assert_eq!(door.ask(path, &[("authorization", &user)]).await.0, 403, "{path}");
        let method_override = [("authorization", user.as_str()), ("x-http-method-override", "DELETE")];
        assert_eq!(door.ask(path, &method_override).await.0, 403, "{path}");
    }
}

#[tokio::test]
async fn routes_behind_the_gateway_are_counted_under_their_names() {
    let door = door();
    door.ask("/api/v1/who", &[]).await;
    let response =
        door.app.clone().oneshot(Request::get("/metrics").body(Body::empty()).unwrap()).await.unwrap();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&text).unwrap();
    assert!(
        text.contains(r#"urr_http_requests_total{route="/api/who",method="GET",status="200"}"#),
        "{text}"
    );
}
