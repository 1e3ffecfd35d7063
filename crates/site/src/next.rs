//! The page to show after sign-in, always on this site.

/// Maximum length of a path, as in `auth`.
const MAX_LEN: usize = 512;

/// Returns the requested path, or `/`. Browsers treat `//host` and `/\host` as another site and
/// ignore tabs and line breaks, so anything but a plain path is rejected. So is the API: it has no
/// pages.
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

/// The sign-in page that leads to `path` afterwards.
pub(crate) fn login(path: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", path).finish();
    format!("/login?{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_site_are_accepted() {
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
    fn the_return_path_is_encoded_completely() {
        assert_eq!(login("/events/1?a=b&c=d"), "/login?next=%2Fevents%2F1%3Fa%3Db%26c%3Dd");
    }
}
