//! The bearer token that `/internal` requires: only roles of the same installation may call it.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use http::{StatusCode, header::AUTHORIZATION};
use subtle::ConstantTimeEq as _;
use urr_http::Problem;

/// Every error code of this crate.
pub const CODES: &[(&str, StatusCode, &str)] = &[
    ("internal.token_required", StatusCode::UNAUTHORIZED, "The internal API needs its bearer token"),
    ("internal.token_wrong", StatusCode::FORBIDDEN, "The bearer token is not the internal one"),
];

/// Requires the internal bearer token for `routes`. Wrong tokens of the right length are compared
/// in constant time.
pub fn internal_guard(routes: Router, token: &str) -> Router {
    assert!(!token.is_empty(), "the internal token must not be empty");
    routes.layer(from_fn_with_state(Arc::<str>::from(token), check))
}

async fn check(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
    match header.and_then(|header| header.strip_prefix(b"Bearer ")) {
        None => refusal(0),
        Some(given) if bool::from(given.ct_eq(token.as_bytes())) => next.run(request).await,
        Some(_) => refusal(1),
    }
}

fn refusal(which: usize) -> Response {
    let (code, status, message) = CODES[which];
    Problem::new(status, code, message).into_response()
}
