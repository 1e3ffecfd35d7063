//! However a path is spelled, a guard's verdict stays.

use std::collections::BTreeMap;

use urr_gateway::table::{self, Access};
use urr_kernel::Role;

use crate::{
    door::spelled,
    raw::{self, Reply},
    world::{World, user},
};

/// Ways to write a path that some server somewhere takes for the path itself.
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

/// Over a real connection, because test clients tidy paths up before they send them.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_in_disguise_reaches_no_guarded_route() {
    let world = World::new();
    let served = world.serve().await;
    let tokens = [None, Some(world.token(Role::User))];
    let mut tried = 0;
    let mut statuses = BTreeMap::new();
    for route in table::all().filter(|route| route.access != Access::Public) {
        let mut requests = Vec::new();
        for disguise in disguises(&spelled(route.path)) {
            for token in &tokens {
                // Whoever is signed in may use what is for users under its own name: that is tried as nobody.
                if token.is_some() && route.access == Access::User {
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
            // Each is counted; a minute later they are forgotten.
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
        let (status, body) = world.ask("POST", "/api/community/posts", &headers).await;
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
async fn a_query_a_host_or_an_absolute_form_changes_nothing() {
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

/// Parameters may hold anything; what they hold never makes another route of it.
#[tokio::test]
async fn a_parameter_is_a_parameter_whatever_it_holds() {
    let world = World::new();
    for id in ["...", "a..b", "x;y", "a%20b", "cancel", "%ff", "%e2%80%ae"] {
        let path = format!("/api/reservations/{id}");
        let (status, body) = world.get(&path, &[]).await;
        assert_eq!((status, body["code"].as_str()), (401, Some("auth.required")), "{path}");
        let (status, body) = world.get(&path, &[("authorization", &world.bearer(Role::User))]).await;
        assert_eq!((status, &body["user"]), (200, &serde_json::json!(user())), "{path}");
    }
}
