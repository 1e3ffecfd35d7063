//! Internal headers of incoming requests: accepted if signed, stripped otherwise.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use http::{HeaderMap, HeaderName, header, uri::Authority};
use urr_http::Problem;
use urr_kernel::Clock;
use urr_passes::{Refusal, hop};

use crate::{codes, slots};

/// Prefixes of headers that only the gateway sets. From outside they are forged.
const INTERNAL_HEADERS: [&str; 4] = ["x-user-", "x-queue-", "x-urr-", "x-internal-"];

/// The one header with such a prefix that clients send: a signed token.
const ENTRY_TOKEN: &str = slots::HEADER;

/// Header in which a gateway of this installation signs that it forwarded a request. See [`hop`].
pub(crate) const HOP: HeaderName = HeaderName::from_static("x-urr-hop");

/// Minimum time between two warnings, because every request can cause one.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Strips internal headers.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let is_internal = |name: &HeaderName| {
        let name = name.as_str();
        // Check the first two letters before comparing all prefixes.
        name.starts_with("x-")
            && INTERNAL_HEADERS.iter().any(|prefix| name.starts_with(prefix))
            && name != ENTRY_TOKEN
    };
    if headers.keys().any(is_internal) {
        let forged: Vec<_> = headers.keys().filter(|name| is_internal(name)).cloned().collect();
        for name in forged {
            headers.remove(name);
        }
    }
}

/// Whether a request has at most one `Host`, and a valid one. Two hosts could be read differently
/// by the next server, and so could a host that contains a path.
pub(crate) fn has_good_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => true,
        (Some(host), None) => is_plain_name(host.as_bytes()) || host.to_str().is_ok_and(is_host),
        (Some(_), Some(_)) => false,
    }
}

fn is_host(text: &str) -> bool {
    !text.contains('@') && text.parse().is_ok_and(|host: Authority| !host.host().is_empty())
}

/// Fast path: letters, digits, dots, hyphens and an optional port. Nearly all hosts match, and it
/// is much faster than the full check.
fn is_plain_name(host: &[u8]) -> bool {
    let name =
        host.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')).count();
    let is_port = |port: &[u8]| (1..=4).contains(&port.len()) && port.iter().all(u8::is_ascii_digit);
    match host.split_at(name) {
        ([], _) => false,
        (_, []) => true,
        (_, [b':', port @ ..]) => is_port(port),
        _ => false,
    }
}

/// Returns the client of a request that another gateway of this installation forwarded, or `None`.
/// An expired signature is not a forgery: the clocks of the two machines differ. It is rejected,
/// because ignoring it would count all clients of that gateway as one.
pub(crate) fn hop(
    headers: &HeaderMap,
    hops: &hop::Verifier,
    clock: &Clock,
    warned: &LogThrottle,
) -> Result<Option<IpAddr>, Problem> {
    let Some(mark) = headers.get(HOP).and_then(|mark| mark.to_str().ok()) else { return Ok(None) };
    match hops.verify(mark, clock.now()) {
        Ok(client) => Ok(Some(client)),
        Err(Refusal::Invalid) => Ok(None),
        Err(Refusal::Expired) => {
            metrics::counter!("urr_gateway_stale_marks_total").increment(1);
            if warned.may(clock.ticks()) {
                tracing::warn!(
                    limit_secs = hop::LIFETIME.as_secs(),
                    "clock skew: requests forwarded by another gateway are refused with 503; \
                     are the clocks of both machines synchronised?"
                );
            }
            Err(Problem::of(codes::CLOCKS_DIFFER, "The clocks of this installation differ too much."))
        }
    }
}

/// Rate limit for an action, such as a log line.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle {
    /// Time of the last action, in microseconds of ticks plus one; 0 if never.
    last: AtomicU64,
}

impl LogThrottle {
    /// Whether the action may happen now. Of concurrent callers, only one gets `true`.
    pub(crate) fn may(&self, now: Duration) -> bool {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        let last = self.last.load(Ordering::Relaxed);
        let is_due = last == 0 || Duration::from_micros(now.saturating_sub(last)) >= WARN_EVERY;
        is_due && self.last.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_host_check_agrees_with_the_full_one() {
        for (host, plain) in [
            ("a", true),
            ("urr.example", true),
            ("127.0.0.1:3001", true),
            ("xn--bcher-kva.example:80", true),
            ("-.:1", true),
            ("[::1]:80", false),
            ("a_b", false),
            ("a:65535", false),
            ("a:", false),
            ("", false),
            (":80", false),
            ("a/b", false),
            ("a:1:2", false),
            ("me@a", false),
            ("a b", false),
        ] {
            assert_eq!(is_plain_name(host.as_bytes()), plain, "{host:?}");
            assert!(!plain || is_host(host), "{host:?}");
        }
    }

    #[test]
    fn warnings_are_rate_limited() {
        let warned = LogThrottle::default();
        let at = |millis| warned.may(Duration::from_millis(millis));
        assert_eq!(
            [at(0), at(0), at(9_999), at(10_000), at(10_001), at(25_000)],
            [true, false, false, true, false, true]
        );
    }
}
