//! The public routes: formats, cookies, codes and required sign-in.

use std::net::{IpAddr, Ipv4Addr};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use urr_contracts::auth::{Sensitive, SignedIn};
use urr_http::ClientAddress;
use urr_kernel::{Actor, Role};

use super::world::{PASSWORD, World, verifier};

/// One request through the routes, as forwarded by the gateway.
pub(crate) struct Asked<'w> {
    world: &'w World,
    method: Method,
    path: String,
    body: Option<String>,
    headers: Vec<(header::HeaderName, String)>,
    bearer: Option<Sensitive>,
    actor: Actor,
}

pub(crate) fn ask<'w>(world: &'w World, method: Method, path: &str) -> Asked<'w> {
    let (path, actor) = (path.to_owned(), Actor::Anonymous);
    Asked { world, method, path, body: None, headers: Vec::new(), bearer: None, actor }
}

impl Asked<'_> {
    pub(crate) fn json(self, body: &Value) -> Self {
        self.untyped(body).header(header::CONTENT_TYPE, "application/json")
    }

    /// A JSON body without its content type.
    fn untyped(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string());
        self
    }

    pub(crate) fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn by(mut self, user: &SignedIn) -> Self {
        self.bearer = Some(user.access_token.clone());
        self.actor = Actor::User { id: user.account.id, role: user.account.role };
        self
    }

    pub(crate) fn by_role(mut self, role: Role) -> Self {
        self.actor = Actor::User { id: self.world.ids.next(), role };
        self
    }

    pub(crate) async fn send(self) -> Response {
        let mut request = Request::builder().method(self.method).uri(&self.path).extension(self.actor);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request = request.extension(ClientAddress(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))));
        if let Some(token) = self.bearer {
            let now = self.world.clock.now();
            request = request.extension(verifier().verify(token.expose(), now).unwrap());
        }
        let body = self.body.map_or_else(Body::empty, Body::from);
        let routes = Router::from(urr_auth::routes(&self.world.service));
        routes.oneshot(request.body(body).unwrap()).await.unwrap()
    }

    pub(crate) async fn answer(self) -> (StatusCode, Value) {
        let response = self.send().await;
        (response.status(), json_of(response).await)
    }
}

pub(crate) async fn json_of(response: Response) -> Value {
    let body = to_bytes(response.into_body(), 1_000_000).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

pub(crate) fn cookies(response: &Response) -> Vec<String> {
    let lines = response.headers().get_all(header::SET_COOKIE).iter();
    lines.map(|line| line.to_str().unwrap().to_owned()).collect()
}

fn registration() -> Value {
    json!({
        "email": "minji@example.com", "password": PASSWORD, "name": "김민지", "phone": "010-1234-5678",
        "agreements": [
            { "type": "SERVICE", "version": "1.0", "agreed": true },
            { "type": "PRIVACY", "agreed": true },
        ],
    })
}

pub(crate) async fn registration_returns_the_documented_fields_and_cookies(world: &World) {
    let response = ask(world, Method::POST, "/api/auth/register").json(&registration()).send().await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let [access, refresh] = &cookies(&response)[..] else { panic!("two cookies") };
    let body = json_of(response).await;
    assert_eq!(body["message"], "Registration completed");
    assert_eq!(body["user"]["id"], body["user"]["userId"]);
    assert_eq!(
        (&body["user"]["email"], &body["user"]["role"]),
        (&json!("minji@example.com"), &json!("user"))
    );
    let token = |name: &str| body[name].as_str().unwrap().to_owned();
    let expected =
        format!("access_token={}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure", token("token"));
    assert_eq!(access, &expected);
    let expected = format!(
        "refresh_token={}; Path=/api; Max-Age=604800; HttpOnly; SameSite=Lax; Secure",
        token("refreshToken")
    );
    assert_eq!(refresh, &expected);

    let (status, again) = ask(world, Method::POST, "/api/auth/register").json(&registration()).answer().await;
    assert_eq!((status, &again["code"]), (StatusCode::CONFLICT, &json!("auth.already_registered")));
    let advice = "An account with this email address already exists. Sign in or reset your password.";
    assert_eq!(again["error"], advice);
}

pub(crate) async fn localhost_cookies_are_not_secure(world: &World) {
    let world = &world.with(|parts| parts.settings.cookie_secure = Some(false));
    let response = ask(world, Method::POST, "/api/auth/register").json(&registration()).send().await;
    let kept = cookies(&response);
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|cookie| cookie.ends_with("; HttpOnly; SameSite=Lax")), "{kept:?}");
}

