//! Shared test support: the addresses of real stores, fresh databases, a fixed clock, seeded ids,
//! timeouts, waiting for a condition, and a proxy with injectable failures.
//!
//! Only tests depend on this crate.

mod databases;
mod environment;
mod fixed;
mod patience;
mod ports;
mod proxy;
pub mod services;
mod tokens;

pub use databases::{deadlocks, fresh_database, fresh_postgres, fresh_sqlite};
pub use fixed::{fixed, fixed_clock, seed, seeded_ids};
pub use patience::{until, within};
pub use ports::free_port;
pub use proxy::Proxy;
pub use tokens::AccessTokens;
