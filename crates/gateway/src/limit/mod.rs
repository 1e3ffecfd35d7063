//! Rate limits: an exact sliding window per class of routes and client.
//!
//! A request is admitted if fewer than the limit were admitted during the window that ends now;
//! rejected requests do not count. Both stores keep the timestamps of recent admissions, so "at
//! most 30 in any minute" holds for every minute.

mod memory;
mod redis;
#[cfg(test)]
mod suite;

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use urr_http::Class;
use urr_kernel::{Clock, UserId};
use urr_kv::Kv;
use urr_settings::{Count, settings};

pub use self::{memory::MemoryLimiter, redis::Redis};

settings! {
    /// How many requests each class lets through per window.
    #[derive(Copy, PartialEq, Eq)]
    pub struct RateLimits in "limits"
        "Requests per minute and client: a signed-in user is counted by account, others and every sign-in or \
         registration by address. More get 429 with Retry-After. Counted in Redis if there is one, else by each \
         process for itself."
    {
        /// Off where a proxy in front counts already, and for load tests.
        pub enabled: bool = "true",
        /// Signing in, signing up, refreshing and everything else under `/api/auth`. A person needs
        /// two; an office behind one address a few dozen.
        pub auth: Count<1, 1_000_000> = "60",
        /// Signing in to one account, from any address.
        pub login: Count<1, 1_000_000> = "10",
        /// The waiting room. The quickest poll is one a second.
        pub queue: Count<1, 1_000_000> = "120",
        /// Arriving at Tier 1 of the waiting room: its page, and taking a number. A carrier's
        /// address may stand for ten thousand phones.
        pub arrivals: Count<1, 1_000_000> = "30000",
        /// Taking and giving back seats.
        pub booking: Count<1, 1_000_000> = "30",
        /// Paying.
        pub payments: Count<1, 1_000_000> = "20",
        /// Everything else.
        pub general: Count<1, 1_000_000> = "3000",
    }
    beside {
        /// How far back is counted. At most an hour.
        pub window: Duration = Duration::from_mins(1),
    }
}

impl RateLimits {
    /// Returns the limit of a class. A limit of 0 rejects all requests.
    pub const fn of(&self, class: Class) -> u32 {
        match class {
            Class::Auth => self.auth,
            Class::Login => self.login,
            Class::Queue => self.queue,
            Class::Arrivals => self.arrivals,
            Class::Booking => self.booking,
            Class::Payments => self.payments,
            Class::General => self.general,
        }
    }
}

/// Client whose requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// A signed-in user, at any address.
    User(UserId),
    /// All requests from this address that are not counted by user. Created by [`Who::address`].
    Address(IpAddr),
    /// An account during sign-in, as a hash of its name: names do not belong in a store of
    /// counters.
    Account([u8; 16]),
}

/// A household or a server usually gets a /64 network and can use any address in it.
const IPV6_NETWORK_BITS: u32 = 64;

impl Who {
    /// Returns the client at an address. All addresses of one IPv6 /64 network are one client.
    pub fn address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let network = address.to_bits() >> IPV6_NETWORK_BITS << IPV6_NETWORK_BITS;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        })
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user:{user}"),
            Self::Address(address) => write!(f, "address:{address}"),
            Self::Account(hash) => write!(f, "account:{:032x}", u128::from_be_bytes(*hash)),
        }
    }
}

/// Behaviour while the store of the counters is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStoreOutage {
    /// Count in this process only, with a part of the limit.
    CountHere,
    /// Reject all requests: an outage of a store must not allow unlimited guesses of passwords or
    /// cards.
    Refuse,
}

/// Result of [`Limiter::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Admitted and counted.
    Pass,
    /// Rejected; retry after this time.
    Wait(Duration),
    /// The store is unreachable, and the route has [`OnStoreOutage::Refuse`].
    Unknown,
}

/// The rate limiter, in this process or shared through Redis.
#[derive(Debug)]
pub enum Limiter {
    /// For a single process.
    Memory(MemoryLimiter),
    /// For several processes.
    Redis(Redis),
}

impl Limiter {
    /// Creates a limiter in memory.
    ///
    /// # Panics
    /// When the window is longer than an hour.
    pub fn memory(limits: RateLimits, clock: Clock) -> Self {
        Self::Memory(MemoryLimiter::new(limits, clock))
    }

    /// Creates a limiter in Redis.
    ///
    /// # Panics
    /// When the window is longer than an hour.
    pub fn redis(kv: Kv, limits: RateLimits, clock: Clock) -> Self {
        Self::Redis(Redis::new(kv, limits, clock))
    }

    /// Counts a request of `who`, or rejects it, atomically.
    pub async fn check(&self, class: Class, who: Who, on_outage: OnStoreOutage) -> Verdict {
        let verdict = match self {
            Self::Memory(limiter) => limiter.take(class, who, 1),
            // Boxed to keep the future of the in-memory limiter small.
            Self::Redis(limiter) => Box::pin(limiter.take(class, who, on_outage)).await,
        };
        // Only rejections are counted here; admitted requests are counted by route.
        let outcome = match verdict {
            Verdict::Pass => return verdict,
            Verdict::Wait(_) => "limited",
            Verdict::Unknown => "unknown",
        };
        metrics::counter!("urr_gateway_limit_refusals_total", "class" => class.name(), "outcome" => outcome)
            .increment(1);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_client_and_mapped_ipv4_is_ipv4() {
        let who = |text: &str| Who::address(text.parse().unwrap());
        assert_eq!(who("2001:db8:1:2::3"), who("2001:db8:1:2:ffff::9"));
        assert_ne!(who("2001:db8:1:2::3"), who("2001:db8:1:3::3"));
        assert_eq!(who("::ffff:192.0.2.1"), who("192.0.2.1"));
        assert_ne!(who("192.0.2.1"), who("192.0.2.2"));
        assert_eq!(who("2001:db8:1:2::3").to_string(), "address:2001:db8:1:2::");
    }

    #[test]
    fn keys_of_classes_and_clients_are_unique() {
        let mut names: Vec<_> = Class::ALL.iter().map(|class| class.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Class::ALL.len());
        assert_eq!(Who::Account([0xab; 16]).to_string(), format!("account:{}", "ab".repeat(16)));
    }
}
