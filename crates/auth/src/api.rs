//! Helpers for all routes: caller, origin and cookies.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{FromRequest as _, FromRequestParts, Request},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use urr_contracts::auth::{LoginOutcome, Origin, SecondFactorNeeded, Sensitive, SignedIn};
use urr_http::{Caller, ClientAddress, Json, Problem, StatusCode};
use urr_kernel::{Role, Timestamp, UserId};
use urr_passes::access::Verified;
use urr_rpc::handler_state;
use uuid::Uuid;

use crate::service::Service;

handler_state! {
    /// State of the route handlers.
    pub(crate) struct Api(Service);
}

/// Extractor that requires a signed-in user. It runs before the body is parsed, so that anonymous
/// callers get no validation errors.
pub(crate) struct OnlyUsers;

impl<S: Send + Sync> FromRequestParts<S> for OnlyUsers {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Ok(caller) = Caller::from_request_parts(parts, state).await;
        caller.user().map(|_| Self)
    }
}

/// Extractor that requires an administrator.
pub(crate) struct OnlyAdmins;

impl<S: Send + Sync> FromRequestParts<S> for OnlyAdmins {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Ok(caller) = Caller::from_request_parts(parts, state).await;
        caller.admin().map(|_| Self)
    }
}

/// Address and user agent of the request.
pub(crate) struct CameFrom(pub(crate) Origin);

impl<S: Send + Sync> FromRequestParts<S> for CameFrom {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let agent = parts.headers.get(header::USER_AGENT);
        let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned());
        let ClientAddress(address) = ClientAddress::of(&parts.extensions);
        let address = if address.is_unspecified() { String::new() } else { address.to_string() };
        Ok(Self(Origin { address, agent: agent.unwrap_or_default() }))
    }
}

/// The session of the access token, verified by the gateway.
pub(crate) struct Current(pub(crate) Option<Uuid>);

impl<S: Send + Sync> FromRequestParts<S> for Current {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<Verified>().map(|verified| verified.access.session)))
    }
}

/// Parses an optional JSON body. A non-empty body must have the JSON content type.
pub(crate) async fn optional<T: DeserializeOwned + Default>(mut request: Request) -> Result<T, Problem> {
    let headers = request.headers();
    if headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0") {
        return Ok(T::default());
    }
    if !headers.contains_key(header::CONTENT_TYPE) {
        let (parts, body) = request.into_parts();
        if to_bytes(body, 0).await.is_ok() {
            return Ok(T::default());
        }
        request = Request::from_parts(parts, Body::empty());
    }
    Json::from_request(request, &()).await.map(|Json(body)| body)
}

/// The refresh token cookie.
pub(crate) fn refresh_cookie(headers: &HeaderMap) -> Result<Option<Sensitive>, Planted> {
    one_cookie(headers, REFRESH)
}

/// Two cookies with the same name and different values.
pub(crate) struct Planted;

/// Returns the cookie of this name. Other sites on the same domain can set a second one, so two
/// different values are rejected.
pub(crate) fn one_cookie(headers: &HeaderMap, wanted: &str) -> Result<Option<Sensitive>, Planted> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut found = None;
    for (_, value) in pairs.filter(|(name, _)| name.trim() == wanted) {
        let value = value.trim();
        if found.is_some_and(|found| found != value) {
            return Err(Planted);
        }
        found = Some(value);
    }
    Ok(found.filter(|value| !value.is_empty()).map(Sensitive::new))
}

const ACCESS: &str = "access_token";
const REFRESH: &str = "refresh_token";

/// Every route may need the access token; the refresh token is only used under `/api`.
const ACCESS_PATH: &str = "/";
pub(crate) const REFRESH_PATH: &str = "/api";

type Cookies = AppendHeaders<[(HeaderName, HeaderValue); 2]>;

/// Cookies that sign the browser in.
pub(crate) fn keep(service: &Service, signed_in: &SignedIn) -> Cookies {
    let left = |until: Timestamp| until.since(service.clock.now());
    let SignedIn { access_token, access_expires_at, refresh_token, refresh_expires_at, .. } = signed_in;
    AppendHeaders([
        cookie(service, (ACCESS, ACCESS_PATH), access_token.expose(), left(*access_expires_at)),
        cookie(service, (REFRESH, REFRESH_PATH), refresh_token.expose(), left(*refresh_expires_at)),
    ])
}

