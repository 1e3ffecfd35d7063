//! The table against itself. What it says about the routers behind it is checked where they are wired together.

use std::collections::{BTreeSet, HashSet};

use super::*;

#[test]
fn every_path_can_be_matched_and_finds_itself() {
    for route in all() {
        let path = route.path.replace("{*path}", "a/b").replace(['{', '}'], "");
        let method = Method::from_bytes(route.method.as_bytes()).unwrap();
        assert_eq!(find(&method, &path), Found::Route(route), "{} {path}", route.method);
    }
}

#[test]
fn no_route_is_listed_twice() {
    let mut seen = HashSet::new();
    for route in all() {
        assert!(seen.insert((route.method, route.path)), "{} {}", route.method, route.path);
    }
}

#[test]
fn every_service_has_routes_and_a_sentence_for_its_absence() {
    for service in Service::ALL {
        assert!(all().any(|route| route.service == service), "{}", service.name());
        assert!(service.is_away().ends_with('.'));
    }
}

#[test]
fn a_payment_may_take_a_minute_and_a_place_in_line_ten_seconds() {
    for service in Service::ALL {
        let seconds = match service {
            Service::Payments => 60,
            Service::Queue => 10,
            _ => 30,
        };
        assert_eq!(service.time_limit().as_secs(), seconds, "{}", service.name());
    }
}

/// A row that was forgotten somewhere else is found by its path: what is below `admin` or `stats` is for operators.
#[test]
fn what_looks_like_it_is_for_operators_is_for_operators() {
    for route in all().filter(|route| route.path.starts_with("/api/")) {
        let for_operators = route.path.split('/').any(|part| part == "admin" || part == "stats");
        if for_operators {
            assert_eq!(route.access, Access::Admin, "{} {}", route.method, route.path);
        }
        if route.access == Access::Admin {
            assert!(route.critical, "{} {}", route.method, route.path);
        }
    }
}

#[test]
fn only_probes_files_and_what_a_waiting_crowd_asks_are_not_counted() {
    let uncounted: BTreeSet<_> =
        all().filter(|route| route.limit.is_none()).map(|route| route.path).collect();
    let expected = [
        "/static/{*path}",
        "/favicon.ico",
        "/robots.txt",
        "/health/live",
        "/health/ready",
        "/metrics",
        "/vwr/check/{id}/{ticket}",
        "/vwr/serving/{id}",
        "/vwr/status/{id}",
        "/vwr-api/vwr/check/{id}/{ticket}",
        "/vwr-api/vwr/serving/{id}",
        "/vwr-api/vwr/status/{id}",
        "/edge/check",
    ];
    assert_eq!(uncounted, BTreeSet::from(expected));
}

#[test]
fn a_pass_is_asked_for_as_designed() {
    let asked: Vec<_> = all()
        .filter(|route| route.line != Line::No)
        .map(|route| (route.method, route.path, route.line))
        .collect();
    let expected = [
        ("GET", "/api/seats/events/{id}", Line::Path),
        ("POST", "/api/seats/reserve", Line::Body),
        ("POST", "/api/reservations", Line::Body),
        ("POST", "/api/queue/check/{id}", Line::Path),
        ("GET", "/events/{id}/seats", Line::Page),
        ("GET", "/events/{id}/book", Line::Page),
        ("GET", "/queue/{id}", Line::Page),
    ];
    assert_eq!(asked, expected);
}

#[test]
fn proxies_ask_with_every_method_and_nobody_else_does() {
    let any: Vec<_> = all().filter(|route| route.methods == Methods::Any).map(|route| route.path).collect();
    assert_eq!(any, ["/edge/check"]);
    for method in ["GET", "HEAD", "POST", "OPTIONS", "TRACE", "PROPFIND"] {
        let found = find(&Method::from_bytes(method.as_bytes()).unwrap(), "/edge/check");
        assert!(matches!(found, Found::Route(_)), "{method}: {found:?}");
    }
}

#[test]
fn the_id_of_a_path_is_where_the_table_says() {
    let Found::Route(route) = find(&Method::GET, "/events/7/seats") else { panic!("it is a route") };
    let event = "0190a1f0-0000-7000-8000-000000000001";
    assert_eq!(route.event(&format!("/events/{event}/seats")), event.parse().ok());
    assert_eq!(route.event(&format!("/events/%7B%30{}%7d/seats", &event[1..])), event.parse().ok());
    assert_eq!(route.event("/events/7/seats"), None);
    let Found::Route(route) = find(&Method::GET, "/api/events") else { panic!("it is a route") };
    assert_eq!(route.event("/api/events"), None);
}

