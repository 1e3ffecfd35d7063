//! The route table of the product: the routes of all roles.

use std::collections::BTreeSet;

use axum::{body::Body, extract::Request};
use urr_http::{Line, Policy};
use urr_passes::access::{Access, Signer};

use super::*;
use crate::config::{self, Input};

/// Every route of every role: role, method, path and policy.
fn all() -> Vec<(&'static str, String, &'static str, Policy)> {
    let of = |(role, (_, names)): (Role, PublicRoutes)| {
        names.into_iter().map(move |name| (role.name, name.method.to_string(), name.path, name.policy))
    };
    declared().flat_map(of).collect()
}

#[test]
fn every_route_documents_its_request_and_responses() {
    for (role, (_, names)) in declared() {
        assert!(!names.is_empty(), "{role:?}");
        for name in names {
            let what = format!("{role:?}: {} {}", name.method, name.path);
            assert!(!name.about.summary.is_empty(), "{what} has no summary");
            let answers = !name.about.answers.is_empty() || name.about.events.is_some();
            assert!(answers, "{what} documents no response");
        }
    }
}

#[test]
fn all_routes_fit_into_one_table() {
    let (clock, ids) = urr_testkit::fixed();
    let dir = tempfile::tempdir().unwrap();
    let input = Input { working_dir: dir.path().to_owned(), ..Input::default() };
    let config = config::load(&input).unwrap().1;
    let (health, metrics) = (urr_telemetry::Health::new(), urr_telemetry::Metrics::install());
    let runtime = Runtime { clock: clock.clone(), ids, health, metrics };
    let mut gateway = Gateway::new(guards(&config, &GuardState::new(&config, None, &clock), &runtime));
    for (_, (routes, names)) in declared() {
        gateway = gateway.absent(routes, names);
    }
    let _door = gateway.finish();
}

/// Finds forgotten policies by path: routes below `admin` or `stats` are for admins.
#[test]
fn routes_below_admin_are_for_admins() {
    for (_, method, path, policy) in all().into_iter().filter(|(_, _, path, _)| path.starts_with("/api/")) {
        if path.split('/').any(|part| part == "admin" || part == "stats") {
            assert_eq!(policy.access, urr_http::Access::Admin, "{method} {path}");
        }
        if policy.access == urr_http::Access::Admin {
            assert!(policy.critical, "{method} {path}");
        }
    }
}

#[test]
fn only_files_and_polls_of_the_site_waiting_room_are_not_limited() {
    let unlimited = all().into_iter().filter(|(.., policy)| policy.limit.is_none());
    let unlimited: BTreeSet<_> = unlimited.map(|(_, _, path, _)| path).collect();
    let expected = [
        "/static/{*path}",
        "/favicon.ico",
        "/robots.txt",
        "/vwr/check/{id}/{ticket}",
        "/vwr/serving/{id}",
        "/vwr/status/{id}",
        "/vwr-api/vwr/check/{id}/{ticket}",
        "/vwr-api/vwr/serving/{id}",
        "/vwr-api/vwr/status/{id}",
        "/edge/check",
    ];
    assert_eq!(unlimited, BTreeSet::from(expected));
}

#[test]
fn a_pass_of_the_site_waiting_room_is_needed_where_a_sale_begins() {
    let needed = all().into_iter().filter(|(.., policy)| policy.line != Line::No);
    let needed: BTreeSet<_> = needed.map(|(_, method, path, _)| format!("{method} {path}")).collect();
    let expected = [
        "GET /api/seats/events/{id}",
        "POST /api/seats/reserve",
        "POST /api/queue/check/{id}",
        "GET /events/{id}/seats",
        "GET /queue/{id}",
    ];
    assert_eq!(needed, expected.map(str::to_owned).into());
}

#[test]
fn only_routes_that_buy_need_a_slot() {
    let guarded = all().into_iter().filter(|(.., policy)| policy.line == Line::Body);
    let guarded: Vec<_> = guarded.map(|(_, method, path, _)| format!("{method} {path}")).collect();
    assert_eq!(guarded, ["POST /api/seats/reserve"]);
}

#[test]
fn rate_limits_are_as_designed() {
    let routes = all();
    for (method, path, expected) in [
        ("POST", "/api/auth/login", Class::Auth),
        ("GET", "/api/auth/me", Class::General),
        ("GET", "/api/queue/status/{id}", Class::Queue),
        ("GET", "/vwr/{id}", Class::Arrivals),
        ("POST", "/vwr/assign/{id}", Class::Arrivals),
        ("POST", "/vwr-api/vwr/assign/{id}", Class::Arrivals),
        ("POST", "/api/seats/reserve", Class::Booking),
        ("POST", "/api/reservations/{id}/cancel", Class::Booking),
        ("GET", "/api/events", Class::General),
    ] {
        let found = routes.iter().find(|(_, known, at, _)| known == method && *at == path);
        let (.., policy) = found.unwrap_or_else(|| panic!("{method} {path} is not a route"));
        assert_eq!(policy.limit, Some(expected), "{method} {path}");
    }
}

#[test]
fn routes_that_change_accounts_are_critical() {
    let sessions = ["/api/auth/logout", "/api/auth/sessions/{id}", "/api/auth/refresh"];
    for (role, method, path, policy) in all() {
        if role == "auth" && method != "GET" && !sessions.contains(&path) {
            assert!(policy.critical, "{method} {path}");
        }
    }
}

/// Behind the guards every role is absent, so a caller who may call gets 404.
#[tokio::test]
async fn callers_who_may_not_call_are_refused_on_every_route() {
    let (clock, ids) = urr_testkit::fixed();
    let secret = urr_passes::Secret::new("a secret for tests, of more than 32 bytes").unwrap();
    let guards = plain_guards(&secret, &clock);
    let absent = |gateway: Gateway, (_, (routes, names)): (_, PublicRoutes)| gateway.absent(routes, names);
    let app = urr_http::router(declared().fold(Gateway::new(guards), absent).finish());
    let signer = Signer::new(access::key(&secret), access::LIFETIME);
    let token = |role| {
        let bearer = Access { user: ids.next(), role, email: None, session: ids.next() };
        format!("Bearer {}", signer.sign(&bearer, ids.next(), clock.now()))
    };
    let (user, admin) = (token(urr_kernel::Role::User), token(urr_kernel::Role::Admin));
    for (_, method, path, policy) in all() {
        let path = path.replace(['{', '}', '*'], "");
        let send = async |token: Option<&String>| {
            let request = Request::builder().method(method.as_str()).uri(&path).header("host", "urr.example");
            let request =
                token.into_iter().fold(request, |request, token| request.header("authorization", token));
            let request = request.body(Body::empty()).unwrap();
            tower::ServiceExt::oneshot(app.clone(), request).await.unwrap().status().as_u16()
        };
        let statuses = [send(None).await, send(Some(&user)).await, send(Some(&admin)).await];
        let expected = match policy.access {
            urr_http::Access::Public => [404, 404, 404],
            urr_http::Access::User => [401, 404, 404],
            urr_http::Access::Admin => [401, 403, 404],
        };
        assert_eq!(statuses, expected, "{method} {path}");
    }
}
