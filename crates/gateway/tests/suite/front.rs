//! CORS headers and compression, on every response.

use std::io::Read as _;

use axum::response::IntoResponse as _;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, header};
use urr_gateway::limit::RateLimits;
use urr_http::{Limits, PUBLIC, Routes};
use urr_kernel::Role;
use urr_telemetry::Metrics;

use crate::sample::{STATS, TICKETS, policy};
use crate::world::{Options, World, request};

const PARTNER: &str = "https://partner.example";

fn world(options: Options) -> World {
    World::with(Options { origins: vec![PARTNER, "http://localhost:3000"], ..options })
}

fn is_permitted(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap());
    let permitted = value(header::ACCESS_CONTROL_ALLOW_ORIGIN) == Some(PARTNER)
        && value(header::ACCESS_CONTROL_ALLOW_CREDENTIALS) == Some("true")
        && ["retry-after", "etag", "x-request-id"]
            .iter()
            .all(|name| value(header::ACCESS_CONTROL_EXPOSE_HEADERS).is_some_and(|list| list.contains(name)));
    assert!(
        headers.get_all(header::VARY).iter().any(|vary| vary == "origin"),
        "caches must see `Vary: origin`"
    );
    assert!(permitted || !headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    permitted
}

#[tokio::test]
async fn every_response_has_cors_headers_for_a_configured_origin() {
    let rates = RateLimits { booking: 0, ..RateLimits::default() };
    let limits = Limits { body_bytes: 10, max_in_flight: 10_000, ..Limits::default() };
    let panics = Routes::new()
        .get("/api/time", PUBLIC, async || -> () { panic!("on purpose") })
        .get("/api/reservations/my", policy("GET", "/api/reservations/my"), async || "")
        .post("/api/seats/reserve", policy("POST", "/api/seats/reserve"), async || "");
    let world = world(Options {
        rates,
        limits,
        missing: vec![&STATS],
        local: vec![(&TICKETS, panics)],
        ..Options::default()
    });
    let bearer = world.bearer(Role::User);
    let origin = ("origin", PARTNER);
    let token = ("authorization", bearer.as_str());
    for (status, method, path, more) in [
        (200, "GET", "/api/events", &[][..]),
        (401, "GET", "/api/reservations/my", &[]),
        (403, "GET", "/api/admin/seat-layouts", &[token]),
        (404, "GET", "/api/bogus", &[]),
        (405, "DELETE", "/api/events", &[]),
        (429, "POST", "/api/seats/reserve", &[token]),
        (500, "GET", "/api/time", &[]),
    ] {
        let headers = [&[origin][..], more].concat();
        let (answered, headers, _) = world.send(request(method, path, &headers)).await;
        assert_eq!(answered, status, "{path}");
        assert!(is_permitted(&headers), "{status} {path}: {headers:?}");
    }
    let mut too_large = request("POST", "/api/auth/login", &[origin]);
    *too_large.body_mut() = axum::body::Body::from("x".repeat(20_000));
    let (status, headers, _) = world.send(too_large).await;
    assert_eq!(status, 413);
    assert!(is_permitted(&headers), "a response of the edge");
}

#[tokio::test]
async fn a_503_under_overload_has_cors_headers_too() {
    let world =
        world(Options { limits: Limits { max_in_flight: 0, ..Limits::default() }, ..Options::default() });
    let (status, headers, _) = world.send(request("GET", "/api/events", &[("origin", PARTNER)])).await;
    assert_eq!(status, 503);
    assert!(is_permitted(&headers));
}

#[tokio::test]
async fn other_origins_get_no_cors_headers() {
    let configured = world(Options::default());
    for origin in
        ["https://evil.example", "null", "https://partner.example.evil.example", "http://partner.example"]
    {
        let (_, headers, _) = configured.send(request("GET", "/api/events", &[("origin", origin)])).await;
        assert!(!is_permitted(&headers), "{origin}");
        let preflight = [("origin", origin), ("access-control-request-method", "POST")];
        let (_, headers, _) = configured.send(request("OPTIONS", "/api/events", &preflight)).await;
        assert!(!is_permitted(&headers), "{origin}");
        assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_METHODS));
    }
    let (_, headers, _) = World::new().send(request("GET", "/api/events", &[("origin", PARTNER)])).await;
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "no origin is configured");
    assert!(!headers.contains_key(header::VARY));
}

