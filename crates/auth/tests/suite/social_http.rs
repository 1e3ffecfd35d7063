//! The public routes of sign-in with a provider: formats, cookies and redirects.

use axum::{
    http::{Method, StatusCode, header},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use urr_contracts::auth::{Provider, SignedIn};

use super::{
    http::{ask, cookies, json_of},
    providers::{JISOO, MINJI, Person},
    world::{PASSWORD, World},
};

const PAGE: &str = "text/html,application/xhtml+xml";

fn location(response: &Response) -> &str {
    response.headers()[header::LOCATION].to_str().unwrap()
}

/// The value of a cookie set by a response, and its attributes.
fn cookie(response: &Response, name: &str) -> (String, String) {
    let set = cookies(response);
    let line = set.iter().find_map(|line| line.strip_prefix(&format!("{name}="))).expect("the cookie is set");
    let (value, how) = line.split_once("; ").unwrap();
    (value.to_owned(), how.to_owned())
}

/// Signs in at the provider; returns the path of the callback.
async fn way_back(world: &World, provider: Provider, location: &str, person: &Person) -> String {
    world.providers.is_used_by(person);
    let back = world.providers.visit(location).await;
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(back).finish();
    format!("/api/auth/{}/callback?{query}", provider.name())
}

/// A whole redirect flow of a browser.
async fn travel(world: &World, provider: Provider, person: &Person, accept: &str) -> Response {
    let path = format!("/api/auth/{}/start?returnTo=/events/7%3Fa%3Db", provider.name());
    let away = ask(world, Method::GET, &path).send().await;
    assert_eq!(away.status(), StatusCode::FOUND);
    let (state_token, how) = cookie(&away, "social_trip");
    assert_eq!(how, "Path=/api; Max-Age=600; HttpOnly; SameSite=Lax; Secure");
    let back = way_back(world, provider, location(&away), person).await;
    let state_token = format!("social_trip={state_token}");
    ask(world, Method::GET, &back)
        .header(header::COOKIE, &state_token)
        .header(header::ACCEPT, accept)
        .send()
        .await
}

fn agreements() -> Value {
    json!([{ "type": "SERVICE", "agreed": true }, { "type": "PRIVACY", "version": "1.0", "agreed": true }])
}

pub(crate) async fn google_sign_in_returns_the_documented_fields_and_cookies(world: &World) {
    let post = |body: &Value| ask(world, Method::POST, "/api/auth/google").json(body);
    let credential = world.providers.credential(&MINJI);
    let (status, body) = post(&json!({ "credential": credential })).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("auth.terms_required")));
    assert_eq!((&body["missing"], &body["version"]), (&json!(["SERVICE", "PRIVACY"]), &json!("1.0")));

    let response = post(&json!({ "credential": credential, "agreements": agreements() })).send().await;
    assert_eq!((response.status(), cookies(&response).len()), (StatusCode::OK, 2));
    let body = json_of(response).await;
    assert_eq!(body["message"], "Google login successful");
    assert_eq!(body["user"]["picture"], "https://pictures.example/p.png");
    assert_eq!(
        (&body["user"]["email"], &body["user"]["name"]),
        (&json!("minji@example.com"), &json!("김민지"))
    );
    assert!(body["token"].is_string() && body["refreshToken"].is_string());

    let (status, body) =
        post(&json!({ "credential": credential, "agreements": agreements() })).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("auth.credential_used")));
    let (status, body) = post(&json!({ "credential": "rubbish" })).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("auth.credential_invalid")));
    assert_eq!(body["error"], "Invalid Google token");
    let (status, _) = post(&json!({})).answer().await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    world.register("jisoo@example.com").await;
    let body = json!({ "credential": world.providers.credential(&JISOO), "agreements": agreements() });
    let (status, body) = post(&body).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::CONFLICT, &json!("auth.link_required")));
    assert_eq!(body["provider"], "google");
}

