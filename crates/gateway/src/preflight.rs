//! CORS preflight requests.

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, Method, StatusCode, header};

use crate::origin::Origins;

/// Route name of preflights in metrics.
const NAME: &str = "(preflight)";

/// Methods that pages of other origins may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");

/// Request headers they may send.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-none-match, traceparent, x-queue-entry-token, x-request-id",
);

/// Browsers may cache the permission for an hour.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// Returns the response to a preflight from one of the origins; `None` for any other request.
/// `front` adds the headers that permit reading the response.
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
