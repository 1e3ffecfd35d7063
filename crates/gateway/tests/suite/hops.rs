//! A gateway behind a gateway: the signed hop header is trusted, anything else is not.

use serde_json::json;
use urr_gateway::{address::TrustedProxies, limit::RateLimits};
use urr_kernel::Role;
use urr_passes::hop::LIFETIME;
use urr_testkit::within;

use crate::sample::{AUTH, CATALOG};
use crate::world::{Options, PATIENCE, World};

/// A gateway with a limit of two requests per minute.
fn inner() -> World {
    let rates = RateLimits { general: 2, ..RateLimits::default() };
    World::with(Options { rates, ..Options::default() })
}

#[tokio::test]
async fn a_forwarded_request_keeps_its_client_and_is_counted_once() {
    within(PATIENCE, async {
        let inner = inner().serve().await;
        let proxies =
            TrustedProxies { addresses: vec!["198.51.100.1".parse().unwrap()], ..TrustedProxies::default() };
        let remote = vec![(&CATALOG, vec![inner.address])];
        let outer = World::with(Options { proxies, remote, ..Options::default() });
        for _ in 0..5 {
            let (status, body) = outer.get("/api/events", &[("x-forwarded-for", "203.0.113.7")]).await;
            assert_eq!((status, &body["client"]), (200, &json!("203.0.113.7")), "{body}");
            let headers = body["headers"].as_array().unwrap();
            assert!(
                !headers.contains(&json!("x-urr-hop")),
                "the hop header must not reach the service: {body}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_forged_hop_header_is_ignored() {
    let inner = inner();
    let good = inner.mark("203.0.113.7");
    let forged = good.replace("203.0.113.7", "203.0.113.8");
    let strange = World::with(Options::default()).bearer(Role::User);
    for mark in [forged.as_str(), "", "hop;1700000000;203.0.113.7;AAAA", &strange] {
        let (status, body) = inner.get("/api/time", &[("x-urr-hop", mark)]).await;
        assert!(status == 429 || body["client"] == "198.51.100.1", "{mark}: {body}");
    }
    assert_eq!(inner.get("/api/time", &[]).await.0, 429, "every forged request was counted");
    let peer = "198.51.100.1".parse().unwrap();
    assert!(!inner.gateways.contains(peer), "a forged signature makes no gateway");
    let (status, body) = inner.get("/api/time", &[("x-urr-hop", &good)]).await;
    assert_eq!((status, &body["client"]), (200, &json!("203.0.113.7")));
    assert!(inner.gateways.contains(peer), "its connections are not limited per address");
    inner.clock.advance(LIFETIME * 3);
    let (status, body) = inner.get("/api/time", &[("x-urr-hop", &good)]).await;
    assert_eq!(
        (status, &body["code"]),
        (503, &json!("gateway.clocks_differ")),
        "an expired signature is rejected"
    );
}

/// Only the gateway in front has configured origins. Those behind trust its check, and no other
/// claim.
#[tokio::test]
async fn only_the_front_gateway_needs_the_configured_origins() {
    within(PATIENCE, async {
        let inner = World::new();
        let served = inner.serve().await;
        let remote = vec![(&AUTH, vec![served.address])];
        let origins = vec!["https://shop.example"];
        let outer = World::with(Options { origins, remote, ..Options::default() });
        let cookie = format!("access_token={}", outer.token(Role::User));
        let said = |origin| [("cookie", cookie.as_str()), ("host", "urr.example"), ("origin", origin)];
        for (method, path) in [("POST", "/api/auth/login"), ("PATCH", "/api/auth/me")] {
            let (status, body) = outer.ask(method, path, &said("https://shop.example")).await;
            assert_eq!(status, 200, "{path}: {body}");
            let (status, body) = outer.ask(method, path, &said("https://evil.example")).await;
            assert_eq!((status, &body["code"]), (403, &json!("gateway.cross_origin")), "{path}");
            let (status, body) = inner.ask(method, path, &said("https://shop.example")).await;
            assert_eq!(
                (status, &body["code"]),
                (403, &json!("gateway.cross_origin")),
                "bypassing the gateway: {path}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_hop_header_grants_no_access() {
    let inner = inner();
    let mark = inner.mark("203.0.113.7");
    let mark = ("x-urr-hop", mark.as_str());
    assert_eq!(inner.get("/api/reservations/my", &[mark]).await.0, 401);
    let user = inner.bearer(Role::User);
    assert_eq!(inner.get("/api/admin/seat-layouts", &[mark, ("authorization", &user)]).await.0, 403);
}
