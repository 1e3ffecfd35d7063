//! HTTP handlers: parsing and responses only.

use axum::{extract::State, response::Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::auth::{
    Auth as _, ConfirmSecondFactor, DisableSecondFactor, EnrolSecondFactor, OwnerProof, PassSecondFactor,
    RenewRecoveryCodes, Sensitive,
};
use urr_http::{About, Class, Json, PUBLIC, Problem, Routes, StatusCode, USER};
use urr_rpc::{Ctx, problem};

use crate::api::{Api, CameFrom, Current, OnlyUsers, Tokens, signed_in, signed_in_with_codes};

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .post("/api/auth/login/second-factor", PUBLIC.limit(Class::Auth).critical(), pass)
        .about(
            About::new("Signs in with a code, after the password")
                .body::<Passing>()
                .answer::<Tokens>(StatusCode::OK)
                .refuses([StatusCode::UNAUTHORIZED, StatusCode::CONFLICT]),
        )
        .post("/api/auth/second-factor", USER.limit(Class::Auth).critical(), enrol)
        .about(
            About::new("Makes a secret for an authenticator app")
                .body::<Enrolling>()
                .answer::<Enrolled>(StatusCode::CREATED)
                .refuses([StatusCode::CONFLICT]),
        )
        .delete("/api/auth/second-factor", USER.limit(Class::Auth).critical(), disable)
        .about(
            About::new("Turns the second factor off")
                .body::<Disabling>()
                .answer::<Tokens>(StatusCode::OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .post("/api/auth/second-factor/confirm", USER.limit(Class::Auth).critical(), confirm)
        .about(
            About::new("Turns the second factor on")
                .body::<Coded>()
                .answer::<Tokens>(StatusCode::OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .post("/api/auth/second-factor/recovery-codes", USER.limit(Class::Auth).critical(), renew)
        .about(
            About::new("Replaces the recovery codes")
                .body::<Coded>()
                .answer::<Codes>(StatusCode::OK)
                .refuses([StatusCode::CONFLICT]),
        )
}

/// Body of `POST /api/auth/login/second-factor`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PassSecondFactor")]
struct Passing {
    challenge: Sensitive,
    /// Six digits, or a recovery code.
    code: Sensitive,
}

async fn pass(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    Json(Passing { challenge, code }): Json<Passing>,
) -> Result<Response, Problem> {
    let request = PassSecondFactor { challenge, code, origin };
    let tokens = auth.pass_second_factor(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(signed_in(&auth, StatusCode::OK, "Login successful", tokens))
}

/// Body of `POST /api/auth/second-factor`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "EnrolSecondFactor")]
struct Enrolling {
    /// Required if the account has a password.
    #[serde(default)]
    password: Option<Sensitive>,
}

async fn enrol(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    CameFrom(origin): CameFrom,
    Current(session): Current,
    Json(Enrolling { password }): Json<Enrolling>,
) -> Result<(StatusCode, Json<Enrolled>), Problem> {
    let request = EnrolSecondFactor { proof: OwnerProof { password, session }, origin };
    let made = auth.enrol_second_factor(&ctx, request).await.map_err(|error| problem(&error))?;
    let qr = urr_http::qr_svg(made.uri.expose()).map(Sensitive::new);
    Ok((StatusCode::CREATED, Json(Enrolled { secret: made.secret, uri: made.uri, qr })))
}

/// Parameters for an authenticator app. Returned once.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SecondFactorSecret")]
struct Enrolled {
    secret: Sensitive,
    uri: Sensitive,
    /// `uri` as a QR code: an SVG document.
    #[serde(skip_serializing_if = "Option::is_none")]
    qr: Option<Sensitive>,
}

/// Body of `POST /api/auth/second-factor/confirm` and `…/recovery-codes`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "SecondFactorCode")]
struct Coded {
    code: Sensitive,
}

async fn confirm(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    CameFrom(origin): CameFrom,
    Json(Coded { code }): Json<Coded>,
) -> Result<Response, Problem> {
    let request = ConfirmSecondFactor { code, origin };
    let on = auth.confirm_second_factor(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(signed_in_with_codes(&auth, "Second factor turned on", on.signed_in, on.recovery_codes))
}

async fn renew(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    CameFrom(origin): CameFrom,
    Json(Coded { code }): Json<Coded>,
) -> Result<Json<Codes>, Problem> {
    let request = RenewRecoveryCodes { code, origin };
    let renewed = auth.renew_recovery_codes(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(Json(Codes { recovery_codes: renewed.recovery_codes }))
}

/// Valid once each, and returned once.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecoveryCodes")]
struct Codes {
    recovery_codes: Vec<Sensitive>,
}

/// Body of `DELETE /api/auth/second-factor`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "DisableSecondFactor")]
struct Disabling {
    /// Required if the account has a password.
    #[serde(default)]
    password: Option<Sensitive>,
    /// Six digits, or a recovery code.
    code: Sensitive,
}

async fn disable(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    CameFrom(origin): CameFrom,
    Current(session): Current,
    Json(Disabling { password, code }): Json<Disabling>,
) -> Result<Response, Problem> {
    let request = DisableSecondFactor { proof: OwnerProof { password, session }, code, origin };
    let off = auth.disable_second_factor(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(signed_in(&auth, StatusCode::OK, "Second factor turned off", off))
}
