//! API versions: `/api/v1/x` is served as `/api/x`.

use http::{Uri, uri::PathAndQuery};

const VERSION: &str = "/api/v1";

/// Removes the version from the path, once. The rest is routed like an unversioned path.
pub(crate) fn remove(uri: &mut Uri) {
    let Some(path) = unversioned(uri) else { return };
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(path);
    *uri = Uri::from_parts(parts).expect("only the path changed, and it still starts with a slash");
}

fn unversioned(uri: &Uri) -> Option<PathAndQuery> {
    let rest = uri.path().strip_prefix(VERSION)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // The rest of a valid path is valid. If the library disagrees, the path stays unchanged and is
    // not found.
    PathAndQuery::from_maybe_shared(format!("/api{rest}{query}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(uri: &str) -> String {
        let mut uri: Uri = uri.parse().unwrap();
        remove(&mut uri);
        uri.to_string()
    }

    #[test]
    fn only_the_version_is_removed_from_the_path() {
        assert_eq!(rewritten("/api/v1/events?page=2&x=/api/v1/y"), "/api/events?page=2&x=/api/v1/y");
        assert_eq!(rewritten("/api/v1"), "/api");
        assert_eq!(rewritten("/api/v1/"), "/api/");
        assert_eq!(rewritten("http://a:80/api/v1/events"), "http://a:80/api/events");
        assert_eq!(rewritten("/api/v1/v1/x"), "/api/v1/x", "only once");
        for path in [
            "/api/x",
            "/api/v10/x",
            "/api/v2/x",
            "/API/v1/x",
            "//api/v1/x",
            "/api/%76%31/x",
            "/x/api/v1/y",
            "*",
        ] {
            assert_eq!(rewritten(path), path);
        }
    }
}
