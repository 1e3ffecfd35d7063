//! Rate limits by route class and client.

use serde_json::{Value, json};
use urr_gateway::limit::{Limiter, RateLimits};
use urr_kernel::{Clock, Role, UserId};
use urr_kv::{Kv, KvConfig};
use urr_testkit::{Proxy, services, until, within};
use uuid::Uuid;

use crate::world::{Options, PATIENCE, World, request, session};

fn strict() -> RateLimits {
    RateLimits { auth: 3, queue: 4, booking: 2, payments: 1, general: 5, ..RateLimits::default() }
}

/// Returns how many of ten requests are admitted.
async fn passes(world: &World, method: &str, path: &str, headers: &[(&str, &str)]) -> usize {
    let mut passed = 0;
    for _ in 0..10 {
        passed += usize::from(world.ask(method, path, headers).await.0 != 429);
    }
    passed
}

#[tokio::test]
async fn each_class_has_its_limit_and_exempt_routes_have_none() {
    let world = World::with(Options { rates: strict(), ..Options::default() });
    let bearer = world.bearer(Role::User);
    let user = [("authorization", bearer.as_str())];
    assert_eq!(passes(&world, "POST", "/api/auth/login", &user).await, 3);
    assert_eq!(passes(&world, "POST", "/api/v1/auth/register", &user).await, 0, "the same class");
    assert_eq!(passes(&world, "GET", "/api/queue/status/1", &user).await, 4);
    assert_eq!(passes(&world, "POST", "/api/seats/reserve", &user).await, 2);
    assert_eq!(passes(&world, "POST", "/api/payments/confirm", &user).await, 1);
    assert_eq!(passes(&world, "GET", "/api/auth/me", &user).await, 5);
    assert_eq!(passes(&world, "GET", "/api/events", &user).await, 0, "the same class");
    assert_eq!(passes(&world, "GET", "/static/app.css", &user).await, 10);
}

#[tokio::test]
async fn a_429_has_retry_after_and_the_retry_is_admitted() {
    let world = World::with(Options { rates: strict(), ..Options::default() });
    assert_eq!(passes(&world, "GET", "/api/events", &[]).await, 5);
    let (status, headers, body) = world.send(request("GET", "/api/events", &[])).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &body["code"], &body["limit"]), (429, &json!("limit.exceeded"), &json!("general")));
    assert_eq!((headers["retry-after"].to_str().unwrap(), &body["retryAfter"]), ("60", &json!(60)));
    world.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(world.get("/api/events", &[]).await.0, 200);
}

#[tokio::test]
async fn users_are_counted_by_id_and_anonymous_clients_by_address() {
    let world = World::with(Options { rates: strict(), ..Options::default() });
    let other = world.token_of(UserId::from_uuid(Uuid::from_u128(9)), Role::User, session());
    let (one, other) = (world.bearer(Role::User), format!("Bearer {other}"));
    assert_eq!(passes(&world, "GET", "/api/events", &[("authorization", &one)]).await, 5);
    assert_eq!(passes(&world, "GET", "/api/events", &[("authorization", &other)]).await, 5);
    assert_eq!(passes(&world, "GET", "/api/events", &[]).await, 5);
    // No header of an untrusted client changes its identity.
    for header in ["x-forwarded-for", "forwarded", "x-real-ip", "cf-connecting-ip", "true-client-ip"] {
        assert_eq!(passes(&world, "GET", "/api/events", &[(header, "1.2.3.4")]).await, 0, "{header}");
    }
}

#[tokio::test]
async fn sign_in_and_sign_up_are_counted_by_address_despite_a_token() {
    let world = World::with(Options { rates: strict(), ..Options::default() });
    let other = world.token_of(UserId::from_uuid(Uuid::from_u128(9)), Role::User, session());
    let (one, other) = (world.bearer(Role::User), format!("Bearer {other}"));
    assert_eq!(passes(&world, "POST", "/api/auth/login", &[]).await, 3);
    for path in ["/api/auth/login", "/api/auth/register", "/api/auth/password/forgot"] {
        for token in [&one, &other] {
            assert_eq!(passes(&world, "POST", path, &[("authorization", token)]).await, 0, "{path}");
        }
    }
    // Routes for users only are counted per user.
    assert_eq!(passes(&world, "GET", "/api/auth/sessions", &[("authorization", &one)]).await, 3);
    assert_eq!(passes(&world, "GET", "/api/auth/sessions", &[("authorization", &other)]).await, 3);
}

#[tokio::test]
async fn unknown_routes_are_counted_too() {
    let world = World::with(Options { rates: strict(), ..Options::default() });
    assert_eq!(passes(&world, "GET", "/api/bogus", &[]).await, 5);
    let world = World::with(Options { rates: strict(), ..Options::default() });
    assert_eq!(passes(&world, "DELETE", "/api/events", &[]).await, 5);
    let world = World::with(Options { rates: strict(), ..Options::default() });
    let forged = [("authorization", "Bearer forged")];
    assert_eq!(passes(&world, "GET", "/api/events", &forged).await, 5, "guessing tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_reads_continue_and_sign_in_payments_and_admin_are_rejected() {
    let Some(url) = services::redis() else { return };
    within(PATIENCE, async {
        let mut proxy = Proxy::start(url.trim_start_matches("redis://")).await;
        let clock = Clock::system();
        let config = KvConfig::single(format!("redis://{}", proxy.address()));
        let config = KvConfig { deadline: std::time::Duration::from_secs(5), ..config };
        let kv = Kv::connect(&config, clock.clone()).unwrap();
        let limiter = Some(Limiter::redis(kv, RateLimits::default(), clock.clone()));
        let world = World::with(Options { clock, limiter, ..Options::default() });
        let bearer = world.bearer(Role::Admin);
        let admin = [("authorization", bearer.as_str())];
        let critical = [
            ("POST", "/api/auth/login"),
            ("POST", "/api/payments/confirm"),
            ("GET", "/api/admin/seat-layouts"),
        ];
        for (method, path) in critical {
            assert_eq!(world.ask(method, path, &admin).await.0, 200, "{path}");
        }
        proxy.cut().await;
        for (method, path) in critical {
            let (status, body) = world.ask(method, path, &admin).await;
            assert_eq!((status, &body["code"]), (503, &json!("limit.unavailable")), "{path}");
            assert!(body["retryAfter"].is_u64());
        }
        for (method, path) in [
            ("GET", "/api/events"),
            ("POST", "/api/seats/reserve"),
            ("POST", "/api/auth/logout"),
            ("POST", "/api/auth/refresh"),
        ] {
            assert_eq!(world.ask(method, path, &admin).await.0, 200, "{path}");
        }
        proxy.restore().await;
        until(PATIENCE, async || world.ask("POST", "/api/payments/confirm", &admin).await.0 == 200).await;
    })
    .await;
}
