//! `/api/v1/x` is `/api/x`.

use http::{Uri, uri::PathAndQuery};

const VERSION: &str = "/api/v1";

/// Takes the version out of the path, once. What remains is routed like a path that never had one.
pub(crate) fn remove(uri: &mut Uri) {
    let Some(path) = unversioned(uri) else { return };
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(path);
    *uri = Uri::from_parts(parts).expect("only the path changed, and it still begins with a slash");
}

fn unversioned(uri: &Uri) -> Option<PathAndQuery> {
    let rest = uri.path().strip_prefix(VERSION)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // A tail of a valid path is valid; if the library ever disagrees, the path stays as it was and is not found.
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
    fn the_version_is_taken_out_of_the_path_and_nothing_else_changes() {
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
