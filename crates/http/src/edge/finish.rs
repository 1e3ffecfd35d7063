//! Finishes every response: turns bare errors into problems, adds the request id and the default
//! headers, then writes metrics and the access log.

use axum::{
    body::{Body, HttpBody as _},
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use urr_kernel::RequestId;

use super::{Edge, REQUEST_ID, RequestInfo, UUID_LEN, log::Entry};
use crate::{Problem, codes, problem::Unsigned};

/// Default headers of every response. Handlers may override them; pages set their own policy.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    // Most responses are personal. Handlers of public content override this.
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Placeholder for the content type in the header template; most responses are JSON.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Placeholder for the request id in the header template.
const NO_ID: HeaderValue = HeaderValue::from_static("");

/// One year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000; includeSubDomains");

/// The header template of every response. A cloned `HeaderMap` has no spare capacity, so the
/// template already holds entries for the two headers that nearly every response sets.
pub(super) fn usual_headers(hsts: bool) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS.len() + 3);
    headers.extend(HEADERS);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(REQUEST_ID, NO_ID);
    if hsts {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    headers
}

impl<R> Edge<R> {
    pub(super) fn finish(&self, seen: &RequestInfo, response: Response) -> Response {
        let id = seen.arrival.id();
        let mut response = named_error(&seen.method, response);
        let unsigned = response.extensions_mut().remove::<Unsigned>();
        if let Some(unsigned) = &unsigned {
            sign(&seen.method, unsigned, id, &mut response);
        }
        let own = std::mem::take(response.headers_mut());
        *response.headers_mut() = self.headers(id, own);

        let took = self.clock.ticks().saturating_sub(seen.started);
        let route = seen.arrival.route();
        self.numbers.count(route, &seen.method, response.status(), took);
        self.log.write(&Entry {
            at: seen.started,
            id,
            method: &seen.method,
            path: seen.uri.path(),
            route,
            status: response.status(),
            took,
            code: unsigned.as_ref().map(|problem| &*problem.code),
            cause: unsigned.as_ref().and_then(|problem| problem.cause.as_deref()),
        });
        response
    }

    /// The header template with the handler's headers on top. Cloning a map is cheaper than looking
    /// up every name in another.
    fn headers(&self, id: RequestId, own: HeaderMap) -> HeaderMap {
        let mut headers = self.headers.clone();
        if !own.contains_key(header::CONTENT_TYPE) {
            headers.remove(header::CONTENT_TYPE);
        }
        headers.extend(own);
        let mut text = [0; UUID_LEN];
        let text = id.as_uuid().hyphenated().encode_lower(&mut text);
        headers.insert(REQUEST_ID, HeaderValue::from_str(text).expect("a UUID is ASCII"));
        if self.health.is_draining() {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        headers
    }
}

/// Writes the body with the request id in it. The router has already set a length without the id,
/// and has dropped the body for HEAD.
fn sign(method: &Method, unsigned: &Unsigned, id: RequestId, response: &mut Response) {
    let body = unsigned.sign(id);
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    *response.body_mut() = if method == Method::HEAD { Body::empty() } else { Body::from(body) };
}

/// Gives the bare 404 and 405 of the router a problem body. OPTIONS is not an error: it gets 204
/// and `Allow`.
fn named_error(method: &Method, response: Response) -> Response {
    let is_bare =
        || !response.headers().contains_key(header::CONTENT_TYPE) && response.body().is_end_stream();
    match response.status() {
        StatusCode::NOT_FOUND if is_bare() => {
            Problem::of(codes::NOT_FOUND, "There is nothing here.").into_response()
        }
        StatusCode::METHOD_NOT_ALLOWED if is_bare() => {
            let mut named = if method == Method::OPTIONS {
                let mut options = Response::new(Body::empty());
                *options.status_mut() = StatusCode::NO_CONTENT;
                options
            } else {
                Problem::of(codes::METHOD_NOT_ALLOWED, "This path does not take this method.").into_response()
            };
            if let Some(allowed) = response.headers().get(header::ALLOW) {
                named.headers_mut().insert(header::ALLOW, allowed.clone());
            }
            named
        }
        _ => response,
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, extract::Request, routing::get};
    use tower::ServiceExt as _;
    use urr_kernel::{Clock, Ids, Timestamp};
    use urr_telemetry::Health;

    use super::*;
    use crate::{AccessLog, EdgeParts, Json, Limits, edge};

    #[tokio::test]
    async fn content_type_comes_from_the_handler_and_there_is_one_request_id() {
        let own_id = ([("x-request-id", "mine")], "text");
        let routes = Router::new()
            .route("/nothing", get(async || StatusCode::NO_CONTENT))
            .route("/unchanged", get(async || StatusCode::NOT_MODIFIED))
            .route("/elsewhere", get(async || (StatusCode::SEE_OTHER, [(header::LOCATION, "/")])))
            .route("/json", get(async || Json(1)))
            .route("/text", get(async move || own_id));
        let clock = Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000));
        let parts = EdgeParts {
            limits: Limits::default(),
            ids: Ids::seeded(clock.clone(), 7),
            clock,
            access_log: AccessLog { sample: 0 },
            health: Health::new(),
            hsts: false,
        };
        let app = edge(routes, parts);
        for (path, kind) in [
            ("/nothing", None),
            ("/unchanged", None),
            ("/elsewhere", None),
            ("/json", Some("application/json")),
            ("/text", Some("text/plain; charset=utf-8")),
            ("/none", Some("application/problem+json")),
        ] {
            let response =
                app.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
            let all = |name| response.headers().get_all(name).iter().map(|value| value.to_str().unwrap());
            assert_eq!(all(header::CONTENT_TYPE).collect::<Vec<_>>(), Vec::from_iter(kind), "{path}");
            let ids: Vec<_> = all(REQUEST_ID).collect();
            assert!(ids.len() == 1 && ids[0].len() == UUID_LEN, "{path}: {ids:?}");
        }
    }
}
