//! Alternative spellings of paths must not bypass the guards.

use std::collections::BTreeMap;

use urr_http::{Access, Line, RouteName};
use urr_kernel::Role;

use crate::sample;
use crate::{
    dispatcher::spelled,
    lines::{self, SAME_SITE},
    raw::{self, Reply},
    world::{World, user},
};

/// Spellings that some servers treat as the same path.
fn disguises(path: &str) -> Vec<String> {
    let rest = path.strip_prefix("/api/").unwrap_or(&path[1..]);
    let (first, tail) = rest.split_once('/').unwrap_or((rest, ""));
    let tail = if tail.is_empty() { String::new() } else { format!("/{tail}") };
    let encoded_first = format!("%{:02x}{}", first.as_bytes()[0], &first[1..]);
    vec![
        format!("/{path}"),
        format!("//api//{rest}"),
        format!("{path}/"),
        format!("{path}//"),
        format!("{path}."),
        format!("{path}.json"),
        format!("{path}%20"),
        format!("{path}%00"),
        format!("{path}%2f"),
        format!("{path}%2F"),
        format!("{path};x"),
        format!("{path};jsessionid=1"),
        format!("/api/./{rest}"),
        format!("/api/%2e/{rest}"),
        format!("/api/auth/../{rest}"),
        format!("/api/auth/%2e%2e/{rest}"),
        format!("/api/auth/.%2e/{rest}"),
        format!("/api/auth/..;/{rest}"),
        format!("/api/auth%2f..%2f{rest}"),
        format!("/api/v1/../{rest}"),
        format!("/api/v1/v1/{rest}"),
        format!("/api/v1//{rest}"),
        format!("/api/v1;x/{rest}"),
        format!("/api/{encoded_first}{tail}"),
        format!("/api/{}{tail}", first.to_uppercase()),
        format!("/API/{rest}"),
        format!("/api%2f{rest}"),
        format!("/api/{first}%2f{}", tail.trim_start_matches('/')),
        format!("/api/{first};x{tail}"),
        format!("/api/{first}/.{tail}"),
        format!("/static/../api/{rest}"),
        format!("/static/%2e%2e/api/{rest}"),
        format!("/vwr-api{path}"),
    ]
}

const METHOD_OVERRIDES: [&str; 4] =
    ["x-http-method-override", "x-http-method", "x-method-override", "_method"];

/// Uses a real connection, because test clients normalise paths.
#[tokio::test(flavor = "multi_thread")]
async fn alternative_spellings_do_not_reach_guarded_routes() {
    let world = World::new();
    let served = world.serve().await;
    let tokens = [None, Some(world.token(Role::User))];
    let mut tried = 0;
    let mut statuses = BTreeMap::new();
    for (_, route) in sample::all().into_iter().filter(|(_, route)| route.policy.access != Access::Public) {
        let mut requests = Vec::new();
        for disguise in disguises(&spelled(route.path)) {
            for token in &tokens {
                // Signed-in users may use user routes under their own name, so those are tried
                // anonymously.
                if token.is_some() && route.policy.access == Access::User {
                    continue;
                }
                let auth = token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n"));
                requests.push((disguise.clone(), auth.unwrap_or_default()));
            }
        }
        for batch in requests.chunks(40) {
            let lines: Vec<_> = batch
                .iter()
                .map(|(path, auth)| {
                    format!("{} {path} HTTP/1.1\r\nhost: urr.example\r\n{auth}\r\n", route.method)
                })
                .collect();
            for ((path, _), reply) in batch.iter().zip(raw::each(served.address, &lines).await) {
                let Reply { status, body, .. } = reply;
                let what = format!("{} {path} → {status} {body}", route.method);
                assert!(matches!(status, 400 | 401 | 403 | 404 | 405), "{what}");
                *statuses.entry(status).or_insert(0) += 1;
                tried += 1;
            }
            // Every request is counted; after a minute the window is empty again.
            world.clock.advance(std::time::Duration::from_secs(1));
        }
    }
    assert!(tried > 2_000, "{tried}: {statuses:?}");
    assert!(!statuses.contains_key(&429), "{statuses:?}");
}

