//! Redis client for a single node and for a Cluster: Lua scripts, deadlines, circuit breakers. It
//! has no knowledge of the domains.
//!
//! [`Kv::connect`] neither waits for Redis nor fails because Redis is down. Every call ends within
//! its deadline. While a node keeps failing, its breaker refuses calls at once. Callers then get an
//! [`Error`] and go on without Redis: no data in Redis is authoritative.
//!
//! Requires Redis 6.2 or newer; tests run on 7. The choice of client crate and the routing are
//! explained in docs/adr/0002-redis-client.md.

mod client;
mod config;
mod error;
mod incidents;
mod keeper;
mod node;
mod reply;
mod script;
mod settings;
mod slots;
#[cfg(test)]
mod suite;

pub use client::Kv;
pub use config::{ConfigError, KvConfig};
pub use error::Error;
pub use reply::Reply;
pub use script::{Arg, Script};
pub use settings::Settings;
