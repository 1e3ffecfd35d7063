//! What every test needs and none should write again: the addresses of real stores, fresh databases, a fixed clock,
//! seeded ids, time limits, waiting for a condition, and a proxy that can fail on purpose.
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
