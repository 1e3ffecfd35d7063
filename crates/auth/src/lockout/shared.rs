//! Wrong passwords per network in the database: shared by all processes and kept across restarts.

use std::net::IpAddr;

use urr_db::Tx;
use urr_kernel::Timestamp;

use super::{brake::FORGIVE_EVERY, refuse, store};
use crate::{
    Failure,
    service::Service,
    sessions::rules::{FREE_TRIES_PER_NETWORK, wait_after},
};

/// The key of a network's counter: a keyed hash, so that the table reveals no addresses.
fn key(service: &Service, network: IpAddr) -> Vec<u8> {
    service.vault.index("login network", &network.to_string())
}

/// Fails while the network is throttled. Only reads, so that clients behind one address do not
/// block each other.
pub(super) async fn check(
    service: &Service,
    tx: &mut Tx<'_>,
    network: IpAddr,
    now: Timestamp,
) -> Result<(), Failure> {
    let until = store::locked_until(tx, &key(service, network)).await?;
    match until.filter(|until| *until > now) {
        Some(until) => Err(refuse(until.since(now))),
        None => Ok(()),
    }
}

/// Counts a wrong password. As in memory, the count decreases by one every 30 seconds.
pub(super) async fn fail(
    service: &Service,
    tx: &mut Tx<'_>,
    network: IpAddr,
    now: Timestamp,
) -> Result<(), Failure> {
    let key = key(service, network);
    let (tries, counted_at) = store::tries(tx, &key, now).await?;
    let (tries, counted_at) = forgiven(tries, counted_at, now);
    let tries = tries.saturating_add(1);
    let until = wait_after(tries, FREE_TRIES_PER_NETWORK).map(|wait| now.after(wait));
    Ok(store::set_tries(tx, &key, tries, counted_at, until).await?)
}

/// Returns the decayed count and its time: whole intervals are subtracted, the remainder is kept.
fn forgiven(tries: u32, at: Timestamp, now: Timestamp) -> (u32, Timestamp) {
    let spans = now.since(at).as_nanos() / FORGIVE_EVERY.as_nanos();
    match u32::try_from(spans).ok().and_then(|spans| Some((spans, tries.checked_sub(spans)?))) {
        Some((spans, left)) if left > 0 => (left, at.after(FORGIVE_EVERY.saturating_mul(spans))),
        _ => (0, now),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use urr_testkit::fixed_clock;

    use super::*;

    #[test]
    fn failures_decay_one_per_half_minute() {
        let then = fixed_clock().now();
        let later = |secs| then.after(Duration::from_secs(secs));
        assert_eq!(forgiven(5, then, then), (5, then));
        assert_eq!(forgiven(5, then, later(29)), (5, then));
        assert_eq!(forgiven(5, then, later(65)), (3, later(60)));
        assert_eq!(forgiven(3, later(60), later(89)), (3, later(60)), "the remainder of an interval is kept");
        assert_eq!(forgiven(5, then, later(1_000)), (0, later(1_000)));
        assert_eq!(forgiven(5, later(60), then), (5, later(60)), "a clock that is behind causes no decay");
    }
}
