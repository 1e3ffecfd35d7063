//! What a browser sends by itself: cookies and the origin of its page.

use std::time::Duration;

use serde_json::json;
use urr_e2e::{
    http::{Answer, Connection, Request},
    installation::Installation,
    people::{self, PASSWORD},
    program::Launch,
};
use urr_testkit::until;

/// Time limit until a process learns of a revoked session; generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Another origin, which only the gateway allows.
const SHOP: &str = "https://shop.example";

pub(crate) fn with_a_shop(name: &str, launch: Launch) -> Launch {
    match name {
        "gateway" | "whole" => launch.set("http.origins", SHOP),
        _ => launch,
    }
}

async fn ask(
    connection: &mut Connection,
    origin: &str,
    cookie: &str,
    request: Request<'_>,
) -> anyhow::Result<Answer> {
    let headers = [("origin", origin), ("cookie", cookie)];
    Ok(connection.send(&Request { headers: &headers, ..request }).await?)
}

/// It does not matter which process has the accounts: the gateway checks the origin.
pub(crate) async fn allowed_origin_can_use_accounts(installation: &Installation) -> anyhow::Result<()> {
    let mut front = installation.connect();
    let person = people::register(&mut front, "shopper@example.com").await?;
    let cookie = format!("access_token={}", person.access);
    let credentials = json!({ "email": person.email, "password": PASSWORD });
    let login = || Request::post("/api/auth/login", &credentials);
    let name = json!({ "name": "Shopper" });
    let rename = || Request { method: "PATCH", ..Request::post("/api/auth/me", &name) };
    for request in [login(), rename()] {
        let answer = ask(&mut front, SHOP, &cookie, request).await?;
        assert_eq!(answer.status, 200, "{}", answer.show());
        assert_eq!(answer.header("access-control-allow-origin"), Some(SHOP), "{:?}", answer.headers);
    }
    for request in [login(), rename()] {
        let answer = ask(&mut front, "https://evil.example", &cookie, request).await?;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "gateway.cross_origin"),
            "{}",
            answer.show()
        );
    }
    Ok(())
}

/// A browser whose session was revoked still sends its cookies. Public pages work, and the first
/// refresh clears the cookies.
pub(crate) async fn revoked_session_cookies_are_ignored_and_cleared(
    installation: &Installation,
) -> anyhow::Result<()> {
    let mut front = installation.connect();
    let person = people::register(&mut front, "thrown-out@example.com").await?;
    let cookie = format!("access_token={}; refresh_token={}", person.access, person.refresh);
    let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
    let get = |path| Request { headers: &headers, ..Request::get(path) };
    people::logout(&mut front, &person).await?;
    until(PATIENCE, async || {
        let mine = front.send(&get("/api/reservations/my")).await;
        mine.is_ok_and(|answer| answer.code() == "auth.token_revoked")
    })
    .await;
    for path in ["/api/events", "/api/time", "/api/openapi.json", "/api/docs"] {
        let answer = front.send(&get(path)).await?;
        assert_eq!(answer.status, 200, "{path}: {}", answer.show());
    }
    let refresh = Request { method: "POST", headers: &headers, ..Request::get("/api/auth/refresh") };
    let refused = front.send(&refresh).await?;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (401, "auth.refresh_invalid"),
        "{}",
        refused.show()
    );
    let cleared: Vec<_> = refused
        .headers
        .iter()
        .filter(|(name, value)| name == "set-cookie" && value.contains("Max-Age=0"))
        .collect();
    assert_eq!(cleared.len(), 2, "{:?}", refused.headers);
    Ok(())
}
