//! Limits the open connections per client address.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The /64 prefix of an IPv6 address. A subscriber has at least a /64, so its addresses count as
/// one.
const IPV6_NETWORK: u128 = !0 << 64;

type IsShared = dyn Fn(IpAddr) -> bool + Send + Sync;

/// Tells which addresses many clients share, such as proxies. They are exempt from the limit.
#[derive(Clone)]
pub(crate) struct Shared(Arc<IsShared>);

impl Shared {
    pub(crate) fn new(is_shared: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_shared))
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new(|_| false)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// Counts connections per address.
#[derive(Debug)]
pub(crate) struct PerAddress {
    max: usize,
    shared: Shared,
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl PerAddress {
    pub(crate) fn new(max: usize, shared: Shared) -> Arc<Self> {
        Arc::new(Self { max, shared, open: Mutex::default() })
    }

    /// Counts one more connection from `peer`, or returns `None` if the address is at its limit.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        let peer = peer.to_canonical();
        if (self.shared.0)(peer) {
            return Some(ConnectionPermit(None));
        }
        let address = counted_as(peer);
        let mut open = self.open();
        let count = open.entry(address).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit(Some((Arc::clone(self), address))))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counted_as(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & IPV6_NETWORK).into(),
    }
}

/// One counted connection. Dropping it frees its place.
#[derive(Debug)]
pub(crate) struct ConnectionPermit(Option<(Arc<PerAddress>, IpAddr)>);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Some((counts, address)) = self.0.take() else { return };
        let mut open = counts.open();
        if let Some(count) = open.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn connections_per_address_are_limited_and_freed_on_drop() {
        let counts = PerAddress::new(2, Shared::default());
        let [one, other] = [address("192.0.2.1"), address("192.0.2.2")];
        let mut permits = vec![counts.take(one).unwrap(), counts.take(one).unwrap()];
        assert!(counts.take(one).is_none());
        assert!(counts.take(address("::ffff:192.0.2.1")).is_none(), "the same address, IPv4-mapped");
        assert!(counts.take(other).is_some());
        permits.pop();
        permits.push(counts.take(one).expect("one connection was closed"));
        assert!(counts.take(one).is_none());
        drop(permits);
        assert!(counts.open().is_empty(), "addresses without connections take no memory");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let counts = PerAddress::new(1, Shared::default());
        let _place = counts.take(address("2001:db8:0:1::1")).unwrap();
        assert!(counts.take(address("2001:db8:0:1:ffff::2")).is_none());
        assert!(counts.take(address("2001:db8:0:2::1")).is_some());
    }

    #[test]
    fn shared_addresses_have_no_limit() {
        let proxy = address("192.0.2.1");
        let counts = PerAddress::new(1, Shared::new(move |peer| peer == proxy));
        let permits: Vec<_> = (0..10).map(|_| counts.take(proxy)).collect();
        assert!(permits.iter().all(Option::is_some));
    }
}
