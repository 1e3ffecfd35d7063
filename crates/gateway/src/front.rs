//! What browsers need around every answer, whoever gave it: permission to read it from another origin, and a smaller body.
//!
//! It stands outside the edge, so that a 503 of an overloaded machine can be read by a page of another origin as well as a 200.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tower::Service as _;

use crate::{
    compress::{self, Compressor},
    origin::Origins,
};

/// What pages of other origins may do.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");

/// What they may send besides what every page may.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-none-match, traceparent, x-queue-entry-token, x-request-id",
);

/// What they may read besides what every page may.
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static("date, etag, retry-after, x-request-id");

/// How long a browser may remember the permission: an hour.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

const TRUE: HeaderValue = HeaderValue::from_static("true");

/// Puts the front before an edge. Pages of `origins` may use everything behind it, with cookies; nobody else's may.
pub fn front(edge: Router, origins: Origins) -> Router {
    let front = Arc::new(Front { origins, compressor: Compressor::new() });
    Router::new().fallback_service(tower::service_fn(move |request| {
        let (front, edge) = (Arc::clone(&front), edge.clone());
        async move { Ok::<_, Infallible>(front.pass(edge, request).await) }
    }))
}

struct Front {
    origins: Origins,
    compressor: Compressor,
}

impl Front {
    async fn pass(&self, mut edge: Router, mut request: Request) -> Response {
        let headers = request.headers_mut();
        let origin = headers.get(header::ORIGIN).filter(|origin| self.origins.allow(origin)).cloned();
        let takes_gzip = compress::takes_gzip(headers);
        compress::strengthen(headers);
        let mut response = match origin {
            Some(_) if is_preflight(&request) => permission(),
            _ => edge.call(request).await.unwrap_or_else(|impossible| match impossible {}),
        };
        self.permit(origin, response.headers_mut());
        self.compressor.compress(takes_gzip, response).await
    }

    /// Never `*`, and never an origin that is not listed.
    fn permit(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        compress::vary(headers, header::ORIGIN);
        if let Some(origin) = origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
        }
    }
}

/// A browser that asks before it sends.
fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn permission() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    (StatusCode::NO_CONTENT, headers, Body::empty()).into_response()
}
