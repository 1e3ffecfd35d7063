//! HTTP handlers for linking and unlinking: parsing and responses only.

use axum::{
    extract::State,
    response::{AppendHeaders, IntoResponse as _, Response},
};
use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::auth::{
    Auth as _, LinkAccount, LinkOutcome, LinkedAccount, ListLinked, OwnerProof, Provider, Sensitive,
    UnlinkAccount,
};
use urr_http::{About, Class, Json, Path, Problem, Routes, StatusCode, USER};
use urr_kernel::Timestamp;
use urr_rpc::{Ctx, problem};

use super::routes::{named, nonce_token, redirect_cookie};
use crate::api::{Api, CameFrom, Current, OnlyUsers, Said, said};

const OK: StatusCode = StatusCode::OK;

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .get("/api/auth/linked", USER.limit(Class::Auth), linked_accounts)
        .about(About::new("By what means the caller can sign in").answer::<Means>(OK))
        .post("/api/auth/link/{id}", USER.limit(Class::Auth).critical(), link)
        .about(
            About::new("Links an account elsewhere to the caller's")
                .path::<Provider>("id")
                .body::<Link>()
                .answer::<Linked>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .delete("/api/auth/link/{id}", USER.limit(Class::Auth).critical(), unlink)
        .about(
            About::new("Unlinks an account elsewhere from the caller's")
                .path::<Provider>("id")
                .body::<Confirmed>()
                .answer::<Said>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WaysIn")]
struct Means {
    /// Whether the account has a password.
    password: bool,
    accounts: Vec<LinkedAccountJson>,
}

/// A linked account, as shown to its owner.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LinkedAccount")]
struct LinkedAccountJson {
    provider: Provider,
    linked_at: Timestamp,
    last_used_at: Option<Timestamp>,
}

impl From<LinkedAccount> for LinkedAccountJson {
    fn from(LinkedAccount { provider, linked_at, last_used_at }: LinkedAccount) -> Self {
        Self { provider, linked_at, last_used_at }
    }
}

async fn linked_accounts(State(Api(auth)): State<Api>, ctx: Ctx) -> Result<Json<Means>, Problem> {
    let found = auth.linked_accounts(&ctx, ListLinked {}).await.map_err(|error| problem(&error))?;
    let accounts = found.accounts.into_iter().map(LinkedAccountJson::from).collect();
    Ok(Json(Means { password: found.password, accounts }))
}

/// Body of `POST /api/auth/link/{id}`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LinkAccount")]
struct Link {
    /// The account's password, if it has one. Otherwise a recent sign-in is required.
    #[serde(default)]
    password: Option<Sensitive>,
    /// A Google ID token. Without it the browser must be redirected to `location`.
    #[serde(default)]
    credential: Option<Sensitive>,
    /// The page to show afterwards: a path on this site.
    #[serde(default)]
    return_to: Option<String>,
}

/// The result of linking: one of the two.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkResult")]
struct Linked {
    linked: Option<LinkedAccountJson>,
    /// Where to redirect the browser.
    location: Option<String>,
}

async fn link(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    (CameFrom(origin), Current(session)): (CameFrom, Current),
    Path(provider): Path<String>,
    headers: HeaderMap,
    Json(body): Json<Link>,
) -> Result<Response, Problem> {
    let proof = OwnerProof { password: body.password, session };
    let Link { credential, return_to, .. } = body;
    let (provider, state_token) = (named(&provider)?, nonce_token(&headers));
    let request = LinkAccount { provider, proof, credential, state_token, return_to, origin };
    Ok(match auth.link_account(&ctx, request).await.map_err(|error| problem(&error))? {
        LinkOutcome::Linked { linked } => {
            Json(Linked { linked: Some(linked.into()), location: None }).into_response()
        }
        LinkOutcome::Redirect { redirect } => {
            let packed = AppendHeaders([redirect_cookie(&auth, &redirect)]);
            (packed, Json(Linked { linked: None, location: Some(redirect.location) })).into_response()
        }
    })
}

/// Body of `DELETE /api/auth/link/{id}`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "UnlinkAccount")]
struct Confirmed {
    /// The account's password, if it has one. Otherwise a recent sign-in is required.
    #[serde(default)]
    password: Option<Sensitive>,
}

async fn unlink(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    CameFrom(origin): CameFrom,
    Current(session): Current,
    Path(provider): Path<String>,
    Json(Confirmed { password }): Json<Confirmed>,
) -> Result<Json<Said>, Problem> {
    let proof = OwnerProof { password, session };
    let request = UnlinkAccount { provider: named(&provider)?, proof, origin };
    auth.unlink_account(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(said("Account unlinked"))
}
