//! Cross-site request forgery check: which sites may make a browser send requests that change
//! state.
//!
//! Browsers attach our cookies to requests from other sites. They also report the origin of a
//! request, in headers that pages cannot forge.

use http::{HeaderMap, HeaderValue, Method, Uri, header, uri::Authority};
use urr_http::Problem;

use crate::codes;

/// Header that distinguishes same-origin requests, in browsers that send it.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Other origins that may use the API from a browser, with cookies, and our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    others: Vec<HeaderValue>,
    home: Option<HeaderValue>,
}

/// Error for text that is not an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an origin such as https://tickets.example or http://localhost:3000")]
pub struct BadOrigin(String);

impl Origins {
    /// Creates the list from exact origins; patterns are not supported.
    pub fn new<'o>(origins: impl IntoIterator<Item = &'o str>) -> Result<Self, BadOrigin> {
        let others = origins.into_iter().map(origin).collect::<Result<_, _>>()?;
        Ok(Self { others, home: None })
    }

    /// Adds our own public origin. Behind a proxy that changes `Host` it cannot be derived from the
    /// request.
    #[must_use]
    pub fn at_home(mut self, public_url: &str) -> Self {
        let uri: Option<Uri> = public_url.parse().ok();
        let bare = uri.and_then(|uri| Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?)));
        self.home = bare.and_then(|bare| origin(&bare.to_ascii_lowercase()).ok());
        self
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Whether the value of an `Origin` header is in the list.
    pub fn allow(&self, origin: &HeaderValue) -> bool {
        self.others.contains(origin)
    }
}

/// Normalises an origin as browsers send it: scheme, host, and the port unless it is the default.
fn origin(text: &str) -> Result<HeaderValue, BadOrigin> {
    let bad = || BadOrigin(text.to_owned());
    let uri: Uri = text.parse().map_err(|_| bad())?;
    let default_port = match uri.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        _ => return Err(bad()),
    };
    let is_bare = !text.ends_with('/') && uri.query().is_none() && uri.path() == "/";
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
    let is_canonical = authority.is_some_and(|authority| {
        !authority.host().is_empty()
            && authority.port_u16() != Some(default_port)
            && !text.contains(|letter: char| letter.is_uppercase() || letter == '*')
    });
    if !is_bare || !is_canonical {
        return Err(bad());
    }
    HeaderValue::from_str(text).map_err(|_| bad())
}

/// Rejects a request that changes state if another site made the browser send it.
///
/// Requests without cookies are not checked, because there is nothing another site could abuse: the
/// client sends a token itself, or is not a browser.
pub(crate) fn check(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    origins: &Origins,
) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE) {
        return Ok(());
    }
    let has_cookie = headers.contains_key(header::COOKIE);
    let has_token = headers.contains_key(header::AUTHORIZATION);
    if has_token && !has_cookie {
        return Ok(());
    }
    let ours = match said_origin(headers) {
        Said::Origin(origin) => {
            origins.home.as_ref() == Some(origin) || origins.allow(origin) || is_host(origin, uri, headers)
        }
        Said::Nothing => match headers.get(SEC_FETCH_SITE) {
            Some(site) => site == "same-origin" || site == "none",
            None => !has_cookie,
        },
        Said::Unclear => false,
    };
    if ours {
        return Ok(());
    }
    Err(Problem::of(codes::CROSS_ORIGIN, "This request was made by another site, which may not do that."))
}

enum Said<'h> {
    Nothing,
    Origin(&'h HeaderValue),
    Unclear,
}

/// Reads the origin. Pages that hide their origin send `null`, and so do our own in browsers with a
/// strict referrer policy.
fn said_origin(headers: &HeaderMap) -> Said<'_> {
    let mut said = headers.get_all(header::ORIGIN).iter();
    match (said.next(), said.next()) {
        (None, _) => Said::Nothing,
        (Some(origin), None) if origin == "null" => {
            if headers.contains_key(SEC_FETCH_SITE) {
                Said::Nothing
            } else {
                Said::Unclear
            }
        }
        (Some(origin), None) => Said::Origin(origin),
        (Some(_), Some(_)) => Said::Unclear,
    }
}

/// Whether the origin matches the requested host. The scheme is not compared: only the proxy that
/// terminates TLS knows it.
fn is_host(origin: &HeaderValue, uri: &Uri, headers: &HeaderMap) -> bool {
    let Some(asked) = host(uri, headers) else { return false };
    let Ok(origin) = origin.to_str() else { return false };
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let default_port = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return false,
    };
    let Ok(origin) = authority.parse::<Authority>() else { return false };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default_port);
    !origin.as_str().contains('@')
        && origin.host().eq_ignore_ascii_case(asked.host())
        && port(&origin) == port(&asked)
}