#[tokio::test]
async fn a_preflight_lists_the_allowed_methods_and_headers() {
    let metrics = Metrics::install();
    let world = world(Options::default());
    let preflight = [
        ("origin", PARTNER),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "content-type, x-queue-entry-token"),
    ];
    let (status, headers, body) = world.send(request("OPTIONS", "/api/v1/admin/events/1", &preflight)).await;
    assert_eq!((status, body.len()), (204, 0));
    assert!(is_permitted(&headers));
    assert_eq!(headers["x-request-id"].len(), 36, "preflights have a request id too");
    let line = r#"urr_http_requests_total{route="(preflight)",method="OPTIONS",status="204"}"#;
    assert!(metrics.render().contains(line), "preflights are counted too");
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        assert!(headers[header::ACCESS_CONTROL_ALLOW_METHODS].to_str().unwrap().contains(method));
    }
    for name in ["authorization", "content-type", "x-queue-entry-token", "idempotency-key"] {
        assert!(headers[header::ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().contains(name), "{name}");
    }
    assert_eq!(headers[header::ACCESS_CONTROL_MAX_AGE], "3600");
}

/// A proxy sends the method and origin of a request to another site; neither may be rejected here.
#[tokio::test]
async fn any_method_routes_skip_preflight_and_origin_checks() {
    let world =
        world(Options { rates: RateLimits { general: 0, ..RateLimits::default() }, ..Options::default() });
    let cookie = ("cookie", "access_token=not-one-of-ours; session=theirs");
    for (method, lines) in [
        ("GET", vec![]),
        ("HEAD", vec![]),
        ("POST", vec![("origin", "https://bank.example")]),
        ("POST", vec![("authorization", "Bearer of-their-own"), ("sec-fetch-site", "cross-site")]),
        ("DELETE", vec![]),
        ("OPTIONS", vec![("origin", PARTNER), ("access-control-request-method", "POST")]),
        ("OPTIONS", vec![("origin", "https://else.example"), ("access-control-request-method", "POST")]),
        ("TRACE", vec![]),
        ("PROPFIND", vec![("origin", "https://else.example")]),
    ] {
        let lines: Vec<_> = lines.into_iter().chain([cookie]).collect();
        let (status, headers, body) = world.send(request(method, "/edge/check?event=1&to=/x", &lines)).await;
        assert_eq!(status, 200, "{method} {lines:?}");
        assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_METHODS), "{method} {lines:?}");
        let asked: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        assert!(method == "HEAD" || asked["method"] == method, "{method} {lines:?}: {asked}");
    }
    let elsewhere = [cookie, ("origin", "https://bank.example")];
    let (status, ..) = world.send(request("POST", "/vwr/assign/1", &elsewhere)).await;
    assert_eq!(status, 403, "all other routes check the origin");
}

/// A large response with an `ETag`.
fn map() -> Routes {
    Routes::new().get("/api/time", PUBLIC, async |headers: HeaderMap| {
        if headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag == "\"7\"") {
            return (http::StatusCode::NOT_MODIFIED, [(header::ETAG, "\"7\"")]).into_response();
        }
        let kind = (header::CONTENT_TYPE, "application/json");
        ([kind, (header::ETAG, "\"7\"")], "seats ".repeat(1_000)).into_response()
    })
}

#[tokio::test]
async fn a_large_response_is_compressed_and_its_etag_still_matches() {
    let world = world(Options { local: vec![(&TICKETS, map())], ..Options::default() });
    let gzip = ("accept-encoding", "gzip, br");
    let (status, headers, body) = world.send(request("GET", "/api/time", &[gzip])).await;
    assert_eq!((status, headers[header::CONTENT_ENCODING].to_str().unwrap()), (200, "gzip"));
    let mut plain = String::new();
    GzDecoder::new(&*body).read_to_string(&mut plain).unwrap();
    assert_eq!(plain, "seats ".repeat(1_000));
    let tag = headers[header::ETAG].to_str().unwrap();
    assert_eq!(tag, "W/\"7\"");
    let (status, _, body) = world.send(request("GET", "/api/time", &[gzip, ("if-none-match", tag)])).await;
    assert_eq!((status, body.len()), (304, 0));

    let (_, headers, body) = world.send(request("GET", "/api/time", &[])).await;
    assert!(!headers.contains_key(header::CONTENT_ENCODING));
    assert_eq!((body.len(), headers[header::ETAG].to_str().unwrap()), (6_000, "\"7\""));
    assert!(headers.get_all(header::VARY).iter().any(|vary| vary == "accept-encoding"));
}
