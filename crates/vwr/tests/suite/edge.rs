//! Requests of reverse proxies to the authorisation endpoint, as each proxy sends them.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
    response::Response,
};
use tower::ServiceExt as _;
use urr_http::Query;
use urr_kernel::{EventId, OrderKey};
use urr_passes::vwr_pass::{self, Pass};

use super::world::{World, passes};

/// Some proxies forward the visitor's method.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];

/// Targets whose parameters have the same names as ours.
const TARGETS: [&str; 9] = [
    "/",
    "/x?a=1&b=2",
    "/search?from=a&to=b",
    "/search?from=/a&to=/b&to=",
    "/x?event=0197b3c2-0000-7000-8000-0000000000bb",
    "/x?deny=403&event=nonsense&deny=nonsense",
    "/a&to=/b",
    "/x?q=%26to%3D%2F+%20%ed%95%9c&r=a|b",
    "/?",
];

#[derive(Clone, Copy, Debug)]
enum Proxy {
    /// With `proxy_method GET` and `proxy_set_header X-Original-URI $request_uri`, as in
    /// docs/edge/nginx.md.
    Nginx,
    /// Forwards the visitor's headers and adds the target.
    Traefik,
    /// Appends the target to `path_prefix` unchanged.
    Envoy,
}

impl Proxy {
    const ALL: [Self; 3] = [Self::Nginx, Self::Traefik, Self::Envoy];

    /// The proxy's request for a visitor's request.
    fn question(self, event: EventId, method: &str, target: &str, cookie: &str) -> Request<Body> {
        let (path, lines) = match self {
            Self::Nginx => (format!("/edge/check?event={event}&deny=401"), vec![("x-original-uri", target)]),
            Self::Traefik => (
                format!("/edge/check?event={event}"),
                vec![
                    ("x-forwarded-method", method),
                    ("x-forwarded-proto", "https"),
                    ("x-forwarded-host", "shop.example"),
                    ("x-forwarded-uri", target),
                    ("x-forwarded-for", "198.51.100.7"),
                ],
            ),
            Self::Envoy => (
                format!("/edge/check?event={event}&to={target}"),
                vec![
                    ("content-length", "0"),
                    ("x-envoy-internal", "true"),
                    ("x-envoy-expected-rq-timeout-ms", "1000"),
                ],
            ),
        };
        let method = if let Self::Nginx = self { "GET" } else { method };
        let mut request = Request::builder().method(method).uri(path).header(header::COOKIE, cookie);
        for (name, value) in lines {
            request = request.header(name, value);
        }
        request.body(Body::empty()).unwrap()
    }

    /// The status that the proxy treats as a refusal.
    fn refusal(self) -> StatusCode {
        match self {
            Self::Nginx => StatusCode::UNAUTHORIZED,
            Self::Traefik | Self::Envoy => StatusCode::FOUND,
        }
    }
}

async fn ask(world: &World, question: Request<Body>) -> Response {
    axum::Router::from(urr_vwr::routes(&world.service)).oneshot(question).await.unwrap()
}

/// Every combination of proxy, method and target.
fn questions() -> impl Iterator<Item = (Proxy, &'static str, &'static str)> {
    Proxy::ALL.into_iter().flat_map(|proxy| {
        METHODS.into_iter().flat_map(move |method| TARGETS.into_iter().map(move |to| (proxy, method, to)))
    })
}

pub(crate) async fn a_refused_visitor_keeps_the_target(world: &World) {
    let event = world.open().await;
    for (proxy, method, target) in questions() {
        let answer = ask(world, proxy.question(event, method, target, "theirs=1")).await;
        let what = format!("{proxy:?} {method} {target}");
        assert_eq!(answer.status(), proxy.refusal(), "{what}");
        let page = answer.headers()[header::LOCATION].to_str().unwrap();
        let way = page.strip_prefix(&format!("/vwr/{event}?to=")).unwrap_or_else(|| panic!("{what}: {page}"));
        assert!(!way.contains(['&', '?', '+', '#']), "{what}: the target is one parameter: {way}");
        let decoded = format!("http://shop.example/?to={way}").parse().unwrap();
        let query = Query::<BTreeMap<String, String>>::read(&decoded).unwrap().0;
        assert_eq!(query["to"], target, "{what}");
        assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store", "{what}");
    }
}

pub(crate) async fn a_visitor_with_a_pass_may_request_anything(world: &World) {
    let event = world.open().await;
    let now = world.clock.now();
    let pass = Pass { event, visitor: world.ids.next(), order: OrderKey::at(now), position: 1 };
    let token = passes().sign(&pass, world.ids.next(), now);
    let cookie = format!("theirs=1; {}={token}", vwr_pass::cookie(event));
    let nobody: EventId = world.ids.next();
    for (proxy, method, target) in questions() {
        let answer = ask(world, proxy.question(event, method, target, &cookie)).await;
        assert_eq!(answer.status(), StatusCode::OK, "{proxy:?} {method} {target}");
        let answer = ask(world, proxy.question(nobody, method, target, "theirs=1")).await;
        assert_eq!(answer.status(), StatusCode::OK, "the room is closed: {proxy:?} {method} {target}");
    }
}

pub(crate) async fn an_encoded_target_stays_on_the_site(world: &World) {
    let event = world.open().await;
    for (query, way) in [
        ("&to=%2Fx%3Fa%3D1%26b%3D2", "/x%3Fa%3D1%26b%3D2"),
        ("&to=//evil.example/x", "/"),
        ("&to=%2F%2Fevil.example", "/"),
        ("&to=/%5Cevil.example", "/%255Cevil.example"),
        ("&to=*", "/"),
        ("&to=", "/"),
        ("", "/"),
    ] {
        let question = Request::builder().method("OPTIONS").uri(format!("/edge/check?event={event}{query}"));
        let answer = ask(world, question.body(Body::empty()).unwrap()).await;
        let page = format!("/vwr/{event}?to={way}");
        assert_eq!(answer.headers()[header::LOCATION].to_str().unwrap(), page, "{query}");
    }
    for query in ["to=/x", "to=/x&event=0197b3c2-0000-7000-8000-0000000000bb", "event=x&to=/x", ""] {
        let question = Request::builder().uri(format!("/edge/check?{query}")).body(Body::empty()).unwrap();
        assert_eq!(
            ask(world, question).await.status(),
            StatusCode::BAD_REQUEST,
            "the event is missing: {query}"
        );
    }
}
