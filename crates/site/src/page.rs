//! From a template to an answer.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use http::{HeaderValue, StatusCode, header};
use urr_http::Problem;

use crate::{
    visitor::{Visitor, remember},
    words::Lang,
};

/// A page runs nothing that is written into it, and loads nothing from elsewhere but pictures of events.
pub(crate) const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https:; connect-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// A page, for whoever asked.
pub(crate) fn page(visitor: &Visitor, template: &impl Template) -> Result<Response, Problem> {
    let mut response = render(visitor.lang, StatusCode::OK, template)?;
    if visitor.chose {
        response.headers_mut().append(header::SET_COOKIE, remember(visitor.lang));
    }
    Ok(response)
}

/// A page whose address carries a secret: where it leads, nothing is told about it.
pub(crate) fn secret_page(visitor: &Visitor, template: &impl Template) -> Result<Response, Problem> {
    let mut response = page(visitor, template)?;
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// A page with its headers.
pub(crate) fn render(lang: Lang, status: StatusCode, template: &impl Template) -> Result<Response, Problem> {
    let text = template.render().map_err(|error| {
        let sentence = "The page could not be written.";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "http.internal", sentence).caused_by(&error)
    })?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CONTENT_LANGUAGE, HeaderValue::from_static(lang.tag())),
        (header::VARY, HeaderValue::from_static("accept-language, cookie")),
    ];
    Ok((status, headers, text).into_response())
}

/// Sends a browser to another page of this site.
pub(crate) fn go_to(path: &str) -> Response {
    Redirect::to(path).into_response()
}
