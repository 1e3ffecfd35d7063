//! API versions, tokens, internal headers, roles and routing.

use std::time::Duration;

use http::header;
use serde_json::{Value, json};
use urr_gateway::address::{ForwardedHeader, TrustedProxies};
use urr_http::{Access, PUBLIC, Routes};
use urr_kernel::Role;
use urr_passes::access::LIFETIME;

use crate::sample::{self, CATALOG, QUEUE, STATS};
use crate::world::{Options, World, request, user};

/// A path of a route, with values in place of its parameters.
pub(crate) fn spelled(path: &str) -> String {
    path.replace("{*path}", "a/b.css")
        .replace("{id}", "0190a1f0-0000-7000-8000-000000000001")
        .replace(['{', '}'], "")
}

#[tokio::test]
async fn a_versioned_path_is_the_same_route() {
    let world = World::new();
    for path in ["/api/events", "/api/v1/events", "/api/v1/events?x=1"] {
        let (status, body) = world.get(path, &[]).await;
        assert_eq!((status, &body["path"]), (200, &json!("/api/events")), "{path}");
    }
    for path in ["/api/v2/events", "/api/v1/v1/events", "/v1/api/events", "/api/V1/events", "/api/v1events"] {
        let (status, body) = world.get(path, &[]).await;
        assert_eq!((status, &body["code"]), (404, &json!("http.not_found")), "{path}");
    }
}

#[tokio::test]
async fn a_token_in_the_header_or_the_cookie_identifies_the_caller() {
    let world = World::new();
    let (bearer, cookie) =
        (world.bearer(Role::User), format!("theme=dark; access_token={}", world.token(Role::User)));
    for header in [("authorization", bearer.as_str()), ("cookie", cookie.as_str())] {
        let (status, body) = world.get("/api/v1/reservations/my", &[header]).await;
        assert_eq!((status, &body["user"], &body["admin"]), (200, &json!(user()), &json!(false)));
    }
    assert_eq!(world.get("/api/events", &[]).await.1["user"], Value::Null);
}

