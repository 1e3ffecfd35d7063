//! HTTP handlers: parsing and responses only.

use axum::{
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::auth::{
    Account, Auth as _, EndSession, Error, ListLogins, ListSessions, Login, LoginAttempt, LoginFailure,
    LoginMethod, Logout, MAX_HISTORY_PER_PAGE, Refresh, Sensitive, Session,
};
use urr_http::{About, Class, Json, PUBLIC, Path, Problem, Query, Routes, StatusCode, USER};
use urr_kernel::{Role, Timestamp, UserId};
use urr_rpc::{Ctx, problem};
use uuid::Uuid;

use super::ending;
use crate::api::{
    self, Api, CameFrom, Current, OnlyUsers, Planted, Said, entered, forget, optional, refresh_cookie, said,
    signed_in,
};

const OK: StatusCode = StatusCode::OK;

pub(crate) fn routes() -> Routes<Api> {
    let with_cookie =
        |what| About::new(what).cookie("refresh_token", "The refresh token, unless the body has one.");
    let refreshes = with_cookie("Exchanges the refresh token, from the cookie or the body, for a new pair");
    Routes::new()
        .post("/api/auth/login", PUBLIC.limit(Class::Auth).critical(), login)
        .about(
            About::new("Signs in, or asks for the second factor")
                .body::<Credentials>()
                .answer::<api::Tokens>(OK)
                .answer::<api::Challenged>(StatusCode::ACCEPTED),
        )
        .post("/api/auth/refresh", PUBLIC.limit(Class::Auth), refresh)
        .about(
            refreshes.optional_body::<Tokens>().answer::<api::Tokens>(OK).refuses([StatusCode::UNAUTHORIZED]),
        )
        .post("/api/auth/logout", PUBLIC.limit(Class::Auth), logout)
        .about(with_cookie("Signs out, here or everywhere").optional_body::<Leave>().answer::<Said>(OK))
        .post("/api/auth/verify-token", PUBLIC.limit(Class::Auth).critical(), verify_token)
        .about(
            About::new("Whom an access token speaks for")
                .body::<Token>()
                .answer::<Valid>(OK)
                .refuses([StatusCode::UNAUTHORIZED]),
        )
        .get("/api/auth/sessions", USER.limit(Class::Auth), sessions)
        .about(About::new("Where the caller is signed in, the last used first").answer::<Many>(OK))
        .delete("/api/auth/sessions/{id}", USER.limit(Class::Auth), end_session)
        .about(About::new("Ends one session of the caller").path::<Uuid>("id").answer::<Said>(OK))
        .get("/api/auth/history", USER.limit(Class::Auth), history)
        .about(About::new("The caller's sign-ins, newest first").query::<Page>().answer::<History>(OK))
}

/// Body of `POST /api/auth/login`.
#[derive(Deserialize, JsonSchema)]
struct Credentials {
    email: String,
    password: Sensitive,
}

async fn login(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    Json(Credentials { email, password }): Json<Credentials>,
) -> Result<Response, Problem> {
    let request = Login { email, password, origin };
    let outcome = auth.login(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(entered(&auth, outcome))
}

/// Body of `POST /api/auth/refresh`, for clients without cookies.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RefreshToken")]
struct Tokens {
    #[serde(default)]
    refresh_token: Option<Sensitive>,
}

async fn refresh(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    request: Request,
) -> Result<Response, Problem> {
    let renewed = match refresh_cookie(request.headers()) {
        Err(Planted) => Err(Error::RefreshInvalid),
        Ok(cookie) => {
            let token = match cookie {
                Some(token) => Some(token),
                None => optional::<Tokens>(request).await?.refresh_token,
            };
            let refresh_token = token.unwrap_or_else(|| Sensitive::new(""));
            auth.refresh(&ctx, Refresh { refresh_token, origin }).await
        }
    };
    match renewed {
        Ok(renewed) => Ok(signed_in(&auth, StatusCode::OK, "Token refreshed", renewed)),
        // The session is over, and scripts cannot delete `HttpOnly` cookies.
        Err(error @ (Error::RefreshInvalid | Error::RefreshReused)) => {
            Ok((forget(&auth), problem(&error)).into_response())
        }
        Err(error) => Err(problem(&error)),
    }
}

/// Body of `POST /api/auth/logout`, which may be left out.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Leaving")]
struct Leave {
    #[serde(default)]
    refresh_token: Option<Sensitive>,
    #[serde(default)]
    everywhere: bool,
}

async fn logout(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    Current(session): Current,
    request: Request,
) -> Result<Response, Problem> {
    // Two different cookies identify no session, but both are cleared.
    let cookie = refresh_cookie(request.headers()).unwrap_or_default();
    let Leave { refresh_token, everywhere } = optional(request).await?;
    let request = Logout { session, refresh_token: cookie.or(refresh_token), everywhere };
    auth.logout(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok((forget(&auth), said("Logged out successfully")).into_response())
}

/// Body of `POST /api/auth/verify-token`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "AccessToken")]
struct Token {
    token: Sensitive,
}

/// For older clients; newer ones call `GET /api/auth/me`.
async fn verify_token(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    Json(Token { token }): Json<Token>,
) -> Result<Json<Valid>, Problem> {
    let found = ending::verify_token(&auth, &token).await;
    let Account { id, email, name, role, .. } =
        found.map_err(|failure| problem(&ctx.reveal("verify_token", failure)))?;
    Ok(Json(Valid { valid: true, user: Speaks { user_id: id, email, name, role } }))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ValidToken")]
struct Valid {
    valid: bool,
    user: Speaks,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TokenOwner")]
struct Speaks {
    user_id: UserId,
    email: String,
    name: String,
    role: Role,
}

async fn sessions(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    Current(current): Current,
) -> Result<Json<Many>, Problem> {
    let found = auth.sessions(&ctx, ListSessions { current }).await.map_err(|error| problem(&error))?;
    Ok(Json(Many { sessions: found.sessions.into_iter().map(SessionJson::from).collect() }))
}

async fn end_session(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    Path(session): Path<Uuid>,
) -> Result<Json<Said>, Problem> {
    auth.end_session(&ctx, EndSession { session }).await.map_err(|error| problem(&error))?;
    Ok(said("Session ended"))
}

/// Query of `GET /api/auth/history`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "HistoryPage")]
struct Page {
    /// The last entry of the previous page; omit for the first page.
    before: Option<Uuid>,
    /// Maximum number of entries; the largest allowed number if omitted.
    #[schemars(range(min = 1, max = MAX_HISTORY_PER_PAGE))]
    limit: Option<u32>,
}

async fn history(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    Query(page): Query<Page>,
) -> Result<Json<History>, Problem> {
    let request = ListLogins { before: page.before, limit: page.limit.unwrap_or(MAX_HISTORY_PER_PAGE) };
    let found = auth.login_history(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(Json(History { history: found.logins.into_iter().map(ShownLogin::from).collect() }))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ManySessions")]
struct Many {
    sessions: Vec<SessionJson>,
}

/// A session as its owner sees it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Session")]
struct SessionJson {
    id: Uuid,
    method: LoginMethod,
    address: String,
    agent: String,
    created_at: Timestamp,
    last_used_at: Timestamp,
    expires_at: Timestamp,
    current: bool,
}

impl From<Session> for SessionJson {
    fn from(session: Session) -> Self {
        let Session { id, method, origin, created_at, last_used_at, expires_at, current } = session;
        let (address, agent) = (origin.address, origin.agent);
        Self { id, method, address, agent, created_at, last_used_at, expires_at, current }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoginHistory")]
struct History {
    history: Vec<ShownLogin>,
}

/// A sign-in as the account's owner sees it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LoginAttempt")]
struct ShownLogin {
    id: Uuid,
    at: Timestamp,
    address: String,
    agent: String,
    method: LoginMethod,
    success: bool,
    failure: Option<LoginFailure>,
}

impl From<LoginAttempt> for ShownLogin {
    fn from(attempt: LoginAttempt) -> Self {
        let LoginAttempt { id, at, origin, method, failure } = attempt;
        let (address, agent) = (origin.address, origin.agent);
        Self { id, at, address, agent, method, success: failure.is_none(), failure }
    }
}
