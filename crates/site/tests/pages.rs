//! Pages over HTTP while auth and catalog are unreachable: pages that need neither must still work.

#![expect(clippy::unwrap_used, reason = "a test reports failures by panicking")]

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request, response::Response};
use http::{StatusCode, header};
use http_body_util::BodyExt as _;
use urr_http::{Client, ClientLimits, Respond as _};
use urr_kernel::{Actor, Role};
use urr_rpc::Remote;
use urr_site::{ErrorPages, Parts};

/// Time limit of a request; a refused connection takes no time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pages whose services are at an address without a listener.
fn pages() -> ErrorPages<Router> {
    let (clock, ids) = urr_testkit::fixed();
    let client = Client::new(ClientLimits { tries: 1, ..ClientLimits::default() }, clock.clone());
    let away = || Arc::new(Remote::new(client.target("http://127.0.0.1:9").unwrap(), "a token"));
    let site = urr_site::build(Parts { auth: away(), catalog: away(), clock, ids });
    ErrorPages::enabled(urr_site::routes(&site).into())
}

async fn get(path: &str, signed_in: bool) -> Response {
    let mut request = Request::get(path).header("accept", "text/html").header("accept-language", "en");
    if signed_in {
        let (_, ids) = urr_testkit::fixed();
        request = request.extension(Actor::User { id: ids.next(), role: Role::User });
    }
    urr_testkit::within(PATIENCE, pages().respond(request.body(Body::empty()).unwrap())).await
}

async fn text(response: Response) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn location(response: &Response) -> &str {
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    response.headers()[header::LOCATION].to_str().unwrap()
}

#[tokio::test]
async fn the_sign_in_page_works_while_auth_is_unreachable() {
    let page = get("/login?error=auth.trip_refused&next=%2Faccount", false).await;
    assert_eq!(page.status(), StatusCode::OK);
    assert_eq!(page.headers()[header::REFERRER_POLICY], "no-referrer");
    let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let page = text(page).await;
    assert!(page.contains("data-form=\"login\" data-next=\"/account\""), "{page}");
    assert!(page.contains("Sign-in was cancelled."));
    let (carry, style) = (page.find("/static/carry.").unwrap(), page.find("/static/site.").unwrap());
    assert!(carry < style, "the secret is removed from the URL before anything else loads");
}

#[tokio::test]
async fn opening_a_mailed_link_calls_no_service() {
    for path in ["/verify-email", "/reset-password", "/forgot-password", "/register"] {
        assert_eq!(get(path, false).await.status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn pages_that_need_sign_in_redirect_there_and_back() {
    assert_eq!(location(&get("/account", false).await), "/login?next=%2Faccount");
    assert_eq!(location(&get("/login?next=%2Faccount", true).await), "/account");
    assert_eq!(location(&get("/login?next=%2F%2Fevil.example", true).await), "/");
    assert_eq!(location(&get("/login?returnTo=https%3A%2F%2Fevil.example", true).await), "/");
}

#[tokio::test]
async fn an_unreachable_service_gives_an_error_page() {
    for path in ["/", "/events/0190a1f0-0000-7000-8000-000000000001", "/account"] {
        let page = get(path, true).await;
        assert_eq!(page.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(page.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(text(page).await.contains("available right now"), "{path}");
    }
    assert_eq!(get("/events/not-an-id", false).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_control_room_requires_an_admin() {
    for room in ["/admin", "/admin/queue", "/admin/queue/0190a1f0-0000-7000-8000-000000000001"] {
        assert!(location(&get(room, false).await).starts_with("/login?next="));
        assert_eq!(get(room, true).await.status(), StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn a_chosen_language_is_remembered() {
    let page = get("/register?lang=ko", false).await;
    assert!(page.headers()[header::SET_COOKIE].to_str().unwrap().starts_with("lang=ko;"));
    assert!(text(page).await.contains("<html lang=\"ko\""));
    assert!(!get("/register", false).await.headers().contains_key(header::SET_COOKIE));
}