pub(crate) async fn a_day_with_an_account(world: &World) {
    world.register("minji@example.com").await;
    let credentials = json!({ "email": "minji@example.com", "password": PASSWORD });
    let login = ask(world, Method::POST, "/api/auth/login").json(&credentials);
    let (status, body) = login.header(header::USER_AGENT, "Firefox").answer().await;
    assert_eq!((status, &body["message"]), (StatusCode::OK, &json!("Login successful")));
    let user = world.login("minji@example.com", PASSWORD).await.unwrap();

    let (status, me) = ask(world, Method::GET, "/api/auth/me").by(&user).answer().await;
    assert_eq!(status, StatusCode::OK);
    for name in ["id", "email", "name", "role", "createdAt", "emailVerified", "language"] {
        assert!(!me["user"][name].is_null(), "{name} is missing in {me}");
    }
    let change = json!({ "name": "Minji", "phone": "", "language": "en", "marketing": true });
    let (_, changed) = ask(world, Method::PATCH, "/api/auth/me").by(&user).json(&change).answer().await;
    assert_eq!(changed["user"]["name"], "Minji");
    assert_eq!((&changed["user"]["phone"], &changed["user"]["marketing"]), (&Value::Null, &json!(true)));

    let change = async |body: Value| {
        let (_, changed) = ask(world, Method::PATCH, "/api/auth/me").by(&user).json(&body).answer().await;
        changed["user"]["phone"].clone()
    };
    assert_eq!(change(json!({ "phone": "010-1234-5678" })).await, "+821012345678");
    assert_eq!(change(json!({})).await, "+821012345678", "omitted fields keep their value");
    assert_eq!(change(json!({ "phone": null })).await, Value::Null, "null removes the value");

    let (_, body) = ask(world, Method::GET, "/api/auth/sessions").by(&user).answer().await;
    let sessions = body["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 3);
    let current: Vec<_> = sessions.iter().filter(|session| session["current"] == true).collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0]["id"], json!(user.session));
    let other = sessions.iter().find(|session| session["agent"] == "Firefox" && session["current"] == false);
    let path = format!("/api/auth/sessions/{}", other.unwrap()["id"].as_str().unwrap());
    assert_eq!(ask(world, Method::DELETE, &path).by(&user).answer().await.0, StatusCode::OK);
    let (status, gone) = ask(world, Method::DELETE, &path).by(&user).answer().await;
    assert_eq!((status, &gone["code"]), (StatusCode::NOT_FOUND, &json!("auth.session_not_found")));

    let (_, body) = ask(world, Method::GET, "/api/auth/history?limit=2").by(&user).answer().await;
    assert_eq!(body["history"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&body["history"][0]["success"], &body["history"][0]["method"]),
        (&json!(true), &json!("password"))
    );
    assert_eq!(body["history"][0]["address"], "192.0.2.1");

    let token = json!({ "token": user.access_token });
    let (status, valid) = ask(world, Method::POST, "/api/auth/verify-token").json(&token).answer().await;
    assert_eq!(
        (status, &valid["valid"], &valid["user"]["userId"]),
        (StatusCode::OK, &json!(true), &me["user"]["id"])
    );
}

pub(crate) async fn signing_out_clears_the_cookies_and_ends_the_session(world: &World) {
    let user = world.register("minji@example.com").await;
    let response = ask(world, Method::POST, "/api/auth/logout").by(&user).send().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        cookies(&response),
        [
            "access_token=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure",
            "refresh_token=; Path=/api; Max-Age=0; HttpOnly; SameSite=Lax; Secure",
        ]
    );
    assert_eq!(json_of(response).await["message"], "Logged out successfully");
    assert!(world.is_revoked(&user).await);
    let token = json!({ "token": user.access_token });
    let (status, refused) = ask(world, Method::POST, "/api/auth/verify-token").json(&token).answer().await;
    assert_eq!((status, &refused["code"]), (StatusCode::UNAUTHORIZED, &json!("auth.token_invalid")));

    let late = world.login("minji@example.com", PASSWORD).await.unwrap();
    let cookie = format!("x=1; refresh_token={}", late.refresh_token.expose());
    let (status, _) =
        ask(world, Method::POST, "/api/auth/logout").header(header::COOKIE, &cookie).answer().await;
    assert_eq!(status, StatusCode::OK);
    assert!(world.is_revoked(&late).await, "the cookie alone is enough");
    assert_eq!(ask(world, Method::POST, "/api/auth/logout").answer().await.0, StatusCode::OK);

    let one = world.login("minji@example.com", PASSWORD).await.unwrap();
    let two = world.login("minji@example.com", PASSWORD).await.unwrap();
    let everywhere = json!({ "everywhere": true });
    let untyped = ask(world, Method::POST, "/api/auth/logout").by(&one).untyped(&everywhere);
    let (status, refused) = untyped.answer().await;
    let unsupported = (StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!("http.unsupported_media_type"));
    assert_eq!((status, &refused["code"]), unsupported, "unknown fields are refused");
    assert!(!world.is_revoked(&one).await);
    let (status, _) = ask(world, Method::POST, "/api/auth/logout").by(&one).json(&everywhere).answer().await;
    assert_eq!(status, StatusCode::OK);
    assert!(world.is_revoked(&one).await && world.is_revoked(&two).await);
}

