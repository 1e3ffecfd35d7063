//! The second factor of administrators, and over HTTP.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use urr_contracts::auth::{DisableSecondFactor, Error, Me, Sensitive, SetRole, SignedIn};
use urr_kernel::{CommonError, Role};

use super::{
    http::ask,
    second_factor::{EMAIL, STEP, shown_by_app, turn_on},
    world::{PASSWORD, World, confirmed, home},
};

pub(crate) async fn an_admin_without_a_required_second_factor_has_user_rights(world: &World) {
    let required = Some(urr_auth::SecondFactor::Required);
    let world = &world.with(|parts| parts.settings.admin_second_factor = required);
    let user = world.register(EMAIL).await;
    let promote = SetRole { user: user.account.id, role: Role::Admin };
    world.auth.set_role(&world.system(), promote).await.unwrap();
    let bare = world.login(EMAIL, PASSWORD).await.unwrap();
    assert_eq!(bare.account.role, Role::Admin);
    let role = |signed_in: &SignedIn| world.verify(&signed_in.access_token).access.role;
    assert_eq!(role(&bare), Role::UnprovenAdmin);
    let renewed = world.refresh(&bare.refresh_token).await.unwrap();
    assert_eq!(role(&renewed), Role::UnprovenAdmin, "a refresh does not add the second factor");
    let unproven = world.with_role(user.account.id, role(&bare));
    let nobody = SetRole { user: world.ids.next(), role: Role::User };
    assert_eq!(
        world.auth.set_role(&unproven, nobody).await,
        Err(Error::Common(CommonError::SecondFactorRequired))
    );

    let token = json!({ "token": bare.access_token });
    let (_, valid) = ask(world, Method::POST, "/api/auth/verify-token").json(&token).answer().await;
    assert_eq!(valid["user"]["role"], "unproven_admin", "the token's role is not admin");
    let path = format!("/api/admin/users/{}/role", user.account.id);
    let give = |role: &str| ask(world, Method::PUT, &path).json(&json!({ "role": role }));
    let (status, refused) = give("user").by_role(Role::UnprovenAdmin).answer().await;
    assert_eq!((status, &refused["code"]), (StatusCode::FORBIDDEN, &json!("auth.second_factor_required")));
    let (status, _) = give("unproven_admin").by_role(Role::Admin).answer().await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "this role cannot be assigned");

    let phone = turn_on(world, &bare).await;
    assert_eq!(role(&phone.user), Role::Admin);
    assert_eq!(role(&world.refresh(&phone.user.refresh_token).await.unwrap()), Role::Admin);
    let request = DisableSecondFactor { proof: confirmed(PASSWORD), code: phone.code(world), origin: home() };
    let off = world.auth.disable_second_factor(&world.of(&phone.user), request).await.unwrap();
    assert_eq!(role(&off), Role::UnprovenAdmin);
}

pub(crate) async fn a_second_factor_over_http(world: &World) {
    let user = world.register(EMAIL).await;
    let post = |path: &str, body: &Value| ask(world, Method::POST, path).json(body);
    let body = json!({ "password": PASSWORD });
    let (status, made) = post("/api/auth/second-factor", &body).by(&user).answer().await;
    assert_eq!(status, StatusCode::CREATED);
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert!(made["uri"].as_str().unwrap().starts_with("otpauth://totp/URR:"));
    assert!(made["qr"].as_str().unwrap().contains("<svg "));
    let code = || shown_by_app(&secret, world.clock.now());
    let body = json!({ "code": code() });
    let (status, on) = post("/api/auth/second-factor/confirm", &body).by(&user).answer().await;
    assert_eq!((status, on["recoveryCodes"].as_array().unwrap().len()), (StatusCode::OK, 10));
    assert!(on["token"].is_string());

    let credentials = json!({ "email": EMAIL, "password": PASSWORD });
    let (status, needed) = post("/api/auth/login", &credentials).answer().await;
    assert_eq!((status, &needed["secondFactorRequired"]), (StatusCode::ACCEPTED, &json!(true)));
    assert!(needed["token"].is_null() && needed["expiresAt"].is_string());
    let pass = |code: &Sensitive| {
        post("/api/auth/login/second-factor", &json!({ "challenge": needed["challenge"], "code": code }))
    };
    let (status, wrong) = pass(&Sensitive::new("000000")).answer().await;
    assert_eq!((status, &wrong["code"]), (StatusCode::BAD_REQUEST, &json!("auth.wrong_code")));
    world.clock.advance(STEP);
    let (status, tokens) = pass(&code()).answer().await;
    assert_eq!((status, &tokens["message"]), (StatusCode::OK, &json!("Login successful")));
    assert!(tokens["recoveryCodes"].is_null());

    let id = user.account.id;
    let me = world.auth.me(&world.with_role(id, Role::User), Me {}).await.unwrap();
    assert!(me.second_factor);
    let (_, me) = ask(world, Method::GET, "/api/auth/me").by(&user).answer().await;
    assert_eq!(me["user"]["secondFactor"], true);
    world.clock.advance(STEP);
    let body = json!({ "code": code() });
    let (status, codes) = post("/api/auth/second-factor/recovery-codes", &body).by(&user).answer().await;
    assert_eq!((status, codes["recoveryCodes"].as_array().unwrap().len()), (StatusCode::OK, 10));
    let body = json!({ "password": PASSWORD, "code": codes["recoveryCodes"][0] });
    let off = ask(world, Method::DELETE, "/api/auth/second-factor").by(&user).json(&body);
    let (status, off) = off.answer().await;
    assert_eq!((status, &off["message"]), (StatusCode::OK, &json!("Second factor turned off")));
}