/// Returns the requested host: from the request line if it has one, otherwise from `Host`.
pub(crate) fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    if let Some(authority) = uri.authority() {
        return Some(authority.clone());
    }
    headers.get(header::HOST)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(method: &Method, lines: &[(&'static str, &str)]) -> bool {
        let origins = Origins::new(["https://partner.example", "http://localhost:3000"]).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers.entry(header::HOST).or_insert(HeaderValue::from_static("urr.example"));
        check(method, &Uri::from_static("/api/x"), &headers, &origins).is_ok()
    }

    fn post(lines: &[(&'static str, &str)]) -> bool {
        verdict(&Method::POST, lines)
    }

    const COOKIE: (&str, &str) = ("cookie", "access_token=a");
    const BEARER: (&str, &str) = ("authorization", "Bearer a");

    #[test]
    fn our_own_pages_are_recognised_behind_a_proxy_that_changes_host() {
        let asked = |public_url: &str, origin: &str| {
            let origins = Origins::default().at_home(public_url);
            let mut headers = HeaderMap::new();
            for (name, value) in [("host", "10.0.0.7:3001"), COOKIE, ("origin", origin)] {
                headers.append(name, value.parse().unwrap());
            }
            let changes = check(&Method::POST, &Uri::from_static("/api/x"), &headers, &origins).is_ok();
            assert!(!origins.allow(&origin.parse().unwrap()), "our own origin is not a foreign one");
            changes
        };
        for url in ["https://tickets.example", "https://tickets.example/", "https://Tickets.example/shop"] {
            assert!(asked(url, "https://tickets.example"), "{url}");
            assert!(!asked(url, "http://tickets.example"), "{url}");
            assert!(!asked(url, "https://evil.example"), "{url}");
        }
        assert!(!asked("", "https://tickets.example"));
    }

    #[test]
    fn only_our_own_and_configured_origins_change_state_with_cookies() {
        for origin in [
            "https://urr.example",
            "http://urr.example",
            "https://URR.example",
            "https://partner.example",
            "http://localhost:3000",
        ] {
            assert!(post(&[COOKIE, ("origin", origin)]), "{origin}");
        }
        for origin in [
            "https://evil.example",
            "https://urr.example.evil.example",
            "https://sub.urr.example",
            "https://urr.example:8443",
            "https://partner.example:8443",
            "http://partner.example",
            "https://urr.example@evil.example",
            "https://evil.example@urr.example",
            "file://urr.example",
            "urr.example",
            "null",
            "",
        ] {
            assert!(!post(&[COOKIE, ("origin", origin)]), "{origin}");
            assert!(!post(&[("origin", origin)]), "signing in changes state too: {origin}");
        }
        assert!(!post(&[COOKIE, ("origin", "https://urr.example"), ("origin", "https://evil.example")]));
    }

    #[test]
    fn default_ports_are_equal_to_no_port() {
        assert!(post(&[COOKIE, ("host", "urr.example:443"), ("origin", "https://urr.example")]));
        assert!(!post(&[COOKIE, ("host", "urr.example:443"), ("origin", "http://urr.example")]));
        assert!(post(&[COOKIE, ("host", "localhost:3001"), ("origin", "http://localhost:3001")]));
        assert!(!post(&[COOKIE, ("host", "localhost:3001"), ("origin", "http://localhost:3002")]));
        assert!(post(&[COOKIE, ("host", "[::1]:3001"), ("origin", "http://[::1]:3001")]));
    }

    #[test]
    fn without_an_origin_sec_fetch_site_decides() {
        assert!(post(&[COOKIE, ("sec-fetch-site", "same-origin")]));
        assert!(post(&[COOKIE, ("sec-fetch-site", "none")]));
        assert!(post(&[COOKIE, ("origin", "null"), ("sec-fetch-site", "same-origin")]));
        for site in ["cross-site", "same-site", "nonsense"] {
            assert!(!post(&[COOKIE, ("sec-fetch-site", site)]), "{site}");
            assert!(!post(&[("sec-fetch-site", site)]), "{site}");
        }
        assert!(!post(&[COOKIE]), "a cookie without any origin information");
    }

    #[test]
    fn clients_without_cookies_are_not_checked() {
        assert!(post(&[]));
        assert!(post(&[BEARER]));
        assert!(post(&[BEARER, ("origin", "https://evil.example")]), "the client sent the token itself");
        assert!(!post(&[BEARER, COOKIE, ("origin", "https://evil.example")]));
    }

    #[test]
    fn safe_methods_are_not_checked_and_all_others_are() {
        let evil = [COOKIE, ("origin", "https://evil.example")];
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(verdict(&method, &evil));
        }
        for method in ["POST", "PUT", "PATCH", "DELETE", "MADEUP"] {
            assert!(!verdict(&method.parse().unwrap(), &evil), "{method}");
        }
    }

    #[test]
    fn configured_origins_are_exact() {
        for bad in [
            "",
            "*",
            "https://*.example",
            "https://a.example/",
            "https://a.example/x",
            "a.example",
            "ftp://a.example",
            "https://A.example",
            "https://a.example:443",
            "https://u@a.example",
            "https://a.example?x",
            "null",
        ] {
            assert_eq!(Origins::new([bad]), Err(BadOrigin(bad.to_owned())));
        }
        assert!(Origins::new(["https://a.example", "http://localhost:3000", "http://[::1]:3000"]).is_ok());
        assert!(Origins::default().is_empty());
    }
}
