//! HTTP routes of the API document, and a page to read it.

use std::hash::{BuildHasher as _, Hasher as _};

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use urr_http::{About, PUBLIC, Path, Routes};

const PAGE: &str = include_str!("../../assets/docs.html");
const SCRIPT: &str = include_str!("../../assets/docs.js");
const STYLE: &str = include_str!("../../assets/docs.css");

/// Content security policy: no external resources and no inline scripts.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// Returns the routes of the gateway itself.
pub(crate) fn routes(document: impl FnOnce(&Routes) -> Value) -> Routes {
    // The document lists these routes as well, so they are declared once before it is built.
    let routes = add(Routes::new(), &Bytes::new());
    let text = serde_json::to_vec(&document(&routes)).expect("a JSON value serialises without error");
    add(Routes::new(), &Bytes::from(text))
}

fn add(routes: Routes, document: &Bytes) -> Routes {
    let document = Tagged::new(document.clone());
    routes
        .get("/api/openapi.json", PUBLIC, async move |headers: HeaderMap| document.answer(&headers))
        .about(About::new("This document").answer::<Value>(StatusCode::OK).bare(StatusCode::NOT_MODIFIED))
        .get("/api/docs", PUBLIC, async || file("text/html; charset=utf-8", PAGE))
        .about(About::new("A page to read this document").bare(StatusCode::OK))
        .get("/api/docs/{file}", PUBLIC, async |Path(name): Path<String>| match name.as_str() {
            "docs.js" => file("text/javascript; charset=utf-8", SCRIPT),
            "docs.css" => file("text/css; charset=utf-8", STYLE),
            _ => StatusCode::NOT_FOUND.into_response(),
        })
        .about(About::new("What the page is made of").bare(StatusCode::OK))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300")),
    ];
    (headers, text).into_response()
}

/// Bytes with an `ETag`.
#[derive(Clone)]
struct Tagged {
    bytes: Bytes,
    tag: HeaderValue,
}

impl Tagged {
    fn new(bytes: Bytes) -> Self {
        // The tag differs in each process. That costs each reader one transfer after a restart.
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write(&bytes);
        let tag = HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish()))
            .expect("quoted digits are a valid header value");
        Self { bytes, tag }
    }

    fn answer(&self, headers: &HeaderMap) -> Response {
        let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == self.tag);
        let common = [
            (header::ETAG, self.tag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static("public, no-cache")),
        ];
        if known {
            return (StatusCode::NOT_MODIFIED, common).into_response();
        }
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (common, kind, self.bytes.clone()).into_response()
    }
}
