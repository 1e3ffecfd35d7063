//! The access log. A line per request would cost more than the request, so successful requests are
//! sampled and failed ones are rate-limited.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use http::{Method, StatusCode};
use urr_kernel::RequestId;
use urr_telemetry::FailureLines;

use super::UUID_LEN;

/// Characters of a path that are logged: enough for every route with its ids.
const MAX_PATH_LEN: usize = 200;

/// Sampling of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Logs one request in this many: 1 logs all, 0 none. Server errors do not depend on it.
    pub sample: u32,
}

impl Default for AccessLog {
    /// One in a hundred.
    fn default() -> Self {
        Self { sample: 100 }
    }
}

pub(super) struct Log {
    sample: u32,
    requests: AtomicU32,
    failures: FailureLines,
}

pub(super) struct Entry<'e> {
    /// Arrival time on the monotonic clock.
    pub(super) at: Duration,
    pub(super) id: RequestId,
    pub(super) method: &'e Method,
    pub(super) path: &'e str,
    pub(super) route: Option<&'e str>,
    pub(super) status: StatusCode,
    pub(super) took: Duration,
    pub(super) code: Option<&'e str>,
    pub(super) cause: Option<&'e str>,
}

impl Log {
    pub(super) fn new(config: AccessLog) -> Self {
        Self { sample: config.sample, requests: AtomicU32::new(0), failures: FailureLines::new() }
    }

    pub(super) fn write(&self, entry: &Entry<'_>) {
        if entry.status.is_server_error() {
            if self.failures.may_write(entry.at + entry.took) {
                entry.write_error();
            }
        } else if self.is_sampled() {
            entry.write_info();
        }
    }

    fn is_sampled(&self) -> bool {
        match self.sample {
            0 => false,
            1 => true,
            one_in => self.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_in),
        }
    }
}

macro_rules! line {
    ($level:ident, $entry:expr, $message:literal) => {
        tracing::$level!(
            target: "urr_http::access",
            request_id = %$entry.id,
            method = %$entry.method,
            // Without the query, which may contain secrets.
            path = &*shown($entry.path),
            route = $entry.route,
            status = $entry.status.as_u16(),
            ms = $entry.took.as_secs_f64() * 1_000.0,
            code = $entry.code,
            cause = $entry.cause,
            $message
        )
    };
}

impl Entry<'_> {
    /// A 500 is a bug. Other server errors come from outages, overload or timeouts.
    fn write_error(&self) {
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            line!(error, self, "request failed");
        } else {
            line!(warn, self, "request failed");
        }
    }

    fn write_info(&self) {
        line!(info, self, "request");
    }
}

/// The path as it is logged. A segment longer than a UUID may be a token and is replaced by `…`.
fn shown(path: &str) -> Cow<'_, str> {
    let path = short(path);
    let is_token = |segment: &str| segment.len() > UUID_LEN;
    if !path.split('/').any(is_token) {
        return Cow::Borrowed(path);
    }
    let segments: Vec<_> =
        path.split('/').map(|segment| if is_token(segment) { "…" } else { segment }).collect();
    Cow::Owned(segments.join("/"))
}

fn short(path: &str) -> &str {
    match path.char_indices().nth(MAX_PATH_LEN) {
        Some((end, _)) => &path[..end],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_n_is_sampled() {
        let sampled = |sample| {
            let log = Log::new(AccessLog { sample });
            (0..1_000).filter(|_| log.is_sampled()).count()
        };
        assert_eq!((sampled(0), sampled(1), sampled(100)), (0, 1_000, 10));
    }

    #[test]
    fn a_token_in_a_path_is_not_logged() {
        let id = "0190a1f0-4b7e-7c3d-9f00-5a1c2b3d4e5f";
        assert_eq!(shown(&format!("/api/events/{id}")), format!("/api/events/{id}"));
        let token = "VKIN6PgBoeOC4Tx2CboKJKtdzoSKAaHjguHmdWSLOBx";
        assert_eq!(shown(&format!("/vwr/check/{id}/{token}")), format!("/vwr/check/{id}/…"));
        assert_eq!(shown(&format!("/vwr/check/{id}/{}", token.repeat(9))), format!("/vwr/check/{id}/…"));
    }

    #[test]
    fn a_long_path_is_cut_between_characters() {
        assert_eq!(short(&"가".repeat(300)).chars().count(), MAX_PATH_LEN);
        assert_eq!(short("/api"), "/api");
    }
}
