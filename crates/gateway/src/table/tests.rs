//! The table on a few sample routes.

use urr_http::{Line, PAGE, PUBLIC, Routes};

use super::*;

static SAMPLE: RoleRoutes = RoleRoutes::new("sample", "Samples are unavailable right now.");

fn table() -> Table {
    let answer = async || "";
    let routes = Routes::<()>::new()
        .get("/api/events", PUBLIC, answer)
        .get("/api/events/{id}", PUBLIC, answer)
        .post("/api/transfers", PUBLIC, answer)
        .get("/api/transfers", PUBLIC, answer)
        .get("/events/{id}/seats", PAGE.after_line(Line::Page), answer)
        .get("/static/{*path}", PAGE.unlimited(), answer)
        .any("/edge/check", PUBLIC.unlimited(), answer);
    let mut table = Table::default();
    for name in routes.names() {
        table.add(Route::new(&SAMPLE, name));
    }
    table
}

/// The routes found for a path: one for a match, all of the path for another method, `None` for no
/// path.
fn find(table: &Table, method: &str, path: &str) -> Option<Vec<(String, &'static str)>> {
    let method: Method = method.parse().unwrap();
    let name = |route: &Route| (route.method.to_string(), route.path);
    match table.find(table.find_path(path)?, &method) {
        Found::Route(route) => Some(vec![name(route)]),
        Found::OtherMethods(routes) => Some(routes.iter().map(name).chain([(String::new(), "")]).collect()),
        Found::Nothing => None,
    }
}

#[test]
fn a_path_finds_the_route_that_was_declared() {
    let table = table();
    for (method, path, declared) in [
        ("GET", "/api/events", "/api/events"),
        ("HEAD", "/api/events/7", "/api/events/{id}"),
        ("POST", "/api/transfers", "/api/transfers"),
        ("GET", "/static/a/b", "/static/{*path}"),
    ] {
        let found = find(&table, method, path).unwrap();
        assert_eq!(found.iter().map(|(_, path)| *path).collect::<Vec<_>>(), [declared], "{method} {path}");
    }
}

#[test]
fn a_route_for_any_method_answers_every_method() {
    for method in ["GET", "HEAD", "POST", "OPTIONS", "TRACE", "PROPFIND"] {
        assert_eq!(find(&table(), method, "/edge/check").unwrap().len(), 1, "{method}");
    }
}

#[test]
fn the_id_of_a_path_is_the_event() {
    let table = table();
    let route = |path| match table.find(table.find_path(path).unwrap(), &Method::GET) {
        Found::Route(route) => route,
        found => panic!("{found:?}"),
    };
    let (seats, event) = (route("/events/7/seats"), "0190a1f0-0000-7000-8000-000000000001");
    assert_eq!(seats.event(&format!("/events/{event}/seats")), event.parse().ok());
    assert_eq!(seats.event(&format!("/events/%7B%30{}%7d/seats", &event[1..])), event.parse().ok());
    assert_eq!(seats.event("/events/7/seats"), None);
    assert_eq!(route("/api/events").event("/api/events"), None);
}

#[test]
fn unknown_paths_and_methods_are_distinguished() {
    let table = table();
    for path in
        ["/api/bogus", "/internal/tickets/hold", "/api/events/", "/API/events", "", "*", "/api//events"]
    {
        assert_eq!(find(&table, "GET", path), None, "{path}");
    }
    let other = find(&table, "DELETE", "/api/transfers").unwrap();
    assert_eq!(other.iter().map(|(method, _)| method.as_str()).collect::<Vec<_>>(), ["POST", "GET", ""]);
    assert_eq!(find(&table, "TRACE", "/api/events").unwrap().len(), 2);
}

#[test]
fn ambiguous_paths_are_not_found() {
    let table = table();
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
        assert_eq!(find(&table, "GET", path), None, "{path}");
    }
    for path in ["/static/app.css", "/static/a..b/...", "/static/a%20b", "/api/events/x.y", "/static/.well"] {
        assert_eq!(find(&table, "GET", path).unwrap().len(), 1, "{path}");
    }
}

#[test]
#[should_panic(expected = "GET /api/events is declared by sample and by sample")]
fn a_route_cannot_be_declared_twice() {
    let mut table = table();
    let routes = Routes::<()>::new().get("/api/events", PUBLIC, async || "");
    table.add(Route::new(&SAMPLE, &routes.names()[0]));
}

#[test]
#[should_panic(expected = "/api/events/{event} of role sample")]
fn conflicting_parameter_names_are_rejected() {
    let mut table = table();
    let routes = Routes::<()>::new().get("/api/events/{event}", PUBLIC, async || "");
    table.add(Route::new(&SAMPLE, &routes.names()[0]));
}
