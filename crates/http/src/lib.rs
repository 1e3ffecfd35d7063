//! axum glue: problems, extractors, limits, timeouts, security headers, client with breaker and retry.

mod about;
mod address;
mod client;
mod codes;
mod doorkeeper;
mod edge;
mod entrance;
mod extract;
mod limits;
mod live;
mod ops;
mod problem;
mod quiet;
mod respond;
mod routes;
mod server;
mod stream;
mod tally;

pub use about::{About, Shape};
pub use address::ClientAddress;
pub use client::{Answer, BadTarget, Call, CallError, Client, ClientLimits, Pipe, PipeError, Target};
pub use codes::{CODES, Code};
pub use doorkeeper::{Doorkeeper, LineSince};
pub use edge::{AccessLog, Edge, EdgeParts, allow_time, edge, name_route, named, request_id};
pub use entrance::{Entrance, entry_required};
pub use extract::{Caller, Json, Path, Query, bad_path};
pub use http::StatusCode;
pub use limits::Limits;
pub use live::Live;
pub use ops::{WithOps, ops_routes};
pub use problem::{PROBLEM_JSON, Problem, RESERVED};
pub use respond::{Respond, router};
pub use routes::{RouteName, Routes};
pub use server::{Peer, Server};
pub use tally::{Counts, Rates, Tally};
pub use urr_kernel::RequestId;
