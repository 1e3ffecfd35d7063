//! HTTP handlers: parsing and responses only.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::auth::{Auth as _, CompleteIdentity, IdentitySource, IdentityStarted, StartIdentity};
use urr_http::{About, Class, Json, Problem, Routes, StatusCode, USER};
use urr_kernel::Timestamp;
use urr_rpc::{Ctx, problem};
use uuid::Uuid;

use crate::api::{Api, OnlyUsers};

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .post("/api/auth/identity/start", USER.limit(Class::Auth).critical(), start)
        .about(
            About::new("Begins to verify who the caller is")
                .answer::<Started>(StatusCode::CREATED)
                .refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT]),
        )
        .post("/api/auth/identity/complete", USER.limit(Class::Auth).critical(), complete)
        .about(
            About::new("Asks the provider who the caller is, and keeps it")
                .body::<Complete>()
                .answer::<Completed>(StatusCode::OK)
                .refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT]),
        )
}

async fn start(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
) -> Result<(StatusCode, Json<Started>), Problem> {
    let started = auth.start_identity(&ctx, StartIdentity {}).await.map_err(|error| problem(&error))?;
    let IdentityStarted { verification, source, store_id, channel_key, expires_at } = started;
    let identity_verification_id = verification;
    let body = Started { identity_verification_id, provider: source, store_id, channel_key, expires_at };
    Ok((StatusCode::CREATED, Json(body)))
}

/// Parameters for the browser's SDK.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IdentityStarted")]
struct Started {
    identity_verification_id: Uuid,
    provider: IdentitySource,
    store_id: Option<String>,
    channel_key: Option<String>,
    expires_at: Timestamp,
}

/// Body of `POST /api/auth/identity/complete`. Other fields from the SDK are ignored.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CompleteIdentity")]
struct Complete {
    identity_verification_id: Uuid,
}

async fn complete(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    Json(body): Json<Complete>,
) -> Result<Json<Completed>, Problem> {
    let request = CompleteIdentity { verification: body.identity_verification_id };
    let account = auth.complete_identity(&ctx, request).await.map_err(|error| problem(&error))?;
    let at = account.identity_verified_at;
    Ok(Json(Completed { identity_verified: at.is_some(), identity_verified_at: at }))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IdentityCompleted")]
struct Completed {
    identity_verified: bool,
    identity_verified_at: Option<Timestamp>,
}
