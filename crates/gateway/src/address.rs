//! The client address of a request, behind proxies.
//!
//! Headers are trusted only as far as the chain of trusted proxies reaches: the last hop that is
//! not a trusted proxy is the client. Everything to the left of it can be forged.

use std::{net::IpAddr, str::FromStr};

use http::{HeaderMap, HeaderName, header};

/// Hops examined. Real chains have one to four.
const MAX_HOPS: usize = 16;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A CIDR block, such as `10.0.0.0/8` or `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: u128,
    bits: u32,
    is_v4: bool,
}

/// Error for text that is not a CIDR block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address or CIDR block such as 10.0.0.0/8, 192.0.2.1 or 2001:db8::/32")]
pub struct BadCidr(String);

impl Cidr {
    /// Whether the address is in the block. IPv4-mapped IPv6 addresses are treated as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (value, is_v4) = value(address);
        self.is_v4 == is_v4 && prefix(value, self.bits, is_v4) == self.network
    }
}

fn value(address: IpAddr) -> (u128, bool) {
    match address.to_canonical() {
        IpAddr::V4(address) => (u128::from(address.to_bits()), true),
        IpAddr::V6(address) => (address.to_bits(), false),
    }
}

fn width(is_v4: bool) -> u32 {
    if is_v4 { 32 } else { 128 }
}

/// Returns the first `bits` of an address. Zero bits are handled separately: shifting by the full
/// width overflows.
fn prefix(value: u128, bits: u32, is_v4: bool) -> u128 {
    value.checked_shr(width(is_v4) - bits).unwrap_or(0)
}

impl FromStr for Cidr {
    type Err = BadCidr;

    fn from_str(text: &str) -> Result<Self, BadCidr> {
        let bad = || BadCidr(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let (value, is_v4) = value(address.trim().parse().map_err(|_| bad())?);
        let bits = match bits {
            Some(bits) => bits.trim().parse().ok().filter(|bits| *bits <= width(is_v4)).ok_or_else(bad)?,
            None => width(is_v4),
        };
        Ok(Self { network: prefix(value, bits, is_v4), bits, is_v4 })
    }
}

urr_settings::choice! {
    /// The header in which trusted proxies report the client's address. Exactly one is believed: a
    /// proxy that does not know the other one passes it through as the client wrote it.
    #[derive(Default)]
    pub enum ForwardedHeader {
        /// `X-Forwarded-For: client, proxy`.
        #[default]
        XForwardedFor = "x-forwarded-for",
        /// `Forwarded: for=client, for=proxy` (RFC 7239).
        Forwarded = "forwarded",
    }
}

/// Headers in which proxies report the origin of a request.
pub(crate) const HEARSAY: [HeaderName; 8] = [
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-cluster-client-ip"),
];

/// Addresses that may read the metrics and health details of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operators {
    /// Addresses of operators.
    pub addresses: Vec<Cidr>,
    /// Proxies trusted to report the client address.
    pub proxies: TrustedProxies,
}

impl Operators {
    /// Whether a request on a connection from `peer` comes from an operator. A request forwarded by
    /// an untrusted proxy may come from anywhere, so it never counts as one, however near the proxy
    /// is.
    pub fn include(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let is_passed_on = || HEARSAY.iter().chain([&header::VIA]).any(|name| headers.contains_key(name));
        if !self.proxies.trusts(peer.to_canonical()) && is_passed_on() {
            return false;
        }
        let client = self.proxies.client(peer, headers);
        self.addresses.iter().any(|block| block.contains(client))
    }
}

/// Trusted proxies. None by default: then the peer of the connection is the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Addresses of the proxies.
    pub addresses: Vec<Cidr>,
    /// The header they set.
    pub header: ForwardedHeader,
}

impl TrustedProxies {
    /// Returns the client address of a request on a connection from `peer`.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        for hop in self.hops(headers).into_iter().rev().take(MAX_HOPS) {
            // This trusted proxy does not report a client, so its own address is the best we have.
            let Some(hop) = hop else { return client };
            client = hop;
            if !self.trusts(client) {
                return client;
            }
        }
        client
    }

    /// Whether the address belongs to a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|block| block.contains(address))
    }

    fn hops(&self, headers: &HeaderMap) -> Vec<Option<IpAddr>> {
        let (name, read): (_, fn(&str) -> Option<IpAddr>) = match self.header {
            ForwardedHeader::XForwardedFor => (X_FORWARDED_FOR, node),
            ForwardedHeader::Forwarded => (header::FORWARDED, forwarded_for),
        };
        // Several header lines form one list. A line that is not text counts as one unknown hop.
        let lines = headers.get_all(name).iter();
        lines.flat_map(|line| split(line.to_str().unwrap_or_default(), ',').map(read)).collect()
    }
}

/// Returns the address of the `for=` pair of one element.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    split(element, ';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| node(value.trim().trim_matches('"')))?
    })
}

/// Parses an address with or without port and brackets.
fn node(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|socket: std::net::SocketAddr| socket.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

/// Splits at a separator outside of quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |letter| {
        quoted ^= letter == '"';
        letter == separator && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(header: ForwardedHeader) -> TrustedProxies {
        let addresses = ["10.0.0.0/8", "2001:db8:ffff::/48", "192.0.2.7"];
        TrustedProxies { addresses: addresses.map(|text| text.parse().unwrap()).into(), header }
    }

    fn client(header: ForwardedHeader, peer: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        proxies(header).client(peer.parse().unwrap(), &headers).to_string()
    }

    fn x_forwarded_for(peer: &str, lines: &[&str]) -> String {
        let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
        client(ForwardedHeader::XForwardedFor, peer, &lines)
    }

    #[test]
    fn cidr_blocks_contain_their_addresses() {
        let contains =
            |block: &str, address: &str| block.parse::<Cidr>().unwrap().contains(address.parse().unwrap());
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("10.1.2.3/8", "10.9.9.9"), "host bits are ignored");
        assert!(contains("192.0.2.1", "192.0.2.1") && !contains("192.0.2.1", "192.0.2.2"));
        assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1") && contains("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(contains("2001:db8::/32", "2001:db8:1::1") && !contains("2001:db8::/32", "2001:db9::1"));
        assert!(contains("0.0.0.0/0", "192.0.2.1") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("::/0", "2001:db8::1") && !contains("::/0", "192.0.2.1"));
        for bad in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "::/129", "localhost"] {
            assert_eq!(bad.parse::<Cidr>(), Err(BadCidr(bad.to_owned())));
        }
    }

    #[test]
    fn headers_of_untrusted_peers_are_ignored() {
        assert_eq!(x_forwarded_for("198.51.100.9", &["1.1.1.1"]), "198.51.100.9");
        assert_eq!(x_forwarded_for("::ffff:198.51.100.9", &["1.1.1.1"]), "198.51.100.9");
        let nobody = TrustedProxies::default();
        let headers = HeaderMap::from_iter([(X_FORWARDED_FOR, "1.1.1.1".parse().unwrap())]);
        assert_eq!(nobody.client("10.0.0.1".parse().unwrap(), &headers).to_string(), "10.0.0.1");
    }

    #[test]
    fn the_last_untrusted_hop_is_the_client() {
        assert_eq!(x_forwarded_for("10.0.0.1", &["198.51.100.9"]), "198.51.100.9");
        assert_eq!(
            x_forwarded_for("10.0.0.1", &["1.1.1.1, 198.51.100.9"]),
            "198.51.100.9",
            "earlier hops are ignored"
        );
        assert_eq!(x_forwarded_for("10.0.0.1", &["1.1.1.1,198.51.100.9,10.0.0.2"]), "198.51.100.9");
        assert_eq!(x_forwarded_for("10.0.0.1", &["1.1.1.1", "198.51.100.9", "192.0.2.7"]), "198.51.100.9");
        assert_eq!(x_forwarded_for("10.0.0.1", &["198.51.100.9:4711"]), "198.51.100.9");
        assert_eq!(x_forwarded_for("10.0.0.1", &["[2001:db8::9]:4711"]), "2001:db8::9");
        assert_eq!(x_forwarded_for("2001:db8:ffff::1", &["2001:db8::9"]), "2001:db8::9");
    }

    #[test]
    fn a_request_through_an_untrusted_proxy_is_never_an_operator() {
        let proxies = proxies(ForwardedHeader::XForwardedFor);
        let addresses = ["127.0.0.0/8", "::1", "198.51.100.0/24"];
        let operators = Operators { addresses: addresses.map(|text| text.parse().unwrap()).into(), proxies };
        let is_operator = |peer: &str, lines: &[(&'static str, &str)]| {
            let lines = lines.iter().map(|(name, value)| {
                (HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap())
            });
            operators.include(peer.parse().unwrap(), &lines.collect())
        };
        for near in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "198.51.100.9"] {
            assert!(is_operator(near, &[]), "{near}");
        }
        assert!(
            !is_operator("203.0.113.5", &[]) && !is_operator("203.0.113.5", &[("x-real-ip", "127.0.0.1")])
        );
        for passed_on in [("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=::1"), ("via", "1.1 nginx")] {
            assert!(!is_operator("127.0.0.1", &[passed_on]), "{passed_on:?}");
        }
        assert!(
            is_operator("10.0.0.1", &[("x-forwarded-for", "198.51.100.9")]),
            "reported by a trusted proxy"
        );
        assert!(!is_operator("10.0.0.1", &[("x-forwarded-for", "198.51.100.9, 203.0.113.5")]));
        assert!(!is_operator("10.0.0.1", &[]), "the proxy itself is not an operator");
        assert!(!Operators::default().include("127.0.0.1".parse().unwrap(), &HeaderMap::new()));
    }

    #[test]
    fn an_unreadable_hop_ends_the_chain_at_the_last_known_proxy() {
        assert_eq!(x_forwarded_for("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(x_forwarded_for("10.0.0.1", &["198.51.100.9, unknown"]), "10.0.0.1");
        assert_eq!(x_forwarded_for("10.0.0.1", &["198.51.100.9, , 10.0.0.2"]), "10.0.0.2");
        assert_eq!(x_forwarded_for("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3", "all trusted");
        let endless = vec!["10.0.0.2"; 1_000].join(",");
        assert_eq!(x_forwarded_for("10.0.0.1", &[&endless]), "10.0.0.2");
    }

    #[test]
    fn only_the_configured_header_is_read() {
        let both = [("x-forwarded-for", "198.51.100.9"), ("forwarded", "for=203.0.113.5")];
        assert_eq!(client(ForwardedHeader::XForwardedFor, "10.0.0.1", &both), "198.51.100.9");
        assert_eq!(client(ForwardedHeader::Forwarded, "10.0.0.1", &both), "203.0.113.5");
    }

    #[test]
    fn the_forwarded_header_is_parsed_per_rfc_7239() {
        let forwarded = |line| client(ForwardedHeader::Forwarded, "10.0.0.1", &[("forwarded", line)]);
        assert_eq!(forwarded("for=198.51.100.9;proto=https;by=10.0.0.1"), "198.51.100.9");
        assert_eq!(forwarded("proto=https; For=\"[2001:db8::9]:4711\""), "2001:db8::9");
        assert_eq!(forwarded("for=1.1.1.1, for=198.51.100.9, for=10.0.0.2"), "198.51.100.9");
        assert_eq!(forwarded("for=198.51.100.9;ext=\"a,b;for=1.1.1.1\""), "198.51.100.9", "in quotes");
        assert_eq!(forwarded("for=_hidden"), "10.0.0.1");
        assert_eq!(forwarded("proto=https"), "10.0.0.1");
    }
}
