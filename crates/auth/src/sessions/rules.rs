//! Lifetimes of sessions and tokens, client identity, and waits after failed attempts. Pure.

use std::{net::IpAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use urr_contracts::auth::{Origin, Sensitive};
use urr_kernel::Timestamp;
use urr_passes::succession::TOKEN_LEN;

const DAY: Duration = Duration::from_hours(24);

/// Lifetime of an unused refresh token.
pub(crate) const REFRESH_LIFETIME: Duration = DAY.saturating_mul(7);

/// Maximum lifetime of a session.
pub(crate) const SESSION_LIFETIME: Duration = DAY.saturating_mul(30);

/// A client may present an exchanged token again within this time: two tabs woke up at once, or the
/// response was lost.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// Maximum number of such repeats: a browser may wake up that many tabs at once.
pub(crate) const MAX_GRACE_USES: u32 = 20;

/// Maximum sessions per account: enough for a family's devices. Beyond it the least recently used
/// ends.
pub(crate) const MAX_SESSIONS: usize = 20;

/// Maximum stored length of a user agent.
const MAX_AGENT_CHARS: usize = 300;

/// An access token may be signed shortly after its session's revocation is dated: while that
/// transaction runs, or on a machine whose clock is ahead. A revocation outlasts a token by this
/// margin.
const TOKEN_MARGIN: Duration = Duration::from_mins(1);

/// How long a revocation must be kept, from its date.
pub const fn revocation_life(access_lifetime: Duration) -> Duration {
    access_lifetime.saturating_add(TOKEN_MARGIN)
}

/// When the last access token of a session that ended at `at` has expired.
pub(crate) fn revoked_until(at: Timestamp, access_lifetime: Duration) -> Timestamp {
    at.after(revocation_life(access_lifetime))
}

/// Encodes a token: random bytes, or the successor of another token.
pub(crate) fn token(bytes: [u8; TOKEN_LEN]) -> Sensitive {
    Sensitive::new(URL_SAFE_NO_PAD.encode(bytes))
}

/// Decodes a token. `None`: it is malformed.
pub(crate) fn token_bytes(token: &Sensitive) -> Option<[u8; TOKEN_LEN]> {
    URL_SAFE_NO_PAD.decode(token.expose()).ok()?.try_into().ok()
}

/// The stored hash of a token. A stolen table is useless, and looking it up leaks nothing by
/// timing. `None`: the token is malformed.
pub(crate) fn token_hash(token: &Sensitive) -> Option<Vec<u8>> {
    token_bytes(token).map(|bytes| hash(&bytes))
}

/// The stored hash of a token's bytes.
pub(crate) fn hash(bytes: &[u8; TOKEN_LEN]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// Expiry of a refresh token created now.
pub(crate) fn refresh_expires_at(now: Timestamp, session_ends: Timestamp) -> Timestamp {
    now.after(REFRESH_LIFETIME).min(session_ends)
}

/// Normalises an origin for storage: a parsed address or none, and a user agent of limited length.
pub(crate) fn clean(origin: &Origin) -> Origin {
    let address = origin.address.trim().parse::<IpAddr>();
    let agent = origin.agent.chars().filter(|c| !c.is_control()).take(MAX_AGENT_CHARS).collect();
    Origin {
        address: address.map_or_else(|_| String::new(), |address| address.to_canonical().to_string()),
        agent,
    }
}

/// The network of an address: one household has one IPv4 address or one IPv6 /64.
pub(crate) fn network(address: &str) -> Option<IpAddr> {
    match address.parse::<IpAddr>().ok()?.to_canonical() {
        IpAddr::V4(v4) => Some(IpAddr::V4(v4)),
        IpAddr::V6(v6) => Some(IpAddr::V6((u128::from(v6) >> 64 << 64).into())),
    }
}

/// Identifies a client: its network and user agent.
pub(crate) fn client(origin: &Origin) -> Vec<u8> {
    let network = network(&origin.address).map(|network| network.to_string()).unwrap_or_default();
    Sha256::new().chain_update(network).chain_update([0]).chain_update(&origin.agent).finalize().to_vec()
}

/// Wrong passwords per account before a wait: users mistype.
pub(crate) const FREE_TRIES: u32 = 5;

/// Wrong passwords per network before a wait: an office may share one address.
pub(crate) const FREE_TRIES_PER_NETWORK: u32 = 30;

/// Maximum wait, so that no user is locked out permanently.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(15);

/// Counters expire this long after the last wrong password.
pub(crate) const FORGET_TRIES_AFTER: Duration = Duration::from_hours(1);

/// The wait after this many wrong passwords: none, then 1, 2, 4 … seconds, at most 15 minutes.
pub(crate) fn wait_after(tries: u32, free: u32) -> Option<Duration> {
    let beyond = tries.checked_sub(free)?;
    // 2^10 seconds exceed the maximum wait.
    Some(Duration::from_secs(1 << beyond.min(10)).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use urr_kernel::Clock;

    use super::*;

    fn origin(address: &str, agent: &str) -> Origin {
        Origin { address: address.to_owned(), agent: agent.to_owned() }
    }

    #[test]
    fn waits_double_from_a_second_to_a_quarter_of_an_hour() {
        let secs = |tries| wait_after(tries, FREE_TRIES).map(|wait| wait.as_secs());
        assert_eq!([1, 4].map(secs), [None, None]);
        assert_eq!([5, 6, 7, 14, 15, 1_000, u32::MAX].map(secs), [1, 2, 4, 512, 900, 900, 900].map(Some));
    }

    #[test]
    fn a_token_is_known_by_its_hash_alone() {
        let made = token([7; TOKEN_LEN]);
        assert_eq!(made.expose().len(), 43);
        assert_eq!(token_hash(&made), token_hash(&Sensitive::new(made.expose())));
        assert_ne!(token_hash(&made), token_hash(&token([8; TOKEN_LEN])));
        for bad in ["", "short", &format!("{}=", made.expose()), &format!("{}AA", made.expose()), "eyJ.eyJ.x"]
        {
            assert_eq!(token_hash(&Sensitive::new(bad)), None, "{bad}");
        }
    }

    #[test]
    fn a_refresh_token_never_outlives_its_session() {
        let now = Clock::system().now();
        assert_eq!(refresh_expires_at(now, now.after(DAY * 30)), now.after(DAY * 7));
        assert_eq!(refresh_expires_at(now, now.after(DAY)), now.after(DAY));
    }

    #[test]
    fn a_client_is_its_network_and_user_agent() {
        let here = client(&origin("2001:db8::1", "Firefox"));
        assert_eq!(
            here,
            client(&origin("2001:db8::ffff", "Firefox")),
            "addresses within one /64 are the same client"
        );
        assert_ne!(here, client(&origin("2001:db8:0:1::1", "Firefox")));
        assert_ne!(here, client(&origin("2001:db8::1", "Safari")));
        assert_ne!(client(&origin("192.0.2.1", "")), client(&origin("192.0.2.2", "")));
    }

    #[test]
    fn origins_are_normalised_and_bounded() {
        let kept = clean(&origin(" ::ffff:192.0.2.1 ", &"x\u{7}".repeat(1_000)));
        assert_eq!((kept.address.as_str(), kept.agent.len()), ("192.0.2.1", 300));
        assert_eq!(clean(&origin("nonsense", "a")).address, "");
    }
}
