//! What browsers need on every response, whichever layer produced it: CORS headers and compression.
//!
//! It wraps the edge, so that a page of another origin can read a 503 of an overloaded process as
//! well as a 200.

use std::fmt;

use axum::{extract::Request, response::Response};
use http::{HeaderMap, HeaderValue, header};
use urr_http::{Problem, Respond};

use crate::{
    compress::{self, Compressor},
    origin::Origins,
};

/// Response headers that pages of other origins may read.
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static("date, etag, retry-after, x-request-id");

const TRUE: HeaderValue = HeaderValue::from_static("true");

/// Wraps an edge.
pub struct Front<R> {
    edge: R,
    origins: Origins,
    compressor: Compressor,
}

impl<R> Front<R> {
    /// Wraps an edge. Only pages of `origins` may use it cross-origin, with cookies.
    pub fn before(edge: R, origins: Origins) -> Self {
        Self { edge, origins, compressor: Compressor::new() }
    }

    /// Never sends `*`, and never an origin that is not listed.
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

impl<R> fmt::Debug for Front<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("origins", &self.origins).finish_non_exhaustive()
    }
}

impl<R: Respond> Respond for Front<R> {
    async fn respond(&self, mut request: Request) -> Response {
        let headers = request.headers_mut();
        let origin = headers.get(header::ORIGIN).filter(|origin| self.origins.allow(origin)).cloned();
        let takes_gzip = compress::takes_gzip(headers);
        compress::strengthen(headers);
        let mut response = self.edge.respond(request).await;
        self.permit(origin, response.headers_mut());
        self.compressor.compress(takes_gzip, response).await
    }

    fn refuse(&self, problem: Problem) -> Response {
        let mut response = self.edge.refuse(problem);
        self.permit(None, response.headers_mut());
        response
    }
}
