//! The API document and the page to read it.

use http::{StatusCode, header};
use serde_json::Value;
use urr_http::{About, RoleRoutes, Routes, USER};

use crate::sample::{self, PAYMENTS, STATS};
use crate::world::{Options, World, request};

/// Number of the gateway's own routes: the document, its page and files, and three probes.
const OWN: usize = 6;

#[tokio::test]
async fn the_document_lists_exactly_the_routes_that_are_served() {
    let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let world = World::with(Options {
        missing: vec![&STATS],
        remote: vec![(&PAYMENTS, vec![nobody])],
        ..Options::default()
    });
    let (status, headers, body) = world.send(request("GET", "/api/v1/openapi.json", &[])).await;
    assert_eq!((status, headers[header::CONTENT_TYPE].to_str().unwrap()), (200, "application/json"));
    let api: Value = serde_json::from_slice(&body).unwrap();
    let mut operations = 0;
    for (role, route) in sample::all() {
        let method = route.method.as_str();
        let listed = api["paths"][route.path][method.to_ascii_lowercase()].is_object();
        assert_eq!(listed, *role != STATS && !route.policy.page, "{method} {}", route.path);
        operations += usize::from(listed);
        let failed = &api["paths"][route.path][method.to_ascii_lowercase()]["responses"]["502"];
        assert_eq!(
            failed.is_object(),
            *role == PAYMENTS,
            "{}: only forwarded routes can return 502",
            route.path
        );
    }
    let listed = api["paths"].as_object().unwrap().iter();
    assert_eq!(
        listed.map(|(_, methods)| methods.as_object().unwrap().len()).sum::<usize>(),
        operations + OWN
    );

    let tag = headers[header::ETAG].to_str().unwrap();
    let (status, _, body) = world.send(request("GET", "/api/openapi.json", &[("if-none-match", tag)])).await;
    assert_eq!((status, body.len()), (304, 0));
    let gzip = [("accept-encoding", "gzip")];
    let (_, headers, _) = world.send(request("GET", "/api/openapi.json", &gzip)).await;
    assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
}

#[tokio::test]
async fn routes_of_remote_roles_are_described_like_local_ones() {
    let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let described = |_: &RoleRoutes| {
        let about = About::new("Pays").body::<Vec<u32>>().answer::<String>(StatusCode::CREATED);
        Routes::<()>::new().post("/api/payments/confirm", USER, async || "").about(about).names().to_vec()
    };
    let there = Options { remote: vec![(&PAYMENTS, vec![nobody])], described, ..Options::default() };
    let (_, _, body) = World::with(there).send(request("GET", "/api/openapi.json", &[])).await;
    let api: Value = serde_json::from_slice(&body).unwrap();
    let payments =
        api["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/api/payments"));
    let [(path, methods)] = payments.collect::<Vec<_>>()[..] else {
        panic!("expected one described route: {api}")
    };
    let confirm = &methods["post"];
    assert_eq!((path.as_str(), &confirm["summary"]), ("/api/payments/confirm", &Value::from("Pays")));
    let schema = |content: &Value| content["content"]["application/json"]["schema"]["type"].clone();
    assert_eq!(
        (schema(&confirm["requestBody"]), schema(&confirm["responses"]["201"])),
        ("array".into(), "string".into())
    );
    assert!(confirm["responses"]["502"].is_object(), "forwarding can fail: {confirm}");
}

#[tokio::test]
async fn the_page_forbids_inline_scripts_and_external_resources() {
    let world = World::new();
    for (path, kind) in [
        ("/api/docs", "text/html; charset=utf-8"),
        ("/api/docs/docs.js", "text/javascript; charset=utf-8"),
        ("/api/docs/docs.css", "text/css; charset=utf-8"),
    ] {
        let (status, headers, body) = world.send(request("GET", path, &[])).await;
        assert_eq!((status, headers[header::CONTENT_TYPE].to_str().unwrap()), (200, kind), "{path}");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
        let text = String::from_utf8(body).unwrap();
        for word in ["//cdn", "https://", "innerHTML", "onclick=", "style=", "eval("] {
            assert!(!text.contains(word), "{path}: {word}");
        }
        assert!(!text.contains("<script>") && !text.contains("<style>"), "{path}");
    }
    assert_eq!(world.get("/api/docs/secret.txt", &[]).await.1["code"], "http.not_found");
}
