//! Settings of the public listener: trusted proxies, operators, origins.

use urr_settings::{Kind, List, items, settings};

use crate::{
    Origins,
    address::{Cidr, ForwardedHeader, Operators, TrustedProxies},
};

settings! {
    /// The part of `[http]` that concerns the public listener.
    pub struct Settings in "http" {
        /// Proxies and balancers in front of this process: the client address they report is
        /// believed. Other gateways of this product need not be listed.
        pub trusted_proxies: List<Cidr> = "",
        /// The header in which they report it.
        pub forwarded_header: ForwardedHeader = "x-forwarded-for",
        /// Addresses that may read `/metrics` and the details of `/health/ready` on the public
        /// listener; others learn only whether the process is ready. What a proxy passes on counts
        /// only if the proxy is a trusted one. Left out, `127.0.0.0/8,::1` for the `local` profile
        /// and none for `production`; the internal listener shows both to every caller with its
        /// token.
        pub operators: Option<List<Cidr>> = "",
        /// Other origins whose pages may use the API from a browser (CORS). Browsers send cookies
        /// along only from origins of the same site, such as `https://shop.urr.example` for
        /// `https://urr.example`; pages of other sites send tokens in `Authorization`.
        pub origins: Origins = "",
    }
}

impl Settings {
    /// Loopback addresses.
    pub fn loopback() -> Vec<Cidr> {
        ["127.0.0.0/8", "::1"].map(|block| block.parse().expect("the fixed blocks are valid")).into()
    }

    /// Returns the trusted proxies.
    pub fn proxies(&self) -> TrustedProxies {
        TrustedProxies { addresses: self.trusted_proxies.clone(), header: self.forwarded_header }
    }

    /// Returns the operators.
    pub fn operators(&self) -> Operators {
        Operators { addresses: self.operators.clone().unwrap_or_default(), proxies: self.proxies() }
    }
}

impl Kind for Cidr {
    type Value = Self;

    fn describe() -> String {
        "address or block such as `10.0.0.0/8`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is not a CIDR block such as 10.0.0.0/8 or 2001:db8::/32".to_owned())
    }
}

impl Kind for Origins {
    type Value = Self;

    fn describe() -> String {
        "list of: origin such as `https://shop.example`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Self::new(items(text)).map_err(|_| {
            "is not an origin such as https://shop.example: scheme, lower-case host, port unless default"
                .to_owned()
        })
    }
}
