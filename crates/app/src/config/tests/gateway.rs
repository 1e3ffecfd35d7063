//! Settings of the gateway and its guards.

use super::{ConfigInput, SECRET};
use crate::{
    domains::{auth, queue, tickets},
    roles::Role,
};

#[test]
fn a_gateway_without_a_domain_has_nothing_to_serve() {
    let problem = ConfigInput::new().env("URR_ROLES", "gateway").problem();
    assert!(
        problem.starts_with("URR_ROLES: ")
            && problem.contains("add auth, catalog, ")
            && problem.contains(" or vwr here or there"),
        "{problem}"
    );
    let given = ConfigInput::new()
        .env("URR_ROLES", "gateway")
        .env("URR_UPSTREAM_TICKETS", "http://a:3001,http://b:3001/")
        .env("URR_REMOTE_AUTH", "http://a:3002");
    let config = given.config();
    assert_eq!(config.passes_on().collect::<Vec<_>>(), [Role::of(&tickets::ROLE)]);
    assert_eq!(config.needs_remote().collect::<Vec<_>>(), [Role::of(&auth::ROLE)]);
    assert!(config.talks_to_others());
    let config = ConfigInput::new().env("URR_UPSTREAM_TICKETS", "http://a:3001").config();
    assert_eq!(config.passes_on().count(), 0, "a role that runs here is not forwarded");
}

#[test]
fn production_requires_remote_auth_or_the_role_auth() {
    let given = ConfigInput::new()
        .env("URR_PROFILE", "production")
        .env("URR_ROLES", "catalog,tickets")
        .env("URR_QUEUE_GUARD", "false")
        .env("URR_SECURITY_SECRET", SECRET);
    assert!(given.problem().contains("`remote.auth` is not set"), "{:?}", given.problems());
    given.env("URR_REMOTE_AUTH", "http://a:3002").env("INTERNAL_API_TOKEN", SECRET).config();
}

#[test]
fn seats_require_a_slot_if_queue_is_reachable_and_production_must_opt_out() {
    assert!(ConfigInput::new().config().guards_seats());
    let apart = || ConfigInput::new().env("URR_ROLES", "catalog,tickets");
    assert!(!apart().config().guards_seats());
    let there = apart().env("URR_REMOTE_QUEUE", "http://a:3002").config();
    assert!(there.guards_seats());
    assert_eq!(there.needs_remote().collect::<Vec<_>>(), [Role::of(&queue::ROLE)]);
    assert!(apart().env("URR_QUEUE_GUARD", "true").problem().contains("`remote.queue` is not set"));
    let production = || {
        let given = apart().env("URR_PROFILE", "production").env("URR_SECURITY_SECRET", SECRET);
        given.env("URR_REMOTE_AUTH", "http://a:3002").env("INTERNAL_API_TOKEN", SECRET)
    };
    assert!(production().problem().contains("queue.guard = false"));
    assert!(!production().env("URR_QUEUE_GUARD", "false").config().guards_seats());
    let alone = ConfigInput::new().env("URR_ROLES", "catalog,queue").problems();
    assert!(alone.iter().any(|problem| problem.contains("separates queue from tickets")), "{alone:?}");
}

#[test]
fn loopback_is_operator_unless_production() {
    let near = |given: ConfigInput| {
        let operators = given.config().door.operators();
        ["127.0.0.1", "::1", "198.51.100.9"]
            .map(|peer| operators.include(peer.parse().unwrap(), &axum::http::HeaderMap::new()))
    };
    assert_eq!(near(ConfigInput::new()), [true, true, false]);
    let production = || {
        let given = ConfigInput::new().env("URR_PROFILE", "production").env("URR_SECURITY_SECRET", SECRET);
        let given = given.env("URR_ROLES", "catalog,tickets").env("URR_QUEUE_GUARD", "false");
        given.env("URR_REMOTE_AUTH", "http://a:3002").env("INTERNAL_API_TOKEN", SECRET)
    };
    assert_eq!(near(production()), [false; 3]);
    assert_eq!(near(production().env("URR_HTTP_OPERATORS", "198.51.100.0/24")), [false, false, true]);
}

#[test]
fn rate_limits_are_on_and_no_proxy_is_trusted_by_default() {
    let config = ConfigInput::new().config();
    assert!(config.limits.enabled);
    assert_eq!(config.limits, urr_gateway::limit::RateLimits::default());
    assert!(config.door.proxies().addresses.is_empty() && config.door.origins.is_empty());
    let given = ConfigInput::new()
        .env("URR_LIMITS_ENABLED", "false")
        .env("URR_HTTP_TRUSTED_PROXIES", "10.0.0.0/8, ::1")
        .env("URR_HTTP_FORWARDED_HEADER", "forwarded")
        .env("URR_HTTP_ORIGINS", "https://shop.example");
    let config = given.config();
    assert!(!config.limits.enabled && !config.door.origins.is_empty());
    assert_eq!(config.door.proxies().addresses.len(), 2);
    for (name, wrong) in [
        ("URR_HTTP_TRUSTED_PROXIES", "balancer"),
        ("URR_HTTP_ORIGINS", "https://shop.example/"),
        ("URR_HTTP_ORIGINS", "*"),
        ("URR_LIMITS_AUTH", "0"),
    ] {
        assert!(ConfigInput::new().env(name, wrong).problem().starts_with(name), "{name}={wrong}");
    }
}