/// Every route of the table, as an anonymous caller, a user and an admin.
#[tokio::test]
async fn every_route_enforces_its_access_policy() {
    let world = World::new();
    let (user, admin) = (world.bearer(Role::User), world.bearer(Role::Admin));
    let mut seen = [0; 3];
    for (_, route) in sample::all() {
        let ask = async |token: Option<&str>| {
            let headers: Vec<_> = token.map(|token| ("authorization", token)).into_iter().collect();
            // Advance the clock: the account routes alone exceed the limit of their class per
            // minute.
            world.clock.advance(Duration::from_secs(1));
            let (status, body) = world.ask(route.method.as_str(), &spelled(route.path), &headers).await;
            (status, body["code"].as_str().map(str::to_owned))
        };
        let (nobody, somebody) = match route.policy.access {
            Access::Public => ((200, None), (200, None)),
            Access::User => ((401, Some("auth.required")), (200, None)),
            Access::Admin => ((401, Some("auth.required")), (403, Some("auth.admin_required"))),
        };
        let owned = |(status, code): (u16, Option<&str>)| (status, code.map(str::to_owned));
        assert_eq!(ask(None).await, owned(nobody), "{} {}", route.method, route.path);
        assert_eq!(ask(Some(&user)).await, owned(somebody), "{} {}", route.method, route.path);
        assert_eq!(ask(Some(&admin)).await.0, 200, "{} {}", route.method, route.path);
        seen[route.policy.access as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[tokio::test]
async fn missing_expired_and_invalid_tokens_have_different_errors() {
    let world = World::new();
    let bearer = world.bearer(Role::Admin);
    let forged = format!("{bearer}x");
    let code = async |headers: &[(&str, &str)]| {
        let (status, body) = world.get("/api/reservations/my", headers).await;
        assert!(status == 200 || body["requestId"].is_string());
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    };
    let expect = |status, code: &str| (status, code.to_owned());
    assert_eq!(code(&[]).await, expect(401, "auth.required"));
    assert_eq!(code(&[("authorization", &forged)]).await, expect(401, "auth.token_invalid"));
    assert_eq!(code(&[("authorization", "Bearer ")]).await, expect(401, "auth.token_invalid"));
    world.clock.advance(LIFETIME.saturating_sub(Duration::from_secs(1)));
    assert_eq!(code(&[("authorization", &bearer)]).await, expect(200, ""));
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(code(&[("authorization", &bearer)]).await, expect(401, "auth.token_expired"));
}

#[tokio::test]
async fn an_invalid_token_is_rejected_on_api_routes_and_ignored_on_pages_and_sign_in() {
    let world = World::new();
    let (old, said) = ([("cookie", "access_token=old")], [("authorization", "Bearer old")]);
    for path in ["/api/events", "/api/openapi.json", "/api/auth/me", "/api/admin/seat-layouts"] {
        assert_eq!(world.get(path, &said).await.1["code"], "auth.token_invalid", "{path}");
    }
    for path in ["/api/auth/me", "/api/admin/seat-layouts"] {
        assert_eq!(world.get(path, &old).await.1["code"], "auth.token_invalid", "{path}");
    }
    let (status, body) = world.get("/api/events", &old).await;
    assert_eq!((status, &body["user"]), (200, &Value::Null), "a browser sends its cookie automatically");
    let both = [old[0], said[0]];
    assert_eq!(world.get("/api/events", &both).await.1["code"], "auth.token_invalid");
    let (status, body) = world.get("/", &old).await;
    assert_eq!((status, &body["user"]), (200, &Value::Null), "pages are public");
    for path in ["/api/auth/login", "/api/v1/auth/refresh", "/api/auth/logout"] {
        let same_origin = [old[0], ("sec-fetch-site", "same-origin")];
        let (status, body) = world.ask("POST", path, &same_origin).await;
        assert_eq!((status, &body["user"]), (200, &Value::Null), "{path}");
    }
}

#[tokio::test]
async fn internal_headers_are_stripped() {
    let world = World::new();
    let forged = [
        ("X-User-Id", "1"),
        ("x-user-role", "admin"),
        ("X-USER-EMAIL", "a@b"),
        ("x-queue-position", "1"),
        ("X-Urr-Actor", "{\"kind\":\"system\"}"),
        ("x-urr-budget-ms", "1"),
        ("x-internal-token", "1"),
        ("x-queue-entry-token", "kept: it is signed"),
        ("x-userland", "stays"),
    ];
    let (_, body) = world.get("/api/events", &forged).await;
    assert_eq!((&body["user"], &body["admin"]), (&Value::Null, &json!(false)));
    assert_eq!(body["headers"], json!(["x-queue-entry-token", "x-userland"]));
}

#[tokio::test]
async fn routes_of_absent_roles_are_404_with_an_error_code() {
    let world = World::with(Options { missing: vec![&STATS, &QUEUE], ..Options::default() });
    let admin = world.bearer(Role::Admin);
    for (path, service) in [("/api/v1/stats/overview", "stats"), ("/api/queue/status/1", "queue")] {
        let (status, body) = world.get(path, &[("authorization", &admin)]).await;
        assert_eq!((status, &body["code"]), (404, &json!("gateway.no_such_service")));
        assert_eq!(body["service"], service);
        assert_eq!(world.get(path, &[]).await.0, 401, "guards run first: {path}");
    }
    let (status, body) = world.get("/api/bogus/x", &[]).await;
    assert_eq!((status, &body["code"]), (404, &json!("http.not_found")));
}

#[tokio::test]
async fn internal_paths_are_not_routed() {
    let world = World::new();
    let admin = world.bearer(Role::Admin);
    for path in ["/internal", "/internal/tickets/hold", "/api/internal/tickets/hold", "/internal/roles"] {
        for method in ["GET", "POST"] {
            let (status, body) = world.ask(method, path, &[("authorization", &admin)]).await;
            assert_eq!((status, &body["code"]), (404, &json!("http.not_found")), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn other_methods_are_405_and_options_lists_the_allowed_ones() {
    let world = World::new();
    let (status, headers, body) = world.send(request("DELETE", "/api/v1/transfers", &[])).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &body["code"]), (405, &json!("http.method_not_allowed")));
    assert_eq!(headers[header::ALLOW], "POST,GET,HEAD");
    for method in ["TRACE", "PURGE", "get"] {
        assert_eq!(world.ask(method, "/api/events", &[]).await.0, 405, "{method}");
    }
    let (status, headers, _) = world.send(request("OPTIONS", "/api/events", &[])).await;
    assert_eq!((status, headers[header::ALLOW].to_str().unwrap()), (204, "GET,HEAD"));
    assert_eq!(world.ask("HEAD", "/api/events", &[]).await.0, 200);
}

#[tokio::test]
#[should_panic(expected = "/api/time is declared by catalog and by tickets")]
async fn a_route_declared_by_two_roles_panics_at_start() {
    let routes = Routes::new().get("/api/time", PUBLIC, async || "");
    World::with(Options { local: vec![(&CATALOG, routes)], ..Options::default() });
}

#[tokio::test]
async fn a_path_that_no_role_declares_is_not_found() {
    let routes = Routes::new().get("/api/events", PUBLIC, async || "events");
    let world = World::with(Options { local: vec![(&CATALOG, routes)], ..Options::default() });
    assert_eq!(world.get("/api/events", &[]).await.0, 200);
    assert_eq!(world.get("/api/artists", &[]).await.1["code"], "http.not_found");
}

#[tokio::test]
async fn the_client_address_comes_from_trusted_proxies() {
    let addresses = vec!["198.51.100.0/24".parse().unwrap()];
    let proxies = TrustedProxies { addresses, header: ForwardedHeader::XForwardedFor };
    let behind = World::with(Options { proxies, ..Options::default() });
    let open = World::new();
    let said = [("x-forwarded-for", "1.1.1.1, 203.0.113.9")];
    assert_eq!(behind.get("/api/events", &said).await.1["client"], "203.0.113.9");
    assert_eq!(open.get("/api/events", &said).await.1["client"], "198.51.100.1");
}

#[tokio::test]
async fn a_request_with_two_hosts_is_rejected() {
    let (status, body) =
        World::new().get("/api/events", &[("host", "a.example"), ("host", "b.example")]).await;
    assert_eq!((status, &body["code"]), (400, &json!("gateway.bad_host")));
}

#[tokio::test]
async fn an_invalid_host_is_rejected() {
    let world = World::new();
    for host in ["urr.example", "urr.example:3001", "10.0.0.7:3001", "[::1]:3001", "localhost", "my_host"] {
        assert_eq!(world.get("/api/events", &[("host", host)]).await.0, 200, "{host}");
    }
    for host in ["", "a/b?c", "a/b", "a?b", "a#b", "user@a", "a b", ":3001", "http://a"] {
        let (status, body) = world.get("/api/events", &[("host", host)]).await;
        assert_eq!((status, &body["code"]), (400, &json!("gateway.bad_host")), "{host:?}");
    }
}

#[tokio::test]
async fn cross_site_requests_cannot_change_state() {
    let world = World::with(Options { origins: vec!["https://partner.example"], ..Options::default() });
    let cookie = format!("access_token={}", world.token(Role::User));
    let post = async |origin: &str| {
        let headers = [("cookie", cookie.as_str()), ("host", "urr.example"), ("origin", origin)];
        world.ask("POST", "/api/seats/reserve", &headers).await
    };
    assert_eq!(post("https://urr.example").await.0, 200);
    assert_eq!(post("https://partner.example").await.0, 200);
    let (status, body) = post("https://evil.example").await;
    assert_eq!((status, &body["code"]), (403, &json!("gateway.cross_origin")));
}

#[tokio::test]
async fn metrics_are_labelled_by_route() {
    let metrics = urr_telemetry::Metrics::install();
    let world = World::new();
    world.get("/api/v1/stats/events/7", &[]).await;
    let text = metrics.render();
    let line = r#"urr_http_requests_total{route="/api/stats/events/{id}",method="GET",status="401"}"#;
    assert!(text.contains(line), "{text}");
}
