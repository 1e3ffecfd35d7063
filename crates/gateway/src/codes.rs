//! All error codes of this crate. Each has a page in `docs/errors`.

use http::StatusCode;
use urr_http::Code;

macro_rules! codes {
    ($($name:ident = $code:literal, $status:ident, $meaning:literal;)*) => {
        $(pub(crate) const $name: Code = ($code, StatusCode::$status, $meaning);)*

        /// All error codes of this crate.
        pub const CODES: &[Code] = &[$($name),*];
    };
}

codes! {
    TOKEN_EXPIRED = "auth.token_expired", UNAUTHORIZED, "The access token was valid once, but its time is over.";
    TOKEN_INVALID = "auth.token_invalid", UNAUTHORIZED,
        "The access token is not one of ours, was changed, or is meant for something else.";
    TOKEN_REVOKED = "auth.token_revoked", UNAUTHORIZED, "The session of the access token was ended before the token expired.";
    BAD_HOST = "gateway.bad_host", BAD_REQUEST, "The request names more than one host, or what it names is none.";
    CLOCKS_DIFFER = "gateway.clocks_differ", SERVICE_UNAVAILABLE,
        "The gateway in front and the process behind it disagree about the time.";
    CROSS_ORIGIN = "gateway.cross_origin", FORBIDDEN, "A page of another site tried to change something here.";
    NO_SUCH_SERVICE = "gateway.no_such_service", NOT_FOUND, "The route exists, but this installation does not run the service behind it.";
    NO_ANSWER = "gateway.no_answer", BAD_GATEWAY, "The service was asked, and the connection broke before it answered.";
    UNAVAILABLE = "gateway.unavailable", SERVICE_UNAVAILABLE, "The service behind the route cannot be reached.";
    TIMEOUT = "gateway.timeout", GATEWAY_TIMEOUT, "The service behind the route did not answer in time.";
    LOOP = "gateway.loop", LOOP_DETECTED, "The request passed through too many gateways.";
    PASS_REQUIRED = "vwr.pass_required", FORBIDDEN, "The event has a waiting room, and whoever asks has not waited in it.";
    LIMIT_EXCEEDED = "limit.exceeded", TOO_MANY_REQUESTS, "The client made more requests of this kind than it may.";
    LIMIT_UNAVAILABLE = "limit.unavailable", SERVICE_UNAVAILABLE,
        "Requests of this kind are refused while nobody can count them.";
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
                page.contains(&format!("**Status {}.** {meaning}", status.as_u16())),
                "docs/errors/{code}.md"
            );
        }
    }
}
