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
    TOKEN_EXPIRED = "auth.token_expired", UNAUTHORIZED, "The access token has expired.";
    TOKEN_INVALID = "auth.token_invalid", UNAUTHORIZED,
        "The access token is malformed, was not issued by this installation, or is of the wrong kind.";
    TOKEN_REVOKED = "auth.token_revoked", UNAUTHORIZED,
        "The session of the access token was ended before the token expired.";
    BAD_HOST = "gateway.bad_host", BAD_REQUEST,
        "The request has more than one `Host` header, or an invalid one.";
    CLOCKS_DIFFER = "gateway.clocks_differ", SERVICE_UNAVAILABLE,
        "The clocks of the gateway and of the process behind it differ too much.";
    CROSS_ORIGIN = "gateway.cross_origin", FORBIDDEN, "A page of another site tried to make a change here.";
    NO_SUCH_SERVICE = "gateway.no_such_service", NOT_FOUND,
        "The route exists, but this installation does not run the service behind it.";
    NO_ANSWER = "gateway.no_answer", BAD_GATEWAY, "The connection to the service broke before it answered.";
    TIMEOUT = "gateway.timeout", GATEWAY_TIMEOUT, "The service behind the route did not answer in time.";
    LOOP = "gateway.loop", LOOP_DETECTED, "The request passed through too many gateways.";
    PASS_REQUIRED = "vwr.pass_required", FORBIDDEN,
        "The event's waiting room is open, and the request has no valid pass.";
    LIMIT_EXCEEDED = "limit.exceeded", TOO_MANY_REQUESTS, "The client exceeded a rate limit.";
    LIMIT_UNAVAILABLE = "limit.unavailable", SERVICE_UNAVAILABLE,
        "The rate limiter is unavailable, and requests of this kind are refused without it.";
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