#[test]
fn what_buys_needs_a_slot_and_nothing_else_does() {
    let guarded: Vec<_> =
        all().filter(|route| route.needs_slot).map(|route| (route.method, route.path)).collect();
    assert_eq!(guarded, [("POST", "/api/seats/reserve"), ("POST", "/api/reservations")]);
}

#[test]
fn classes_are_as_designed() {
    let class = |method: Method, path| match find(&method, path) {
        Found::Route(route) => route.limit,
        _ => panic!("{path} is no route"),
    };
    for (method, path, expected) in [
        (Method::POST, "/api/auth/login", Class::Auth),
        (Method::GET, "/api/queue/status/1", Class::Queue),
        (Method::GET, "/vwr/1", Class::Arrivals),
        (Method::POST, "/vwr/assign/1", Class::Arrivals),
        (Method::POST, "/vwr-api/vwr/assign/1", Class::Arrivals),
        (Method::POST, "/api/seats/reserve", Class::Booking),
        (Method::POST, "/api/reservations", Class::Booking),
        (Method::POST, "/api/reservations/1/cancel", Class::Booking),
        (Method::POST, "/api/payments/confirm", Class::Payments),
        (Method::GET, "/api/reservations/my", Class::General),
        (Method::GET, "/api/events", Class::General),
    ] {
        assert_eq!(class(method, path), Some(expected), "{path}");
    }
}

#[test]
fn whatever_changes_who_somebody_is_or_moves_money_is_critical() {
    let sessions = ["/api/auth/logout", "/api/auth/sessions/{id}", "/api/auth/refresh"];
    for route in all().filter(|route| route.method != "GET" && !sessions.contains(&route.path)) {
        if matches!(route.service, Service::Auth | Service::Payments) {
            assert!(route.critical, "{} {}", route.method, route.path);
        }
    }
}

#[test]
fn unknown_paths_and_methods_are_told_apart() {
    for path in
        ["/api/bogus", "/internal/tickets/hold", "/api/events/", "/API/events", "", "*", "/api//events"]
    {
        assert_eq!(find(&Method::GET, path), Found::Nothing, "{path}");
    }
    let Found::OtherMethods(routes) = find(&Method::DELETE, "/api/transfers") else { panic!("it exists") };
    assert_eq!(routes.iter().map(|route| route.method).collect::<Vec<_>>(), ["POST", "GET"]);
    assert!(matches!(find(&Method::HEAD, "/api/events"), Found::Route(_)));
    assert!(matches!(find(&Method::TRACE, "/api/events"), Found::OtherMethods(_)));
}

#[test]
fn a_path_that_others_read_otherwise_is_no_path() {
    for path in [
        "/static/../api/auth/me",
        "/static/%2e%2E/api/auth/me",
        "/static/.%2e/x",
        "/static/..;x/y",
        "/static/./x",
        "/static/a/..",
        "/static/a%2Fb",
        "/static/a%5cb",
        "/static/a\\b",
        "/static/a%00",
        "/api/events/..",
    ] {
        assert_eq!(find(&Method::GET, path), Found::Nothing, "{path}");
    }
    for path in ["/static/app.css", "/static/a..b/...", "/static/a%20b", "/api/events/x.y", "/static/.well"] {
        assert!(matches!(find(&Method::GET, path), Found::Route(_)), "{path}");
    }
}

#[test]
fn a_route_nobody_classified_is_found() {
    let routes = urr_http::Routes::<()>::new()
        .get("/api/events/{id}", async || "")
        .post("/api/events/{id}", async || "")
        .get("/api/events", async || "")
        .get("/api/secret", async || "")
        .get("/api/time", async || "");
    let found = unclassified(Service::Catalog, routes.names());
    let found: Vec<_> = found.into_iter().map(|name| (name.method.as_str(), name.path)).collect();
    let expected = [("POST", "/api/events/{id}"), ("GET", "/api/secret"), ("GET", "/api/time")];
    assert_eq!(found, expected);
    let renamed = urr_http::Routes::<()>::new().get("/api/events/{event}", async || "");
    assert_eq!(unclassified(Service::Catalog, renamed.names()).len(), 1, "parameters have one name");
}
