//! The client's address.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use http::{Extensions, request::Parts};

use crate::Peer;

/// The client's address as the gateway determined it: the peer of the connection, or what a trusted
/// proxy reports. For rate limits, history and lockouts, never for authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The address set by the gateway, else the peer of the connection. `0.0.0.0` for a request
    /// without a connection, as in tests.
    pub fn of(extensions: &Extensions) -> Self {
        if let Some(found) = extensions.get::<Self>() {
            return *found;
        }
        let peer = extensions.get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Peer(peer)| peer.ip());
        Self(peer.to_canonical())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.extensions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_set_by_the_gateway_overrides_the_peer() {
        let mut extensions = Extensions::new();
        let client = |extensions: &Extensions| ClientAddress::of(extensions).0.to_string();
        assert_eq!(client(&extensions), "0.0.0.0");
        extensions.insert(Peer("[::ffff:192.0.2.1]:80".parse().unwrap()));
        assert_eq!(client(&extensions), "192.0.2.1", "IPv4-mapped addresses are canonical");
        extensions.insert(ClientAddress("2001:db8::1".parse().unwrap()));
        assert_eq!(client(&extensions), "2001:db8::1");
    }
}
