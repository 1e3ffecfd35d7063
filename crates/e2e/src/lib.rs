//! Black box: the real binary, several processes, kill -9, power loss.
//!
//! Nothing here links the product. The binary is started, spoken to over HTTP, killed and started again, and a journal
//! on the client's side says what it had promised. The one question is whether the promises still hold.
//!
//! * [`program`] starts, kills and restarts `urr`.
//! * [`http`] is a client of its own, so that a bug in ours cannot hide one in the server.
//! * [`shop`] knows the public API: events, seats, holds.
//! * [`people`] have accounts; an [`installation`] is one process or several that serve them.
//! * [`crowd`] is the buyers; [`journal`] is what they wrote down; [`ledger`] judges it.
//! * [`powerloss`] builds the preload library that forgets whatever was not synced.
//! * [`collector`] takes the traces of a server.
//! * [`stage`] is a server that is up, with an operator.
//! * [`stores`] puts such a server on PostgreSQL and Redis.
//! * [`siege`] puts them together: buy, kill, start again, compare, many times over.

pub mod collector;
pub mod crowd;
pub mod dice;
pub mod http;
pub mod installation;
pub mod journal;
pub mod ledger;
pub mod line;
pub mod nodes;
pub mod people;
pub mod powerloss;
pub mod program;
pub mod shop;
pub mod siege;
pub mod stage;
pub mod stores;
