//! One Redis client for a single node and for a Cluster: scripts, deadlines, breakers. It knows nothing about seats or
//! queues.
//!
//! [`Kv::connect`] does not wait for Redis and does not fail because Redis is down. Every call ends within its
//! deadline; while a node keeps failing, its breaker answers for it at once. What callers get in that case is an
//! [`Error`] that says so, and they go on without Redis: nothing kept here is the truth about anything.
//!
//! Redis 6.2 or newer; tests run on 7. Why this client and why routing is ours: docs/adr/0002-redis-client.md.

mod client;
mod config;
mod error;
mod keeper;
mod moments;
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
