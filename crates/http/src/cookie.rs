//! Reads one cookie of a request.

use http::{HeaderMap, header};

/// The value of a cookie. `None` if it is empty, as some clients delete it so, or if it is sent
/// twice with different values: another site on the same domain may have planted one.
pub fn cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim());
    let first = values.next().filter(|value| !value.is_empty())?;
    values.all(|value| value == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn conflicting_cookies_are_ignored() {
        for (lines, found) in [
            (&["a=b; t=x; c=d"][..], Some("x")),
            (&["t=x; t=x"], Some("x")),
            (&["a=b", "t=x"], Some("x")),
            (&["t=x; t=y"], None),
            (&["t=x", "t=y"], None),
            (&["t="], None),
            (&["tt=x; t"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, HeaderValue::from_static(line));
            }
            assert_eq!(cookie(&headers, "t"), found, "{lines:?}");
        }
    }
}
