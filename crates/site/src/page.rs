//! From a template to a response.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use http::{HeaderValue, StatusCode, header};
use urr_http::Problem;

use crate::{
    visitor::{Visitor, remember},
    words::Lang,
};

/// No inline scripts or styles, and nothing from other sites except event posters.
pub(crate) const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https:; connect-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// A page for this visitor.
pub(crate) fn page(visitor: &Visitor, template: &impl Template) -> Result<Response, Problem> {
    let mut response = render(visitor.lang, StatusCode::OK, template)?;
    if visitor.chose {
        response.headers_mut().append(header::SET_COOKIE, remember(visitor.lang));
    }
    Ok(response)
}

/// A page whose URL contains a secret: `no-referrer` keeps the URL from linked sites.
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

/// Redirects a browser to another page of this site.
pub(crate) fn go_to(path: &str) -> Response {
    Redirect::to(path).into_response()
}
