//! Black box: the real binary, several processes, kill -9, power loss.
//!
//! The binary is started, spoken to over HTTP, killed and started again, and a journal on the client's side says what it had
//! promised. The one question is whether the promises still hold. The clients are those of `urr-stampede`.
//!
//! * [`program`] finds the binary and starts, kills and restarts it.
//! * [`http`], [`shop`], [`people`] and [`line`] speak to it; an [`installation`] is one process or several that serve them.
//! * [`powerloss`] builds the preload library that forgets whatever was not synced.
//! * [`collector`] receives the traces of a server.
//! * [`stage`] is a server that is up, with an operator.
//! * [`stores`] puts such a server on PostgreSQL and Redis.
//! * [`siege`] puts them together: buy, kill, start again, compare, many times over.

pub mod collector;
pub mod dice;
pub mod installation;
pub mod nodes;
pub mod people;
pub mod powerloss;
pub mod program;
pub mod siege;
pub mod stage;
pub mod stores;

pub use urr_stampede::{http, line, shop};
