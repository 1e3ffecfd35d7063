//! HTTP handlers: parsing and responses only.

use axum::{extract::State, response::Response};
use schemars::JsonSchema;
use serde::Deserialize;
use urr_contracts::auth::{Auth as _, ChangePassword, ForgotPassword, ResetPassword, Sensitive};
use urr_http::{About, Class, Json, PUBLIC, Problem, Routes, StatusCode, USER};
use urr_rpc::{Ctx, problem};

use crate::api::{Api, CameFrom, OnlyUsers, Said, Tokens, said, signed_in};

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .post("/api/auth/password", USER.limit(Class::Auth).critical(), change)
        .about(
            About::new("Sets a new password and ends every other session")
                .body::<Change>()
                .answer::<Tokens>(StatusCode::OK),
        )
        .post("/api/auth/password/forgot", PUBLIC.limit(Class::Auth).critical(), forgot)
        .about(
            About::new("Mails a link with which a new password can be set")
                .body::<Forgot>()
                .answer::<Said>(StatusCode::ACCEPTED),
        )
        .post("/api/auth/password/reset", PUBLIC.limit(Class::Auth).critical(), reset)
        .about(
            About::new("Sets a new password with a mailed link and ends every session")
                .body::<Reset>()
                .answer::<Said>(StatusCode::OK),
        )
}

/// Body of `POST /api/auth/password`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PasswordChange")]
struct Change {
    current_password: Sensitive,
    new_password: Sensitive,
}

async fn change(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    CameFrom(origin): CameFrom,
    Json(body): Json<Change>,
) -> Result<Response, Problem> {
    let request = ChangePassword { current: body.current_password, new: body.new_password, origin };
    let changed = auth.change_password(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(signed_in(&auth, StatusCode::OK, "Password changed", changed))
}

/// Body of `POST /api/auth/password/forgot`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ForgottenPassword")]
struct Forgot {
    email: String,
}

async fn forgot(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    Json(Forgot { email }): Json<Forgot>,
) -> Result<(StatusCode, Json<Said>), Problem> {
    auth.forgot_password(&ctx, ForgotPassword { email }).await.map_err(|error| problem(&error))?;
    Ok((StatusCode::ACCEPTED, said("If there is an account with this address, a mail is on its way")))
}

/// Body of `POST /api/auth/password/reset`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PasswordReset")]
struct Reset {
    token: Sensitive,
    password: Sensitive,
}

async fn reset(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    Json(Reset { token, password }): Json<Reset>,
) -> Result<Json<Said>, Problem> {
    let request = ResetPassword { token, new: password, origin };
    auth.reset_password(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(said("Password changed; please sign in"))
}
