//! Extracts the access token from a request.

use http::{HeaderMap, header};
use urr_passes::Refusal;

/// Cookie that carries the token.
const COOKIE: &str = "access_token";

const SCHEME: &str = "Bearer";

/// Whether the client set `Authorization` itself. Cookies are sent automatically, and scripts
/// cannot delete an `HttpOnly` one.
pub(crate) fn is_said(headers: &HeaderMap) -> bool {
    !matches!(bearer(headers), Ok(None))
}

/// Returns the token of a request: from `Authorization: Bearer`, otherwise from the cookie. Two
/// different tokens are rejected: another site on the same domain could plant a second cookie.
pub(crate) fn find(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    match bearer(headers)? {
        Some(token) => Ok(Some(token)),
        None => cookie(headers),
    }
}

/// Other schemes, such as Basic for a proxy in front of us, are ignored.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut found = None;
    for value in headers.get_all(header::AUTHORIZATION) {
        let value = value.to_str().map_err(|_| Refusal::Invalid)?;
        let (scheme, token) = value.split_at_checked(SCHEME.len()).unwrap_or((value, ""));
        let is_bearer = scheme.eq_ignore_ascii_case(SCHEME) && (token.is_empty() || token.starts_with(' '));
        if is_bearer && found.replace(token.trim_ascii()).is_some() {
            return Err(Refusal::Invalid);
        }
    }
    Ok(found)
}

fn cookie(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut found = None;
    for line in headers.get_all(header::COOKIE) {
        // Other cookies may contain anything; a line that is not text has none of ours.
        let Ok(line) = line.to_str() else { continue };
        for pair in line.split(';') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            if name.trim() != COOKIE {
                continue;
            }
            let value = value.trim();
            if found.is_some_and(|found| found != value) {
                return Err(Refusal::Invalid);
            }
            found = Some(value);
        }
    }
    // Some clients delete a cookie by setting it to an empty value.
    Ok(found.filter(|token| !token.is_empty()))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    type Lines<'l> = &'l [(&'l str, &'l [u8])];

    fn headers(lines: Lines<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers
                .append(name.parse::<HeaderName>().unwrap(), http::HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_token_is_found_in_the_header_or_the_cookie() {
        let cases: [(Lines<'_>, _); 12] = [
            (&[], Ok(None)),
            (&[("authorization", b"Bearer a.b.c")], Ok(Some("a.b.c"))),
            (&[("authorization", b"bearer  a.b.c ")], Ok(Some("a.b.c"))),
            (&[("authorization", b"Bearer")], Ok(Some(""))),
            (&[("authorization", b"Basic dTpw")], Ok(None)),
            (&[("cookie", b"access_token=a.b.c")], Ok(Some("a.b.c"))),
            (&[("cookie", b"x=1; access_token=a.b.c; y=2")], Ok(Some("a.b.c"))),
            (&[("cookie", b"x=1"), ("cookie", b"access_token=a.b.c")], Ok(Some("a.b.c"))),
            (&[("cookie", b"access_token=a; access_token=a")], Ok(Some("a"))),
            (&[("cookie", b"access_token="), ("cookie", b"xaccess_token=a")], Ok(None)),
            (&[("cookie", b"x=\xff"), ("cookie", b"access_token=a.b.c")], Ok(Some("a.b.c"))),
            (&[("authorization", b"Bearer a"), ("cookie", b"access_token=b")], Ok(Some("a"))),
        ];
        for (lines, expected) in cases {
            assert_eq!(find(&headers(lines)), expected, "{lines:?}");
        }
    }

    #[test]
    fn two_tokens_or_an_unreadable_one_are_invalid() {
        let cases: [Lines<'_>; 4] = [
            &[("authorization", b"Bearer a"), ("authorization", b"Bearer b")],
            &[("authorization", b"Bearer \xff")],
            &[("cookie", b"access_token=a; access_token=b")],
            &[("cookie", b"access_token=a"), ("cookie", b"access_token=b")],
        ];
        for lines in cases {
            assert_eq!(find(&headers(lines)), Err(Refusal::Invalid), "{lines:?}");
        }
    }
}