/// Cookies that sign the browser out.
pub(crate) fn forget(service: &Service) -> Cookies {
    AppendHeaders([
        cookie(service, (ACCESS, ACCESS_PATH), "", Duration::ZERO),
        cookie(service, (REFRESH, REFRESH_PATH), "", Duration::ZERO),
    ])
}

/// A cookie with `HttpOnly`, and `SameSite=Lax` so that it is sent when a link to this site is
/// followed.
pub(crate) fn cookie(
    service: &Service,
    (name, path): (&str, &str),
    value: &str,
    age: Duration,
) -> (HeaderName, HeaderValue) {
    let secure = if service.settings.secure_cookies() { "; Secure" } else { "" };
    let age = age.as_secs();
    let text = format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let mut value = HeaderValue::try_from(text).expect("tokens are printable ASCII");
    value.set_sensitive(true);
    (header::SET_COOKIE, value)
}

/// The response to a correct first factor.
pub(crate) fn entered(service: &Service, outcome: LoginOutcome) -> Response {
    match outcome {
        LoginOutcome::SignedIn(tokens) => signed_in(service, StatusCode::OK, "Login successful", *tokens),
        LoginOutcome::SecondFactor(SecondFactorNeeded { challenge, expires_at }) => {
            let message = "Please enter the code of your second factor";
            let body = Challenged { message, second_factor_required: true, challenge, expires_at };
            (StatusCode::ACCEPTED, Json(body)).into_response()
        }
    }
}

/// Body of the response that requires a second factor.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SecondFactorNeeded")]
pub(crate) struct Challenged {
    message: &'static str,
    second_factor_required: bool,
    challenge: Sensitive,
    expires_at: Timestamp,
}

/// The response to enabling the second factor: tokens and recovery codes.
pub(crate) fn signed_in_with_codes(
    service: &Service,
    message: &'static str,
    signed_in: SignedIn,
    codes: Vec<Sensitive>,
) -> Response {
    let cookies = keep(service, &signed_in);
    let body = Tokens { recovery_codes: Some(codes), ..tokens(message, signed_in) };
    (StatusCode::OK, cookies, Json(body)).into_response()
}

/// The response to a sign-in: tokens, user and cookies.
pub(crate) fn signed_in(
    service: &Service,
    status: StatusCode,
    message: &'static str,
    tokens: SignedIn,
) -> Response {
    signed_in_with(service, status, message, tokens, None)
}

/// The same, with the user's picture at the provider.
pub(crate) fn signed_in_with(
    service: &Service,
    status: StatusCode,
    message: &'static str,
    signed_in: SignedIn,
    picture: Option<String>,
) -> Response {
    let cookies = keep(service, &signed_in);
    let mut body = tokens(message, signed_in);
    body.user.picture = picture;
    (status, cookies, Json(body)).into_response()
}

fn tokens(message: &'static str, signed_in: SignedIn) -> Tokens {
    let account = signed_in.account;
    let user = Who {
        id: account.id,
        user_id: account.id,
        email: account.email,
        name: account.name,
        role: account.role,
        picture: None,
    };
    let (token, refresh_token) = (signed_in.access_token, signed_in.refresh_token);
    Tokens { message, token, refresh_token, user, recovery_codes: None }
}

/// Body of every response that signs a user in.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SignedIn")]
pub(crate) struct Tokens {
    message: &'static str,
    token: Sensitive,
    refresh_token: Sensitive,
    user: Who,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_codes: Option<Vec<Sensitive>>,
}

/// The user in sign-in responses. Older clients read the id under two names.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SignedInUser")]
pub(crate) struct Who {
    id: UserId,
    user_id: UserId,
    email: String,
    name: String,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<String>,
}

/// A response with a message only.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Said {
    message: &'static str,
}

pub(crate) fn said(message: &'static str) -> Json<Said> {
    Json(Said { message })
}
