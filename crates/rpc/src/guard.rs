//! Only other roles of the same installation may call `/internal`.

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

/// Every code this crate can answer with.
pub const CODES: &[(&str, StatusCode, &str)] = &[
    ("internal.token_required", StatusCode::UNAUTHORIZED, "The internal API needs its bearer token"),
    ("internal.token_wrong", StatusCode::FORBIDDEN, "The bearer token is not the internal one"),
];

/// Puts the internal bearer token in front of `routes`. The comparison takes the same time for every wrong token of the
/// right length.
pub fn internal_guard(routes: Router, token: &str) -> Router {
    assert!(!token.is_empty(), "an empty internal token would guard nothing");
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