pub(crate) async fn a_credential_with_a_nonce_is_bound_to_one_browser(world: &World) {
    let offers = async |kept: &str| {
        let response =
            ask(world, Method::GET, "/api/auth/providers").header(header::COOKIE, kept).send().await;
        let state_token = (!cookies(&response).is_empty()).then(|| cookie(&response, "google_nonce"));
        let shown = json_of(response).await["providers"].clone();
        let nonces: Vec<_> = shown.as_array().unwrap().iter().map(|offer| offer["nonce"].clone()).collect();
        assert!(nonces[1].is_null() && nonces[2].is_null(), "only Google has a nonce: {shown}");
        (nonces[0].as_str().unwrap().to_owned(), state_token)
    };
    let (nonce, state_token) = offers("a=b").await;
    let (state_token, how) = state_token.unwrap();
    assert_eq!(how, "Path=/api; Max-Age=43200; HttpOnly; SameSite=Lax; Secure");
    let mine = format!("google_nonce={state_token}");
    assert_eq!(offers(&mine).await, (nonce.clone(), None), "a second window gets the same nonce");
    let (other, theirs) = offers("a=b").await;
    let theirs = format!("google_nonce={}", theirs.unwrap().0);
    assert_ne!((&nonce, &mine), (&other, &theirs));

    let credential = |nonce: Option<&str>| {
        let mut claims = world.providers.claims(&MINJI);
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        world.providers.sign(&claims)
    };
    let post = async |nonce: Option<&str>, kept: &str| {
        let body = json!({ "credential": credential(nonce), "agreements": agreements() });
        let asked = ask(world, Method::POST, "/api/auth/google").header(header::COOKIE, kept).json(&body);
        let (status, body) = asked.answer().await;
        if status == StatusCode::OK { Ok(()) } else { Err((status, body["code"].clone())) }
    };
    let refused = Err((StatusCode::FORBIDDEN, json!("auth.credential_invalid")));
    for (nonce, kept) in [
        (Some(nonce.as_str()), "a=b"),
        (Some(nonce.as_str()), theirs.as_str()),
        (Some(other.as_str()), mine.as_str()),
        (Some("made up"), mine.as_str()),
        (Some(nonce.as_str()), "google_nonce=rubbish"),
        (None, mine.as_str()),
    ] {
        assert_eq!(post(nonce, kept).await, refused, "{nonce:?} {kept}");
    }
    assert_eq!(post(Some(&nonce), &mine).await, Ok(()));
    assert_eq!(post(Some(&other), &theirs).await, Ok(()));
    assert_eq!(post(None, "a=b").await, Ok(()), "a page without a nonce");

    world.clock.advance(std::time::Duration::from_hours(7));
    assert!(offers(&mine).await.1.is_some(), "the state token is renewed before it expires");
    world.clock.advance(std::time::Duration::from_hours(5));
    assert_eq!(post(Some(&nonce), &mine).await, refused, "the old nonce is then invalid");
}

/// Every other token of a browser, with a credential whose nonce was derived from it: only the kind
/// is wrong.
pub(crate) async fn other_token_kinds_are_not_accepted_as_nonce_slips(world: &World) {
    let owner = world.register("owner@example.com").await;
    let away = ask(world, Method::GET, "/api/auth/kakao/start").send().await;
    let offered = travel(world, Provider::Kakao, &JISOO, PAGE).await;
    let shown = ask(world, Method::GET, "/api/auth/providers").send().await;
    let post = async |kept: &str| {
        let hash = Sha256::new().chain_update("nonce").chain_update([0]).chain_update(kept).finalize();
        let mut claims = world.providers.claims(&MINJI);
        claims["nonce"] = json!(URL_SAFE_NO_PAD.encode(hash));
        let body = json!({ "credential": world.providers.sign(&claims), "agreements": agreements() });
        let kept = format!("google_nonce={kept}");
        let asked = ask(world, Method::POST, "/api/auth/google").header(header::COOKIE, &kept).json(&body);
        let (status, body) = asked.answer().await;
        (status.as_u16(), body["code"].as_str().unwrap_or_default().to_owned())
    };
    for (kind, token) in [
        ("an access token", owner.access_token.expose()),
        ("a refresh token", owner.refresh_token.expose()),
        ("the state token of a trip", &cookie(&away, "social_trip").0),
        ("the state token of signing up", &cookie(&offered, "social_sign_up").0),
    ] {
        assert_eq!(post(token).await, (403, "auth.credential_invalid".to_owned()), "{kind}");
    }
    assert_eq!(post(&cookie(&shown, "google_nonce").0).await.0, 200, "its own state token is accepted");
}

