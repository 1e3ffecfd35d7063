//! Black-box tests: the real binary, several processes, kill -9, power loss.
//!
//! The tests start the binary, call it over HTTP, kill it and restart it. A journal on the client
//! side records what the server acknowledged, and is compared with its state afterwards. The
//! clients are those of `urr-stampede`.
//!
//! * [`program`] finds the binary and starts, kills and restarts it.
//! * [`http`], [`shop`], [`people`] and [`line`] call it; an [`installation`] is one process or
//!   several.
//! * [`powerloss`] builds the preload library that discards everything not synced.
//! * [`collector`] receives the traces of a server.
//! * [`stage`] is a running server with an admin.
//! * [`stores`] puts such a server on PostgreSQL and Redis.
//! * [`siege`] combines them: buy, kill, restart, compare, many times.

pub mod collector;
pub mod installation;
pub mod nodes;
pub mod people;
pub mod powerloss;
pub mod program;
pub mod rng;
pub mod siege;
pub mod stage;
pub mod stores;

pub use urr_stampede::{http, line, shop};
