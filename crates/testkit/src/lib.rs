//! Shared test support: the addresses of real stores, fresh databases, a fixed clock, seeded ids,
//! timeouts, waiting for a condition, a proxy with injectable failures, fakes of other domains, and
//! the scaffolding of the domains' suites.
//!
//! Only tests depend on this crate.

mod catalog;
mod databases;
mod environment;
mod fixed;
mod patience;
mod ports;
mod proxy;
pub mod services;
mod suite;
mod tokens;

pub use catalog::FakeCatalog;
pub use databases::{deadlocks, fresh_database, fresh_postgres, fresh_sqlite, postgres_behind_proxy};
pub use fixed::{fixed, fixed_clock, seed, seeded_ids};
pub use patience::{until, within};
pub use ports::free_port;
pub use proxy::Proxy;
pub use suite::{
    DbKind, INTERNAL_TOKEN, STORY_LIMIT, Transport, published, redis, redis_cluster, serve_internal,
};
pub use tokens::AccessTokens;