#[tokio::test]
async fn no_header_changes_the_method_or_the_path_of_a_request() {
    let world = World::new();
    let bearer = world.bearer(Role::User);
    for name in METHOD_OVERRIDES {
        let headers = [("authorization", bearer.as_str()), (name, "DELETE")];
        let (status, body) = world.ask("POST", "/api/transfers", &headers).await;
        assert_eq!((status, body["method"].as_str()), (200, Some("POST")), "{name}");
        let (status, _) = world.ask("GET", "/api/admin/events", &headers).await;
        assert_eq!(status, 405, "{name}");
        let (status, _) = world.ask("POST", "/api/admin/events", &[(name, "GET")]).await;
        assert_eq!(status, 401, "{name}");
    }
    for name in
        ["x-original-url", "x-rewrite-url", "x-forwarded-path", "x-forwarded-prefix", "x-original-uri"]
    {
        let headers = [("authorization", bearer.as_str()), (name, "/api/admin/seat-layouts")];
        let (status, body) = world.get("/api/events", &headers).await;
        assert_eq!((status, body["path"].as_str()), (200, Some("/api/events")), "{name}");
        let headers = [("authorization", bearer.as_str()), (name, "/api/events")];
        assert_eq!(world.get("/api/admin/seat-layouts", &headers).await.0, 403, "{name}");
    }
}

#[tokio::test]
async fn query_host_and_absolute_form_do_not_change_the_route() {
    let world = World::new();
    let bearer = world.bearer(Role::User);
    for path in [
        "/api/admin/seat-layouts?/api/auth/login",
        "/api/admin/seat-layouts?x=/api/events",
        "/api/v1/admin/seat-layouts",
        "http://evil.example/api/admin/seat-layouts",
        "http://urr.example/api/v1/admin/seat-layouts?",
    ] {
        assert_eq!(world.get(path, &[("authorization", &bearer)]).await.0, 403, "{path}");
        assert_eq!(world.get(path, &[]).await.0, 401, "{path}");
    }
}

/// Parameters may contain anything; their value never selects another route.
#[tokio::test]
async fn parameter_values_do_not_change_the_route() {
    let world = World::new();
    for id in ["...", "a..b", "x;y", "a%20b", "cancel", "%ff", "%e2%80%ae"] {
        let path = format!("/api/reservations/{id}");
        let (status, body) = world.get(&path, &[]).await;
        assert_eq!((status, body["code"].as_str()), (401, Some("auth.required")), "{path}");
        let (status, body) = world.get(&path, &[("authorization", &world.bearer(Role::User))]).await;
        assert_eq!((status, &body["user"]), (200, &serde_json::json!(user())), "{path}");
    }
}

/// Other spellings of the id of event 1, and whether the handlers parse them as that event.
fn spellings(id: &str) -> Vec<(String, bool)> {
    let encoded: Vec<_> = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
    vec![
        (id.to_owned(), true),
        (id.replacen('0', "%30", 1), true),
        (id.replace('-', "%2d"), true),
        (encoded.concat(), true),
        (format!("%7B{id}%7d"), true),
        (format!("{{{id}}}"), true),
        (id.replace('-', ""), true),
        (format!("urn:uuid:{id}"), true),
        (format!("%75rn:uuid%3A{id}"), true),
        (id.replacen('0', "%2530", 1), false),
        (format!("{id}%20"), false),
        (format!("%20{id}"), false),
        (format!("{id};x"), false),
        (format!("{id}%ff"), false),
        (format!("({id})"), false),
        (id.replacen('0', "%3", 1), false),
    ]
}

/// The Tier 1 check applies to every spelling of an event id.
#[tokio::test]
async fn no_spelling_of_an_event_id_bypasses_its_room() {
    let world = lines::world().await;
    let event = lines::event(1);
    let (bearer, pass) = (world.bearer(Role::User), world.pass_cookie(event));
    let signed_in = [("authorization", bearer.as_str()), SAME_SITE];
    let with_pass = [("authorization", bearer.as_str()), SAME_SITE, ("cookie", pass.as_str())];
    let behind_line = |name: &RouteName| matches!(name.policy.line, Line::Path | Line::Page);
    for (_, route) in sample::all().into_iter().filter(|(_, name)| behind_line(name)) {
        for (id, is_event) in spellings(&event.to_string()) {
            let path = route.path.replace("{id}", &id);
            let what = format!("{} {path}", route.method);
            let (status, _) = world.ask(route.method.as_str(), &path, &signed_in).await;
            let stopped = if route.policy.line == Line::Page { 302 } else { 403 };
            assert_eq!(status, if is_event { stopped } else { 400 }, "{what}");
            let (status, body) = world.ask(route.method.as_str(), &path, &with_pass).await;
            assert_eq!(status, if is_event { 200 } else { 400 }, "{what}");
            if is_event && route.path == "/api/queue/check/{id}" {
                assert_eq!(body["event"], event.to_string(), "guard and handler must parse the same event");
            }
        }
    }
}
