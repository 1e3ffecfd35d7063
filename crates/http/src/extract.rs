//! Extractors. Invalid input becomes a [`Problem`] with a 4xx status.

use std::{borrow::Cow, error::Error as StdError};

use axum::{
    extract::{FromRequest, FromRequestParts, OptionalFromRequest, Request, rejection},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::{Serialize, de::DeserializeOwned};
use urr_kernel::{Actor, Role, UserId};

use crate::{
    Problem, codes,
    edge::{body_bytes, reading},
};

/// A JSON body. Rejections: 415 for another media type, 413 for a large body, 400 for invalid JSON
/// or the wrong shape. `Option<Json<T>>` accepts an empty body. As a response it is
/// `application/json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(not_json());
        }
        let limit = body_bytes(&request);
        parse(&read(request, limit).await?).map(Self)
    }
}

/// An optional body. A body that is not empty must have a JSON content type.
impl<S: Send + Sync, T: DeserializeOwned> OptionalFromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Option<Self>, Problem> {
        let (is_json, limit) = (is_json(request.headers()), body_bytes(&request));
        let body = read(request, limit).await?;
        if body.is_empty() {
            return Ok(None);
        }
        if !is_json {
            return Err(not_json());
        }
        parse(&body).map(|body| Some(Self(body)))
    }
}

fn not_json() -> Problem {
    Problem::of(codes::UNSUPPORTED_MEDIA_TYPE, "The body must be JSON: set Content-Type to application/json.")
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => {
                let mut response = Response::new(body.into());
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Err(error) => Problem::of(codes::INTERNAL, "The answer could not be written.")
                .caused_by(&error)
                .into_response(),
        }
    }
}

/// `application/json` or `application/<anything>+json`, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim();
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    let suffix = subtype.rsplit('+').next().unwrap_or_default();
    kind.eq_ignore_ascii_case("application") && suffix.eq_ignore_ascii_case("json")
}

async fn read(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    match reading(&parts.extensions, Limited::new(body, limit).collect()).await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if is_too_large(&*error) => Err(too_large(limit)),
        Err(error) => {
            Err(Problem::of(codes::BAD_REQUEST, "The body ended before it was complete.").caused_by(&*error))
        }
    }
}

/// Searches the error chain: the edge may have wrapped the body in its own limit, and axum wraps
/// the errors of boxed bodies.
fn is_too_large(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<LengthLimitError>() {
            return true;
        }
        next = error.source();
    }
    false
}

pub(crate) fn too_large(limit: usize) -> Problem {
    Problem::of(codes::BODY_TOO_LARGE, format!("The body may have at most {limit} bytes."))
        .field("maxBytes", limit)
}

/// Parses a body. serde would also read a struct from an array of its fields in order; that is
/// refused, because the order of fields is not part of the API.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let read = serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            wrong_shape::<T>(body, &error)
        } else {
            Problem::of(codes::BAD_JSON, format!("The body is not JSON: {error}."))
        }
    })?;
    if body.trim_ascii_start().starts_with(b"[") {
        let sentence = "The body does not fit: it must be an object, not an array.";
        return Err(Problem::of(codes::BAD_REQUEST, sentence).field("path", "."));
    }
    Ok(read)
}

/// Parses again to find the path of the wrong field, so that valid bodies do not pay for tracking
/// it.
fn wrong_shape<T: DeserializeOwned>(body: &[u8], error: &serde_json::Error) -> Problem {
    let path = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(body))
        .err()
        .map_or_else(|| ".".to_owned(), |error| error.path().to_string());
    Problem::of(codes::BAD_REQUEST, format!("The body does not fit: {error}.")).field("path", path)
}

/// Parameters of the path. A malformed one, such as a bad UUID, is 400 `http.bad_path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(rejection) if rejection.status().is_client_error() => Err(bad_path(rejection.body_text())),
            // The route and its handler disagree about the parameters: a bug.
            Err(rejection) => Err(Problem::of(codes::INTERNAL, "The server failed.").caused_by(&rejection)),
        }
    }
}

/// 400 `http.bad_path`: a part of the path is not what the route expects.
pub fn bad_path(sentence: impl Into<Cow<'static, str>>) -> Problem {
    Problem::of(codes::BAD_PATH, sentence)
}

/// The query string. Anything that does not fit is 400 `http.bad_query`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::read(&parts.uri)
    }
}

impl<T: DeserializeOwned> Query<T> {
    /// Parses the query of a URI.
    pub fn read(uri: &Uri) -> Result<Self, Problem> {
        let bad = |rejection: rejection::QueryRejection| Problem::of(codes::BAD_QUERY, rejection.body_text());
        axum::extract::Query::try_from_uri(uri).map(|axum::extract::Query(query)| Self(query)).map_err(bad)
    }
}

/// The [`Actor`] that the gateway put into the request, else [`Actor::Anonymous`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller(pub Actor);

impl Caller {
    /// The signed-in user, or 401 `auth.required`.
    pub fn user(&self) -> Result<UserId, Problem> {
        self.0.user().ok_or_else(|| Problem::of(codes::AUTH_REQUIRED, "Please sign in first."))
    }

    /// The actor if it is an admin. Else 401 `auth.required`, 403 `auth.second_factor_required` or
    /// 403 `auth.admin_required`.
    pub fn admin(&self) -> Result<Actor, Problem> {
        if self.0.is_admin() {
            return Ok(self.0);
        }
        self.user()?;
        if let Actor::User { role: Role::UnprovenAdmin, .. } = self.0 {
            let sentence = "Please turn on a second factor first; administrators need one here.";
            return Err(Problem::of(codes::SECOND_FACTOR_REQUIRED, sentence));
        }
        Err(Problem::of(codes::ADMIN_REQUIRED, "Only an administrator may do this."))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(parts.extensions.get().copied().unwrap_or(Actor::Anonymous)))
    }
}
