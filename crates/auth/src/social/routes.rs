//! HTTP handlers: parsing and responses only.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{AppendHeaders, IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_contracts::auth::{
    Auth as _, BeginRedirect, CompleteRedirect, Error, GoogleSignIn, Language, ListProviders, LoginOutcome,
    Provider, RedirectOutcome, RedirectSignIn, Sensitive, SignUp, SignUpOffer,
};
use urr_http::{About, Class, Json, PUBLIC, Path, Problem, Query, Routes, StatusCode};
use urr_kernel::Timestamp;
use urr_rpc::{Ctx, problem};

use super::{
    nonce::{self, NonceCookie},
    sign_up,
};
use crate::{
    accounts::routes::{NewAgreement, spoken},
    api::{
        Api, CameFrom, Challenged, REFRESH_PATH, Tokens, cookie, entered, keep, one_cookie, signed_in,
        signed_in_with,
    },
    service::Service,
};

const OK: StatusCode = StatusCode::OK;

/// Cookie of the state token during the redirect flow and the sign-up.
const REDIRECT: &str = "social_trip";
const SIGN_UP: &str = "social_sign_up";

/// Cookie of the state token between the button and the credential.
const NONCE: &str = "google_nonce";

/// The pages that show the result of the redirect flow.
const LOGIN_PAGE: &str = "/login";
const SIGN_UP_PAGE: &str = "/register";

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .get("/api/auth/providers", PUBLIC.limit(Class::Auth), providers)
        .about(About::new("With whose accounts people may sign in").answer::<Offered>(OK))
        .post("/api/auth/google", PUBLIC.limit(Class::Auth).critical(), google)
        .about(
            About::new("Signs in with an ID token of Google")
                .body::<WithCredential>()
                .answer::<Tokens>(OK)
                .answer::<Challenged>(StatusCode::ACCEPTED)
                .refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT]),
        )
        .get("/api/auth/{id}/start", PUBLIC.limit(Class::Auth).critical(), start)
        .about(
            About::new("Sends a browser to a provider")
                .path::<Provider>("id")
                .query::<Start>()
                .bare(StatusCode::FOUND),
        )
        .get("/api/auth/{id}/callback", PUBLIC.limit(Class::Auth).critical(), callback)
        .about(
            About::new("Takes a browser back from a provider")
                .path::<Provider>("id")
                .query::<Return>()
                .bare(StatusCode::SEE_OTHER)
                .refuses([StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::CONFLICT]),
        )
        .get("/api/auth/sign-up", PUBLIC.limit(Class::Auth), offered)
        .about(
            About::new("The account that is offered to this browser")
                .answer::<SignUpShown>(OK)
                .refuses([StatusCode::FORBIDDEN]),
        )
        .post("/api/auth/sign-up", PUBLIC.limit(Class::Auth).critical(), complete)
        .about(
            About::new("Makes the account that is offered")
                .body::<Complete>()
                .answer::<Tokens>(StatusCode::CREATED)
                .answer::<Challenged>(StatusCode::ACCEPTED)
                .refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT]),
        )
}