pub(crate) async fn a_refresh_token_comes_in_the_cookie_or_in_the_body(world: &World) {
    let user = world.register("minji@example.com").await;
    let refresh = || ask(world, Method::POST, "/api/auth/refresh");
    let cookie = format!("refresh_token={}", user.refresh_token.expose());
    let response = refresh().header(header::COOKIE, &cookie).send().await;
    assert_eq!((response.status(), cookies(&response).len()), (StatusCode::OK, 2));
    let body = json_of(response).await;
    assert_eq!(body["message"], "Token refreshed");
    let (status, next) = refresh().json(&json!({ "refreshToken": body["refreshToken"] })).answer().await;
    assert_eq!(status, StatusCode::OK);
    let newest = next["refreshToken"].as_str().unwrap();
    let planted = format!("refresh_token={newest}; refresh_token=planted");
    for (asked, code) in [
        (refresh(), "auth.refresh_required"),
        (refresh().json(&json!({})), "auth.refresh_required"),
        (refresh().header(header::COOKIE, "refresh_token="), "auth.refresh_required"),
        (refresh().json(&json!({ "refreshToken": "rubbish" })), "auth.refresh_invalid"),
        (refresh().json(&json!({ "refreshToken": 7 })), "http.bad_request"),
        (refresh().header(header::COOKIE, &planted), "auth.refresh_invalid"),
        (
            refresh().header(header::COOKIE, &format!("refresh_token={}", next["token"])),
            "auth.refresh_invalid",
        ),
    ] {
        let (status, body) = asked.answer().await;
        let refused =
            if code == "auth.refresh_invalid" { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
        assert_eq!((status, &body["code"]), (refused, &json!(code)));
    }
    world.refresh(&Sensitive::new(newest)).await.unwrap();
}

/// The cookies are `HttpOnly`: only the server can delete those of an ended session.
pub(crate) async fn a_refresh_after_session_end_clears_the_cookies(world: &World) {
    let refresh = async |token: &str| {
        let cookie = format!("access_token=x; refresh_token={token}");
        let asked = ask(world, Method::POST, "/api/auth/refresh").header(header::COOKIE, &cookie);
        let response = asked.send().await;
        let cleared = cookies(&response).iter().filter(|cookie| cookie.contains("=; ")).count();
        (cleared, json_of(response).await["code"].clone())
    };
    let gone = world.register("gone@example.com").await;
    ask(world, Method::POST, "/api/auth/logout").by(&gone).send().await;
    assert_eq!(refresh(gone.refresh_token.expose()).await, (2, json!("auth.refresh_invalid")));
    assert_eq!(refresh("one; refresh_token=another").await, (2, json!("auth.refresh_invalid")));
    assert_eq!(refresh("").await, (0, json!("auth.refresh_required")), "no cookie to clear");
    let stolen = world.register("stolen@example.com").await;
    world.refresh(&stolen.refresh_token).await.unwrap();
    world.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(refresh(stolen.refresh_token.expose()).await, (2, json!("auth.refresh_reused")));
}

pub(crate) async fn passwords_and_links_over_http(world: &World) {
    let user = world.register("minji@example.com").await;
    let post = |path: &str, body: &Value| ask(world, Method::POST, path).json(body);
    let token = world.proof_link("minji@example.com").await;
    let follow = json!({ "token": token });
    let (status, body) = post("/api/auth/email/verify", &follow).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("auth.proof_required")));
    let proved = json!({ "token": token, "password": PASSWORD });
    assert_eq!(post("/api/auth/email/verify", &proved).answer().await.0, StatusCode::OK);
    let (status, body) = post("/api/auth/email/verify", &follow).by(&user).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("auth.link_invalid")));
    let another = || ask(world, Method::POST, "/api/auth/email/verification");
    let (status, body) = another().by(&user).answer().await;
    assert_eq!(
        (status, &body["message"]),
        (StatusCode::OK, &json!("Your e-mail address is verified already"))
    );
    let unproved = world.register("jisoo@example.com").await;
    assert_eq!(another().by(&unproved).answer().await.0, StatusCode::ACCEPTED);

    let change = json!({ "currentPassword": PASSWORD, "newPassword": "an even longer sentence" });
    let response = post("/api/auth/password", &change).by(&user).send().await;
    assert_eq!((response.status(), cookies(&response).len()), (StatusCode::OK, 2));
    for email in ["minji@example.com", "nobody@example.com"] {
        let (status, _) = post("/api/auth/password/forgot", &json!({ "email": email })).answer().await;
        assert_eq!(status, StatusCode::ACCEPTED);
    }
    let token = world.reset_link("minji@example.com").await;
    let (status, _) =
        post("/api/auth/password/reset", &json!({ "token": token, "password": PASSWORD })).answer().await;
    assert_eq!(status, StatusCode::OK);
    let user = world.login("minji@example.com", PASSWORD).await.unwrap();
    let close = ask(world, Method::DELETE, "/api/auth/me").by(&user).json(&json!({ "password": PASSWORD }));
    let response = close.send().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(cookies(&response).iter().all(|cookie| cookie.contains("Max-Age=0")));
}

