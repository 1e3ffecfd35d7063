//! Addresses of other gateways of this installation.
//!
//! A gateway forwards the requests of many clients from one address, so the limit of connections per
//! address must not apply to it. Its address is learnt from requests that carry a valid signature
//! (`X-Urr-Hop`), which no client can make.

use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{PoisonError, RwLock},
};

/// More than an installation has gateways. Beyond it further addresses are limited like any other.
const MAX_GATEWAYS: usize = 1_024;

/// The known addresses.
#[derive(Debug, Default)]
pub struct Gateways(RwLock<HashSet<IpAddr>>);

impl Gateways {
    /// Remembers the address of a gateway for the life of the process.
    pub(crate) fn note(&self, address: IpAddr) {
        if self.contains(address) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_GATEWAYS {
            known.insert(address);
        }
    }

    /// Whether a gateway of this installation has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_known_gateways_is_bounded() {
        let gateways = Gateways::default();
        let address = |number: u32| IpAddr::V4(number.into());
        (0..2_000).for_each(|number| gateways.note(address(number)));
        assert!(gateways.contains(address(1_023)) && !gateways.contains(address(1_024)));
    }
}