/// Parses the provider in a path. An unknown one is treated as disabled.
pub(super) fn named(name: &str) -> Result<Provider, Problem> {
    Provider::named(name).ok_or_else(|| problem(&Error::ProviderOff))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Providers")]
struct Offered {
    providers: Vec<OfferShown>,
}

/// One sign-in provider, as shown on the sign-in page.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ProviderOffer")]
struct OfferShown {
    provider: Provider,
    /// Our client id at the provider.
    client_id: String,
    /// Where to redirect the browser; omitted if only ID tokens are accepted.
    start: Option<String>,
    /// The nonce for Google's button. It binds the credential to this browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
}

async fn providers(State(Api(auth)): State<Api>, ctx: Ctx, headers: HeaderMap) -> Result<Response, Problem> {
    let found = auth.providers(&ctx, ListProviders {}).await.map_err(|error| problem(&error))?;
    let google = found.providers.iter().any(|offer| offer.provider == Provider::Google);
    let issued = google.then(|| nonce::issue(&auth, nonce_token(&headers)));
    let (nonce, state_token) = issued.map_or((None, None), |issued| (Some(issued.nonce), issued.state_token));
    let providers = found.providers.into_iter().map(|offer| OfferShown {
        start: offer.redirect.then(|| format!("/api/auth/{}/start", offer.provider.name())),
        nonce: nonce.clone().filter(|_| offer.provider == Provider::Google),
        provider: offer.provider,
        client_id: offer.client_id,
    });
    let body = Json(Offered { providers: providers.collect() });
    let keep = state_token.map(|NonceCookie { state_token, expires }| {
        let left = expires.since(auth.clock.now());
        AppendHeaders([cookie(&auth, (NONCE, REFRESH_PATH), state_token.expose(), left)])
    });
    Ok((keep, body).into_response())
}

/// The nonce state token of this browser.
pub(super) fn nonce_token(headers: &HeaderMap) -> Option<Sensitive> {
    one_cookie(headers, NONCE).unwrap_or(None)
}

/// Body of `POST /api/auth/google`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "GoogleCredential")]
struct WithCredential {
    /// The ID token that Google gave to the browser. It is valid once.
    credential: Sensitive,
    /// Consents. A new user must agree to SERVICE and PRIVACY.
    #[serde(default)]
    agreements: Vec<NewAgreement>,
    #[serde(default)]
    language: Option<Language>,
}

async fn google(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    headers: HeaderMap,
    Json(body): Json<WithCredential>,
) -> Result<Response, Problem> {
    let request = GoogleSignIn {
        credential: body.credential,
        state_token: nonce_token(&headers),
        agreements: body.agreements.into_iter().map(Into::into).collect(),
        language: body.language.unwrap_or_else(|| spoken(&headers)),
        origin,
    };
    let done = auth.google(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(match done.outcome {
        LoginOutcome::SignedIn(tokens) => {
            signed_in_with(&auth, OK, "Google login successful", *tokens, done.picture)
        }
        challenged @ LoginOutcome::SecondFactor(_) => entered(&auth, challenged),
    })
}

/// Query of `GET /api/auth/{id}/start`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TripStart")]
struct Start {
    /// The page to show afterwards: a path on this site.
    return_to: Option<String>,
}

async fn start(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    Path(provider): Path<String>,
    headers: HeaderMap,
    Query(Start { return_to }): Query<Start>,
) -> Result<Response, Problem> {
    let provider = named(&provider)?;
    let redirect = match auth.begin_trip(&ctx, BeginRedirect { provider, return_to }).await {
        Ok(redirect) => redirect,
        // For a browser, show a page with the error.
        Err(error) if wants_page(&headers) => {
            let page = page_of_error(provider, &problem(&error));
            return Ok((StatusCode::FOUND, AppendHeaders([go_to(&page)])).into_response());
        }
        Err(error) => return Err(problem(&error)),
    };
    let location = go_to(&redirect.location);
    Ok((StatusCode::FOUND, AppendHeaders([redirect_cookie(&auth, &redirect), location])).into_response())
}

/// The page that shows a sign-in error.
fn page_of_error(provider: Provider, refused: &Problem) -> String {
    format!("{LOGIN_PAGE}?error={}&provider={}", refused.code, provider.name())
}

/// The cookie for the redirect flow.
pub(super) fn redirect_cookie(service: &Service, redirect: &RedirectSignIn) -> (HeaderName, HeaderValue) {
    let left = redirect.expires_at.since(service.clock.now());
    cookie(service, (REDIRECT, REFRESH_PATH), redirect.state_token.expose(), left)
}

fn go_to(location: &str) -> (HeaderName, HeaderValue) {
    (header::LOCATION, HeaderValue::try_from(location).expect("a location is printable ASCII"))
}

/// Query of `GET /api/auth/{id}/callback`, as sent by providers.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "TripReturn")]
struct Return {
    /// The authorization code.
    code: Option<Sensitive>,
    /// Our state parameter.
    state: Option<Sensitive>,
    /// The provider's error.
    error: Option<String>,
}

/// Handles the return from a provider. Browsers get a page, also on errors; other clients get the
/// error itself.
async fn callback(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    Path(provider): Path<String>,
    headers: HeaderMap,
    Query(Return { code, state, error }): Query<Return>,
) -> Result<Response, Problem> {
    let provider = named(&provider)?;
    let state_token = one_cookie(&headers, REDIRECT).unwrap_or(None);
    let request = CompleteRedirect { provider, state_token, state, code, refusal: error, origin };
    let unpack = cookie(&auth, (REDIRECT, REFRESH_PATH), "", std::time::Duration::ZERO);
    let end = match auth.end_trip(&ctx, request).await {
        Ok(end) => end,
        Err(error) => {
            let refused = problem(&error);
            if !wants_page(&headers) {
                return Ok((AppendHeaders([unpack]), refused).into_response());
            }
            let page = page_of_error(provider, &refused);
            return Ok((StatusCode::SEE_OTHER, AppendHeaders([unpack, go_to(&page)])).into_response());
        }
    };
    let see_other =
        |page: &str| (StatusCode::SEE_OTHER, AppendHeaders([unpack, go_to(page)])).into_response();
    Ok(match end.outcome {
        RedirectOutcome::Login { login: LoginOutcome::SignedIn(tokens) } => {
            (keep(&auth, &tokens), see_other(&end.return_to)).into_response()
        }
        // The challenge is in the fragment (`#…`), which browsers do not send to servers.
        RedirectOutcome::Login { login: LoginOutcome::SecondFactor(needed) } => {
            let query = query(&[("returnTo", &end.return_to)]);
            see_other(&format!("{LOGIN_PAGE}?{query}#challenge={}", needed.challenge.expose()))
        }
        RedirectOutcome::Linked { .. } => see_other(&end.return_to),
        RedirectOutcome::SignUp { offer } => {
            let left = offer.expires_at.since(auth.clock.now());
            let offered = cookie(&auth, (SIGN_UP, REFRESH_PATH), offer.state_token.expose(), left);
            let query = query(&[("provider", provider.name()), ("returnTo", &end.return_to)]);
            (AppendHeaders([offered]), see_other(&format!("{SIGN_UP_PAGE}?{query}"))).into_response()
        }
    })
}

fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

/// A pending registration, for the sign-up page.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OfferedAccount")]
struct SignUpShown {
    provider: Provider,
    email: Option<String>,
    /// Whether the address is verified. Otherwise the user has to enter one.
    email_verified: bool,
    name: Option<String>,
    expires_at: Timestamp,
    /// The current version of the terms.
    terms_version: String,
}

fn sign_up_token(headers: &HeaderMap) -> Result<Sensitive, Problem> {
    let state_token = one_cookie(headers, SIGN_UP).unwrap_or(None);
    state_token.ok_or_else(|| problem(&Error::SignUpInvalid))
}

async fn offered(State(Api(auth)): State<Api>, headers: HeaderMap) -> Result<Json<SignUpShown>, Problem> {
    let offer = sign_up::read(&auth, sign_up_token(&headers)?).map_err(|error| problem(&error))?;
    let SignUpOffer { provider, email, email_verified, name, expires_at, .. } = offer;
    let terms_version = auth.settings.terms_version.clone();
    Ok(Json(SignUpShown { provider, email, email_verified, name, expires_at, terms_version }))
}

/// Body of `POST /api/auth/sign-up`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "SocialSignUp")]
struct Complete {
    /// Required if the provider has not verified one.
    #[serde(default)]
    email: Option<String>,
    /// Defaults to the name from the provider.
    #[serde(default)]
    name: Option<String>,
    /// SERVICE and PRIVACY are required.
    #[serde(default)]
    agreements: Vec<NewAgreement>,
    #[serde(default)]
    language: Option<Language>,
}

async fn complete(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    headers: HeaderMap,
    Json(body): Json<Complete>,
) -> Result<Response, Problem> {
    let request = SignUp {
        state_token: sign_up_token(&headers)?,
        email: body.email,
        name: body.name,
        agreements: body.agreements.into_iter().map(Into::into).collect(),
        language: body.language.unwrap_or_else(|| spoken(&headers)),
        origin,
    };
    let outcome = auth.sign_up(&ctx, request).await.map_err(|error| problem(&error))?;
    let forgotten = cookie(&auth, (SIGN_UP, REFRESH_PATH), "", std::time::Duration::ZERO);
    let answer = match outcome {
        LoginOutcome::SignedIn(tokens) => {
            signed_in(&auth, StatusCode::CREATED, "Registration completed", *tokens)
        }
        // The user signed up in another window meanwhile, and has a second factor by now.
        challenged @ LoginOutcome::SecondFactor(_) => entered(&auth, challenged),
    };
    Ok((AppendHeaders([forgotten]), answer).into_response())
}