pub(crate) async fn the_redirect_flow_ends_on_a_page_of_this_site(world: &World) {
    let offered = travel(world, Provider::Kakao, &MINJI, PAGE).await;
    assert_eq!(offered.status(), StatusCode::SEE_OTHER);
    assert_eq!(location(&offered), "/register?provider=kakao&returnTo=%2Fevents%2F7%3Fa%3Db");
    let (state_token, how) = cookie(&offered, "social_sign_up");
    assert_eq!(how, "Path=/api; Max-Age=1800; HttpOnly; SameSite=Lax; Secure");
    assert_eq!(cookie(&offered, "social_trip").0, "", "the state token is cleared");
    let state_token = format!("social_sign_up={state_token}");
    let asked = |method| ask(world, method, "/api/auth/sign-up").header(header::COOKIE, &state_token);
    let (status, shown) = asked(Method::GET).answer().await;
    assert_eq!((status, &shown["provider"]), (StatusCode::OK, &json!("kakao")));
    assert_eq!((&shown["email"], &shown["emailVerified"]), (&json!("minji@example.com"), &json!(true)));
    assert_eq!((&shown["name"], &shown["termsVersion"]), (&json!("김민지"), &json!("1.0")));

    let (status, body) = asked(Method::POST).json(&json!({})).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("auth.terms_required")));
    let body = json!({ "agreements": agreements(), "name": "민지" });
    let made = asked(Method::POST).json(&body).send().await;
    assert_eq!((made.status(), cookies(&made).len()), (StatusCode::CREATED, 3));
    assert_eq!(cookie(&made, "social_sign_up").0, "");
    assert_eq!(json_of(made).await["user"]["name"], "민지");
    let (status, body) = asked(Method::POST).json(&body).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("auth.sign_up_invalid")));

    let entered = travel(world, Provider::Kakao, &MINJI, PAGE).await;
    assert_eq!((entered.status(), location(&entered)), (StatusCode::SEE_OTHER, "/events/7?a=b"));
    let (access, _) = cookie(&entered, "access_token");
    assert!(!access.is_empty() && !cookie(&entered, "refresh_token").0.is_empty());
    let (status, body) = ask(world, Method::GET, "/api/auth/sign-up").answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("auth.sign_up_invalid")));
}

pub(crate) async fn browsers_get_an_error_page_and_programs_get_json(world: &World) {
    world.register("minji@example.com").await;
    let shown = travel(world, Provider::Google, &MINJI, PAGE).await;
    assert_eq!(shown.status(), StatusCode::SEE_OTHER);
    assert_eq!(location(&shown), "/login?error=auth.link_required&provider=google");
    assert_eq!(cookie(&shown, "social_trip").0, "");
    let told = travel(world, Provider::Google, &MINJI, "application/json").await;
    assert_eq!((told.status(), cookie(&told, "social_trip").0.as_str()), (StatusCode::CONFLICT, ""));
    assert_eq!(json_of(told).await["code"], "auth.link_required");
    let stray = "/api/auth/google/callback?code=x&state=y";
    let (status, body) = ask(world, Method::GET, stray).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("auth.trip_invalid")));
    let planted = ask(world, Method::GET, stray).header(header::COOKIE, "social_trip=a; social_trip=b");
    assert_eq!(planted.answer().await.0, StatusCode::FORBIDDEN);
}

pub(crate) async fn open_redirects_are_refused(world: &World) {
    for bad in [
        "//evil.example",
        "https://evil.example",
        "https:evil.example",
        "\\\\evil.example",
        "/\\evil.example",
        "/%09/evil.example\t",
        "javascript:alert(1)",
        "evil.example",
        "/api/auth/logout",
    ] {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("returnTo", bad).finish();
        for provider in Provider::ALL {
            let path = format!("/api/auth/{}/start?{query}", provider.name());
            let (status, body) = ask(world, Method::GET, &path).answer().await;
            assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("auth.invalid")), "{bad}");
            assert_eq!(body["field"], "returnTo");
        }
    }
    assert_eq!(world.providers.hits("/.well-known/openid-configuration"), 0);
}

