//! axum glue: error bodies, extractors, limits, timeouts, security headers, and a client with
//! circuit breaker and retries.

mod about;
mod address;
mod client;
pub mod codes;
mod cookie;
mod edge;
mod endpoint;
mod entry;
mod extract;
mod limits;
mod live;
mod ops;
mod parse_errors;
mod per_address;
mod policy;
mod problem;
mod qr;
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
pub use cookie::cookie;
pub use edge::{AccessLog, Edge, EdgeParts, allow_time, edge, name_route, named, request_id};
pub use endpoint::AtPath;
pub use entry::{EntryGuard, LineSince, OnlyResume, PassCheck, entry_required};
pub use extract::{Caller, Json, Path, Query, bad_path};
pub use http::StatusCode;
pub use limits::Limits;
pub use live::Live;
pub use ops::{WithOps, live_route, ops_names, ops_routes};
pub use policy::{ADMIN, Access, Class, Line, PAGE, PUBLIC, Policy, RoleRoutes, USER};
pub use problem::{PROBLEM_JSON, Problem, RESERVED};
pub use qr::qr_svg;
pub use respond::{Respond, router};
pub use routes::{RouteName, Routes};
pub use server::{MAX_REFUSALS, Peer, Server};
pub use tally::{Counts, Rates, Tally};
pub use urr_kernel::RequestId;