pub(crate) async fn an_admin_gives_a_role(world: &World) {
    let (admin, user) = (world.admin().await, world.register("minji@example.com").await);
    let path = format!("/api/admin/users/{}/role", user.account.id);
    let give = |role: &str| ask(world, Method::PUT, &path).json(&json!({ "role": role }));
    let (status, body) = give("admin").by(&admin).answer().await;
    assert_eq!((status, &body["user"]["role"]), (StatusCode::OK, &json!("admin")));
    let (status, body) = give("emperor").by(&admin).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("http.bad_request")));
    let path = format!("/api/admin/users/{}/role", world.ids.next::<urr_kernel::UserId>());
    let (status, _) =
        ask(world, Method::PUT, &path).by(&admin).json(&json!({ "role": "user" })).answer().await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

pub(crate) async fn throttling_sets_the_retry_after_header(world: &World) {
    let credentials = json!({ "email": "nobody@example.com", "password": PASSWORD });
    let login = || ask(world, Method::POST, "/api/auth/login").json(&credentials);
    for _ in 0..5 {
        let (status, body) = login().answer().await;
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("auth.invalid_credentials")));
    }
    let response = login().send().await;
    assert_eq!(
        (response.status(), &response.headers()[header::RETRY_AFTER]),
        (StatusCode::TOO_MANY_REQUESTS, &"1".parse().unwrap())
    );
    let body = json_of(response).await;
    assert_eq!((&body["code"], &body["wait_secs"]), (&json!("auth.too_many_attempts"), &json!(1)));
    assert_eq!(body["message"], "Too many attempts; please wait 1 second and try again");
}

pub(crate) async fn malformed_requests_get_400_with_a_code(world: &World) {
    for (path, body, code) in [
        ("/api/auth/register", json!({}), "http.bad_request"),
        ("/api/auth/register", json!({ "email": "x", "password": "y", "name": "z" }), "auth.invalid"),
        ("/api/auth/login", json!({ "email": "minji@example.com" }), "http.bad_request"),
        ("/api/auth/login", json!({ "email": "nonsense", "password": "x" }), "auth.invalid"),
        ("/api/auth/password/forgot", json!({ "email": "nonsense" }), "auth.invalid"),
        ("/api/auth/verify-token", json!({}), "http.bad_request"),
        ("/api/auth/login", json!(["minji@example.com", PASSWORD]), "http.bad_request"),
        ("/api/auth/logout", json!([null, true]), "http.bad_request"),
    ] {
        let (status, answer) = ask(world, Method::POST, path).json(&body).answer().await;
        assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!(code)), "{path} {body}");
    }
    let mut old = registration();
    old["agreements"] = json!([]);
    let (status, answer) = ask(world, Method::POST, "/api/auth/register").json(&old).answer().await;
    assert_eq!((status, &answer["missing"]), (StatusCode::BAD_REQUEST, &json!(["SERVICE", "PRIVACY"])));
}
