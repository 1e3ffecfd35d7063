//! How many requests one client may make: an exact sliding window per class of routes.
//!
//! A request is let through if fewer than the limit were let through during the window that ends now; a refused one does not count.
//! Both stores keep the instants of the latest admissions, so "never more than 30 in any minute" holds whatever the minute.

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

pub use self::{memory::Memory, redis::Redis};

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
        /// Signing in, signing up, refreshing and everything else under `/api/auth`. A person needs two; an
        /// office behind one address a few dozen.
        pub auth: Count<1, 1_000_000> = "60",
        /// Signing in to one account, from any address.
        pub login: Count<1, 1_000_000> = "10",
        /// The waiting room. The quickest poll is one a second.
        pub queue: Count<1, 1_000_000> = "120",
        /// Arriving at Tier 1 of the waiting room: its page, and taking a number. A carrier's address may
        /// stand for ten thousand phones.
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
    /// The limit of a class. A limit of 0 lets nobody through.
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

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// A signed-in user, wherever they are.
    User(UserId),
    /// Whoever comes from this address. Made by [`Who::address`].
    Address(IpAddr),
    /// An account that somebody tries to sign in to, by a hash of its name: names are nothing to keep in a store of counters.
    Account([u8; 16]),
}

/// A household or a server is given this many bits and may use any of the addresses below them.
const IPV6_NETWORK_BITS: u32 = 64;

impl Who {
    /// The client at an address. All addresses of one IPv6 network are one client, because one client has all of them.
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

/// What to do while the store of counters does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blind {
    /// Count in this process alone, with a part of the limit.
    CountHere,
    /// Let nobody through: guessing passwords or cards must not be free because a store is down.
    Refuse,
}

/// What the limiter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on; it was counted.
    Pass,
    /// Too many; the next one may come after this time.
    Wait(Duration),
    /// The store does not answer, and the caller wanted [`Blind::Refuse`].
    Unknown,
}

/// The limiter, in this process or shared by many.
#[derive(Debug)]
pub enum Limiter {
    /// For one process.
    Memory(Memory),
    /// For many processes.
    Redis(Redis),
}

impl Limiter {
    /// A limiter in this process's memory.
    ///
    /// # Panics
    /// When the window is longer than an hour.
    pub fn memory(limits: RateLimits, clock: Clock) -> Self {
        Self::Memory(Memory::new(limits, clock))
    }

    /// A limiter in Redis.
    ///
    /// # Panics
    /// When the window is longer than an hour.
    pub fn redis(kv: Kv, limits: RateLimits, clock: Clock) -> Self {
        Self::Redis(Redis::new(kv, limits, clock))
    }

    /// Counts one more request of `who`, or says why not, in one atomic step.
    pub async fn check(&self, class: Class, who: Who, blind: Blind) -> Verdict {
        let verdict = match self {
            Self::Memory(limiter) => limiter.take(class, who, 1),
            // In a box, so that every request of a process that counts by itself is not moved with room for a call.
            Self::Redis(limiter) => Box::pin(limiter.take(class, who, blind)).await,
        };
        // Only refusals are counted: whatever passes is counted by its route.
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
    fn an_ipv6_network_is_one_client_and_an_ipv4_address_has_one_spelling() {
        let who = |text: &str| Who::address(text.parse().unwrap());
        assert_eq!(who("2001:db8:1:2::3"), who("2001:db8:1:2:ffff::9"));
        assert_ne!(who("2001:db8:1:2::3"), who("2001:db8:1:3::3"));
        assert_eq!(who("::ffff:192.0.2.1"), who("192.0.2.1"));
        assert_ne!(who("192.0.2.1"), who("192.0.2.2"));
        assert_eq!(who("2001:db8:1:2::3").to_string(), "address:2001:db8:1:2::");
    }

    #[test]
    fn names_of_classes_and_clients_tell_them_apart() {
        let mut names: Vec<_> = Class::ALL.iter().map(|class| class.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Class::ALL.len());
        assert_eq!(Who::Account([0xab; 16]).to_string(), format!("account:{}", "ab".repeat(16)));
    }
}
