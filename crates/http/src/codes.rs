//! Every error code this crate can answer with, in one table. Each has a page in `docs/errors`.

use http::StatusCode;

/// One public error code: its name, its status, and what it means in one line.
pub type Code = (&'static str, StatusCode, &'static str);

macro_rules! codes {
    ($($name:ident = $code:literal, $status:ident, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $name: Code = ($code, StatusCode::$status, $meaning);
        )*

        /// Every code this crate can answer with.
        pub const CODES: &[Code] = &[$($name),*];
    };
}

codes! {
    BAD_REQUEST = "http.bad_request", BAD_REQUEST,
        "The body is JSON, but does not match the schema of the route.";
    BAD_HEAD = "http.bad_head", BAD_REQUEST,
        "The request line or a header is not valid HTTP, or the length of the body is ambiguous.";
    HOST_REQUIRED = "http.host_required", BAD_REQUEST, "An HTTP/1.1 request has no `Host` header.";
    BAD_JSON = "http.bad_json", BAD_REQUEST, "The body is not JSON.";
    BAD_PATH = "http.bad_path", BAD_REQUEST,
        "A part of the path is not what the route expects, such as a UUID.";
    BAD_QUERY = "http.bad_query", BAD_REQUEST, "A query parameter is missing, unknown or malformed.";
    AUTH_REQUIRED = "auth.required", UNAUTHORIZED, "The route needs a signed-in user.";
    ADMIN_REQUIRED = "auth.admin_required", FORBIDDEN, "The route needs an administrator.";
    SECOND_FACTOR_REQUIRED = "auth.second_factor_required", FORBIDDEN,
        "The route needs an administrator who signed in with a second factor.";
    ENTRY_REQUIRED = "queue.entry_required", FORBIDDEN,
        "The request needs a valid entry token of the waiting room.";
    NOT_FOUND = "http.not_found", NOT_FOUND, "Nothing is served at this path.";
    METHOD_NOT_ALLOWED = "http.method_not_allowed", METHOD_NOT_ALLOWED,
        "The path exists, but not with this method.";
    BODY_TOO_LARGE = "http.body_too_large", PAYLOAD_TOO_LARGE, "The body is larger than the route accepts.";
    SLOW_BODY = "http.slow_body", REQUEST_TIMEOUT, "The body of the request did not arrive in time.";
    URI_TOO_LONG = "http.uri_too_long", URI_TOO_LONG, "The URL of the request is too long.";
    UNSUPPORTED_MEDIA_TYPE = "http.unsupported_media_type", UNSUPPORTED_MEDIA_TYPE,
        "The body must be application/json.";
    HEAD_TOO_LARGE = "http.head_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE,
        "The request line and the headers are too large, or there are too many headers.";
    INTERNAL = "http.internal", INTERNAL_SERVER_ERROR, "A bug in the server.";
    UNAVAILABLE = "http.unavailable", SERVICE_UNAVAILABLE,
        "A service, or a store that it needs, does not answer.";
    OVERLOADED = "http.overloaded", SERVICE_UNAVAILABLE,
        "More requests are in progress than the server accepts.";
    TOO_MANY_LISTENERS = "http.too_many_listeners", SERVICE_UNAVAILABLE,
        "The process already serves the maximum number of live streams.";
    NOT_READY = "http.not_ready", SERVICE_UNAVAILABLE,
        "The server is starting, draining, or a dependency is missing.";
    TIMEOUT = "http.timeout", GATEWAY_TIMEOUT, "The request took longer than the server allows.";
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, path::Path};

    use super::*;

    #[test]
    fn every_code_is_unique_an_error_and_has_a_page() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        let mut seen = HashSet::new();
        for (code, status, meaning) in CODES {
            assert!(seen.insert(code), "{code} is listed twice");
            assert!(status.is_client_error() || status.is_server_error(), "{code} is not an error");
            let page = std::fs::read_to_string(pages.join(format!("{code}.md")))
                .unwrap_or_else(|error| panic!("docs/errors/{code}.md: {error}"));
            assert!(
                page.contains(&status.as_u16().to_string()),
                "docs/errors/{code}.md does not say {status}"
            );
            assert!(page.contains(meaning), "docs/errors/{code}.md does not say: {meaning}");
        }
    }
}
