//! A browser that asks before it sends something from a page of another origin.

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, Method, StatusCode, header};

use crate::origin::Origins;

/// The name under which such requests are counted.
const NAME: &str = "(preflight)";

/// What pages of other origins may do.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");

/// What they may send besides what every page may.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-none-match, traceparent, x-queue-entry-token, x-request-id",
);

/// How long a browser may remember the permission: an hour.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// What a browser is told that asks for one of these origins. `None`: it is an ordinary request. Who may read the answer is said
/// where it is said of every answer.
pub(crate) fn answer(request: &Request, origins: &Origins) -> Option<Response> {
    if request.method() != Method::OPTIONS {
        return None;
    }
    let headers = request.headers();
    let asks = headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let is_allowed = headers.get(header::ORIGIN).is_some_and(|origin| origins.allow(origin));
    if !asks || !is_allowed {
        return None;
    }
    urr_http::name_route(request.extensions(), NAME);
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    Some((StatusCode::NO_CONTENT, headers, Body::empty()).into_response())
}
