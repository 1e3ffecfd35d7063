//! Renders errors as HTML pages for browsers. Other clients get the JSON from the inner layers.

use askama::Template;
use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use urr_http::{PROBLEM_JSON, Problem, Respond};

use crate::{
    page::render,
    visitor::{Layout, Visitor},
    words::Words,
};

/// Maximum size of an error body; real ones are much smaller.
const MAX_PROBLEM_BYTES: usize = 16 * 1024;

/// Paths of programs, whose errors stay JSON for browsers too.
const FOR_PROGRAMS: [&str; 6] = ["/api", "/internal", "/vwr-api", "/edge", "/health", "/metrics"];

/// Wraps a service and renders its errors as pages. It is outside the edge, which adds request ids.
#[derive(Debug)]
pub struct ErrorPages<R> {
    edge: R,
    on: bool,
}

impl<R> ErrorPages<R> {
    /// Renders errors as pages for browsers.
    pub fn enabled(edge: R) -> Self {
        Self { edge, on: true }
    }

    /// Changes nothing, for processes that do not serve the assets of pages.
    pub fn disabled(edge: R) -> Self {
        Self { edge, on: false }
    }
}

impl<R: Respond> Respond for ErrorPages<R> {
    async fn respond(&self, request: Request) -> Response {
        // Boxed, because most requests come from programs and do not need it.
        let asked = (self.on && wants_page(&request))
            .then(|| Box::new((request.headers().clone(), request.uri().clone())));
        let response = self.edge.respond(request).await;
        match asked {
            Some(asked) if is_problem(&response) => Box::pin(as_page(asked, response)).await,
            _ => response,
        }
    }

    fn refuse(&self, problem: Problem) -> Response {
        self.edge.refuse(problem)
    }
}

fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let is_below =
        |place: &&str| path.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let accepts = request.headers().get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok());
    request.method() == Method::GET
        && accepts.is_some_and(|accepts| accepts.contains("text/html"))
        && !FOR_PROGRAMS.iter().any(is_below)
}

fn is_problem(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM_JSON)
}

/// The fields of an error that its page shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProblemFields {
    request_id: Option<String>,
}

async fn as_page(asked: Box<(HeaderMap, Uri)>, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(body) = Limited::new(body, MAX_PROBLEM_BYTES).collect().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let body = body.to_bytes();
    let request_id = serde_json::from_slice(&body).ok().and_then(|ProblemFields { request_id }| request_id);
    let visitor = Visitor::of(&asked.0, &asked.1);
    let error_page = ErrorPage::new(&visitor, parts.status, request_id);
    let Ok(page) = render(visitor.lang, parts.status, &error_page) else {
        return Response::from_parts(parts, Body::from(body));
    };
    let (rendered, page) = page.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    for (name, value) in rendered.headers {
        if let Some(name) = name {
            parts.headers.insert(name, value);
        }
    }
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Response::from_parts(parts, page)
}

/// The error page: what went wrong and what to do next.
#[derive(Template)]
#[template(path = "error.html")]
pub(crate) struct ErrorPage {
    shell: Layout,
    status: u16,
    heading: &'static str,
    text: &'static str,
    again: bool,
    request_id: Option<String>,
}

impl ErrorPage {
    pub(crate) fn new(visitor: &Visitor, status: StatusCode, request_id: Option<String>) -> Self {
        let (heading, text) = said(visitor.lang.words(), status);
        let again = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let shell = visitor.shell(heading, None);
        Self { shell, status: status.as_u16(), heading, text, again, request_id }
    }
}

fn said(words: &Words, status: StatusCode) -> (&'static str, &'static str) {
    let words = &words.common;
    match status {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE => {
            (words.oops_not_found, words.oops_not_found_text)
        }
        StatusCode::TOO_MANY_REQUESTS => (words.oops_busy, words.oops_busy_text),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (words.oops_denied, words.oops_denied_text),
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            (words.oops_away, words.oops_away_text)
        }
        status if status.is_client_error() => (words.oops_bad, words.oops_bad_text),
        _ => (words.oops_broken, words.oops_broken_text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Router, routing::get};

    async fn asked(path: &str, accept: &str) -> (StatusCode, HeaderMap, String) {
        let away = async || {
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "http.unavailable", "Away.");
            problem.retry_after(std::time::Duration::from_secs(3))
        };
        let router = ErrorPages::enabled(Router::new().route("/x", get(away)).route("/api/x", get(away)));
        let request = Request::get(path).header("accept", accept).header("accept-language", "en");
        let answer = router.respond(request.body(Body::empty()).unwrap()).await;
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_browser_gets_a_page_and_a_program_gets_json() {
        let (status, headers, body) = asked("/x", "text/html,*/*").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[header::RETRY_AFTER], "3");
        assert!(headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("script-src 'self'"));
        assert!(body.contains("available right now"), "{body}");
        for (path, accept) in [("/x", "*/*"), ("/api/x", "text/html")] {
            let (_, headers, body) = asked(path, accept).await;
            assert_eq!(headers[header::CONTENT_TYPE], PROBLEM_JSON, "{path} {accept}");
            assert!(body.contains("http.unavailable"));
        }
    }
}
