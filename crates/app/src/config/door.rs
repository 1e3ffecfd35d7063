//! The settings of the front door: who is believed, who may come how often, and who answers elsewhere.

use std::time::Duration;

use urr_gateway::{
    BadOrigin, Origins,
    address::{Cidr, ForwardedHeader, Operators, TrustedProxies},
    limit::RateLimits,
};

use super::{HttpUrl, Profile, Values, choices::ForwardedName, kinds::Kind, settings as s};
use crate::roles::Role;

/// The front door of the process.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    /// Who is believed about where a request comes from.
    pub proxies: TrustedProxies,
    /// From where one may see how the process fares.
    pub operators: Operators,
    /// Other origins whose pages may use the API.
    pub origins: Origins,
    /// How many requests a client may make; `None`: as many as it likes.
    pub limits: Option<RateLimits>,
    /// Where the public listeners of roles are that run elsewhere. Only of use to the gateway.
    pub upstream: Upstream,
}

/// Where the public listeners of other processes are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upstream {
    /// Of those with accounts.
    pub auth: Vec<HttpUrl>,
    /// Of those with the catalog.
    pub catalog: Vec<HttpUrl>,
    /// Of those with the waiting room.
    pub queue: Vec<HttpUrl>,
    /// Of those with the pages.
    pub site: Vec<HttpUrl>,
    /// Of those with tickets.
    pub tickets: Vec<HttpUrl>,
    /// Of those with Tier 1 of the waiting room.
    pub vwr: Vec<HttpUrl>,
}

impl Upstream {
    /// The replicas of a role.
    pub(crate) fn of(&self, role: Role) -> &[HttpUrl] {
        match role {
            Role::Auth => &self.auth,
            Role::Catalog => &self.catalog,
            Role::Queue => &self.queue,
            Role::Site => &self.site,
            Role::Tickets => &self.tickets,
            Role::Vwr => &self.vwr,
            Role::Gateway | Role::Notices => &[],
        }
    }
}

/// The front door as it was configured.
pub(super) fn door(values: &Values) -> Door {
    let header = match values.get(&s::HTTP_FORWARDED_HEADER) {
        ForwardedName::XForwardedFor => ForwardedHeader::XForwardedFor,
        ForwardedName::Forwarded => ForwardedHeader::Forwarded,
    };
    let origins = values.get(&s::HTTP_ORIGINS).0;
    let origins = Origins::new(origins.iter().map(|Origin(text)| text.as_str()));
    let proxies = TrustedProxies { addresses: values.get(&s::HTTP_TRUSTED_PROXIES).0, header };
    Door {
        operators: Operators { addresses: operators(values), proxies: proxies.clone() },
        proxies,
        origins: origins.expect("values were checked when they were loaded"),
        limits: values.get(&s::LIMITS_ENABLED).then(|| rate_limits(values)),
        upstream: Upstream {
            auth: values.get(&s::UPSTREAM_AUTH).0,
            catalog: values.get(&s::UPSTREAM_CATALOG).0,
            queue: values.get(&s::UPSTREAM_QUEUE).0,
            site: values.get(&s::UPSTREAM_SITE).0,
            tickets: values.get(&s::UPSTREAM_TICKETS).0,
            vwr: values.get(&s::UPSTREAM_VWR).0,
        },
    }
}

/// In production a proxy on the same machine may be what stands between us and everybody, so nobody is near by default.
fn operators(values: &Values) -> Vec<Cidr> {
    match (values.get(&s::HTTP_OPERATORS), values.get(&s::PROFILE)) {
        (Some(configured), _) => configured.0,
        (None, Profile::Local) => ["127.0.0.0/8", "::1"].map(|block| block.parse().expect("a block")).into(),
        (None, Profile::Production) => Vec::new(),
    }
}

fn rate_limits(values: &Values) -> RateLimits {
    RateLimits {
        window: Duration::from_mins(1),
        auth: values.get(&s::LIMITS_AUTH).count(),
        login: values.get(&s::LIMITS_LOGIN).count(),
        queue: values.get(&s::LIMITS_QUEUE).count(),
        arrivals: values.get(&s::LIMITS_ARRIVALS).count(),
        booking: values.get(&s::LIMITS_BOOKING).count(),
        payments: values.get(&s::LIMITS_PAYMENTS).count(),
        general: values.get(&s::LIMITS_GENERAL).count(),
    }
}

impl Kind for Cidr {
    fn describe() -> String {
        "address or block such as `10.0.0.0/8`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is no block of addresses such as 10.0.0.0/8 or 2001:db8::/32".to_owned())
    }
}

/// An origin as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin(String);

impl Kind for Origin {
    fn describe() -> String {
        "origin such as `https://shop.example`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let bad = |_: BadOrigin| {
            "is no origin such as https://shop.example: scheme, host in lower case, and a port if it is unusual"
                .to_owned()
        };
        Origins::new([text]).map(|_| Self(text.to_owned())).map_err(bad)
    }
}
