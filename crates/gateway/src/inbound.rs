//! What a request says about itself that only we may say: believed when it is signed, taken off otherwise.

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

/// Headers that carry what we found out about a request. Coming from outside they are a forgery.
const INTERNAL_HEADERS: [&str; 4] = ["x-user-", "x-queue-", "x-urr-", "x-internal-"];

/// The one header of such a name that clients are meant to send: a signed token, believed only as far as its signature.
const ENTRY_TOKEN: &str = slots::HEADER;

/// In which one of our gateways says that it passed a request on. See [`hop`].
pub(crate) const HOP: HeaderName = HeaderName::from_static("x-urr-hop");

/// Every request can cause the warning, so it is written no more often than this.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Takes off what only we may set.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let is_internal = |name: &HeaderName| {
        let name = name.as_str();
        // Most headers are told apart by their first two letters.
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

/// Whether a request says at most once who is asked, and as a host. Two hosts are two opinions, and the next one to read the request may
/// hold the other; so may whoever finds a path in one.
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

/// Whether it is a host beyond doubt: letters, digits, dots and hyphens, and perhaps a port. Nearly all are, and this is seen much
/// more quickly than what else is a host.
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

/// The client of a request that another gateway of ours has passed on. `None`: none has. A mark of ours that is too old is no
/// forgery: the clocks of two machines differ. Going on without it would count everybody behind that gateway as one client, so it is
/// said instead.
pub(crate) fn hop(
    headers: &HeaderMap,
    hops: &hop::Verifier,
    clock: &Clock,
    warned: &Rarely,
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
                    "a gateway's clock differs from ours: requests that it passes on are refused"
                );
            }
            Err(Problem::of(codes::CLOCKS_DIFFER, "The clocks of this installation differ too much."))
        }
    }
}

/// Lets something happen once in a while.
#[derive(Debug, Default)]
pub(crate) struct Rarely {
    /// When it happened last, in microseconds of ticks plus one; 0: never.
    last: AtomicU64,
}

impl Rarely {
    /// Whether it may happen now. Of many who ask at once, one is told yes.
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
    fn what_is_plainly_a_host_is_one_by_the_long_way_too() {
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
    fn a_warning_is_written_once_in_a_while() {
        let warned = Rarely::default();
        let at = |millis| warned.may(Duration::from_millis(millis));
        assert_eq!(
            [at(0), at(0), at(9_999), at(10_000), at(10_001), at(25_000)],
            [true, false, false, true, false, true]
        );
    }
}
