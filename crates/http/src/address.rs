//! Who is at the other end, as an address.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use http::{Extensions, request::Parts};

use crate::Peer;

/// The address of the client itself. The gateway puts it into the request: the other end of the connection, or, behind proxies
/// that are configured as trusted, what they say about it. For limits, histories and lockouts, never for rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The client of a request: as the gateway found it, else the other end of the connection. A request that came over no
    /// connection, as in tests, is from nowhere: `0.0.0.0`.
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
    fn what_the_gateway_found_comes_before_the_peer() {
        let mut extensions = Extensions::new();
        let client = |extensions: &Extensions| ClientAddress::of(extensions).0.to_string();
        assert_eq!(client(&extensions), "0.0.0.0");
        extensions.insert(Peer("[::ffff:192.0.2.1]:80".parse().unwrap()));
        assert_eq!(client(&extensions), "192.0.2.1", "one spelling for an address");
        extensions.insert(ClientAddress("2001:db8::1".parse().unwrap()));
        assert_eq!(client(&extensions), "2001:db8::1");
    }
}
