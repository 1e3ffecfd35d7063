//! Where to go after signing in: a page of this site, and of nobody else's.

/// The longest path that is followed, as in `auth`.
const MAX_LEN: usize = 512;

/// The path somebody was on the way to, or the first page. Browsers take `//host` and `/\host` for another site, and drop tabs and
/// line breaks before they look, so whatever is not plainly a path is not followed. Neither is the API: it is no page.
pub(crate) fn path(asked: Option<&str>) -> &str {
    asked.filter(|path| is_page(path)).unwrap_or("/")
}

fn is_page(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>');
    let page = path.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= MAX_LEN
        && path.bytes().all(plain)
        && page != "/api"
        && !page.starts_with("/api/")
}

/// The page to sign in on, from where `path` is shown next.
pub(crate) fn login(path: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", path).finish();
    format!("/login?{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_site_are_followed() {
        for good in ["/", "/account", "/events/1?a=b#c"] {
            assert_eq!(path(Some(good)), good);
        }
        let bad = [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "account",
            "",
            "/\t/evil.example",
            "/a b",
            "/api/auth/logout",
            "/API",
            "/\"><script>",
            "/한",
        ];
        for bad in bad {
            assert_eq!(path(Some(bad)), "/", "{bad}");
        }
        assert_eq!(path(None), "/");
        assert_eq!(path(Some(&format!("/{}", "a".repeat(MAX_LEN)))), "/");
    }

    #[test]
    fn the_way_back_is_kept_whole() {
        assert_eq!(login("/events/1?a=b&c=d"), "/login?next=%2Fevents%2F1%3Fa%3Db%26c%3Dd");
    }
}