pub(crate) async fn disabled_providers_get_404_with_a_code(world: &World) {
    let world = &world.with(|parts| parts.social = urr_auth::Social::default());
    let (_, body) = ask(world, Method::GET, "/api/auth/providers").answer().await;
    assert_eq!(body, json!({ "providers": [] }));
    let user = world.register("minji@example.com").await;
    let credential = json!({ "credential": "x" });
    for asked in [
        ask(world, Method::POST, "/api/auth/google").json(&credential),
        ask(world, Method::GET, "/api/auth/google/start"),
        ask(world, Method::GET, "/api/auth/naver/callback?code=x&state=y"),
        ask(world, Method::GET, "/api/auth/myspace/start"),
        ask(world, Method::POST, "/api/auth/link/google").by(&user).json(&json!({ "password": PASSWORD })),
        ask(world, Method::POST, "/api/auth/link/myspace").by(&user).json(&json!({ "password": PASSWORD })),
    ] {
        let (status, body) = asked.answer().await;
        assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!("auth.provider_off")));
    }
    let pressed =
        ask(world, Method::GET, "/api/auth/google/start").header(header::ACCEPT, "text/html,*/*;q=0.8");
    let response = pressed.send().await;
    assert_eq!(
        (response.status(), response.headers()[header::LOCATION].to_str().unwrap()),
        (StatusCode::FOUND, "/login?error=auth.provider_off&provider=google"),
        "a browser gets a page"
    );
}

async fn providers_of(world: &World, user: &SignedIn) -> Value {
    let (status, body) = ask(world, Method::GET, "/api/auth/linked").by(user).answer().await;
    assert_eq!(status, StatusCode::OK);
    body
}

pub(crate) async fn a_user_links_and_unlinks_over_http(world: &World) {
    let (_, body) = ask(world, Method::GET, "/api/auth/providers").answer().await;
    assert_eq!(body["providers"].as_array().unwrap().len(), 3);
    let google = &body["providers"][0];
    assert_eq!((&google["provider"], &google["start"]), (&json!("google"), &json!("/api/auth/google/start")));
    assert_eq!(google["clientId"], super::providers::CLIENT_ID);

    let user = world.register("minji@example.com").await;
    assert_eq!(providers_of(world, &user).await, json!({ "password": true, "accounts": [] }));
    let link = |path: &str, body: &Value| ask(world, Method::POST, path).by(&user).json(body);
    let credential = world.providers.credential(&MINJI);
    let body = json!({ "password": PASSWORD, "credential": credential });
    let (status, body) = link("/api/auth/link/google", &body).answer().await;
    assert_eq!((status, &body["linked"]["provider"]), (StatusCode::OK, &json!("google")));

    world.clock.advance(std::time::Duration::from_secs(1));
    let body = json!({ "password": PASSWORD, "returnTo": "/settings" });
    let response = link("/api/auth/link/naver", &body).send().await;
    let (state_token, _) = cookie(&response, "social_trip");
    let away = json_of(response).await["location"].as_str().unwrap().to_owned();
    let back = way_back(world, Provider::Naver, &away, &JISOO).await;
    let state_token = format!("social_trip={state_token}");
    let linked = ask(world, Method::GET, &back).by(&user).header(header::COOKIE, &state_token).send().await;
    assert_eq!((linked.status(), location(&linked)), (StatusCode::SEE_OTHER, "/settings"));
    let found = providers_of(world, &user).await;
    let names: Vec<_> = found["accounts"].as_array().unwrap().iter().map(|one| &one["provider"]).collect();
    assert_eq!(names, [&json!("google"), &json!("naver")]);

    let unlink = |body: &Value| ask(world, Method::DELETE, "/api/auth/link/google").by(&user).json(body);
    let (status, body) = unlink(&json!({ "password": "not my password" })).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("auth.wrong_password")));
    assert_eq!(unlink(&json!({ "password": PASSWORD })).answer().await.0, StatusCode::OK);
    let (status, body) = unlink(&json!({ "password": PASSWORD })).answer().await;
    assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!("auth.not_linked")));
}
