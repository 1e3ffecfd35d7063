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

pub use self::{memory::Memory, redis::Redis};

/// How many requests each class lets through per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// How far back is counted. At most an hour.
    pub window: Duration,
    /// See [`Class::Auth`]. A person needs two; an office behind one address a few dozen.
    pub auth: u32,
    /// See [`Class::Login`].
    pub login: u32,
    /// See [`Class::Queue`]. The quickest poll is one a second.
    pub queue: u32,
    /// See [`Class::Arrivals`]. A carrier's address may stand for ten thousand phones, with a page and a place each.
    pub arrivals: u32,
    /// See [`Class::Booking`].
    pub booking: u32,
    /// See [`Class::Payments`].
    pub payments: u32,
    /// See [`Class::General`].
    pub general: u32,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            window: Duration::from_mins(1),
            auth: 60,
            login: 10,
            queue: 120,
            arrivals: 30_000,
            booking: 30,
            payments: 20,
            general: 3_000,
        }
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
