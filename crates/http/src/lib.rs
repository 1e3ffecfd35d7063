//! axum glue: problems, extractors, limits, timeouts, security headers, client with breaker and retry.

mod client;
mod codes;
mod extract;
mod limits;
mod problem;

pub use client::{Answer, BadTarget, Call, CallError, Client, ClientLimits, Target};
pub use codes::{CODES, Code};
pub use extract::{Caller, Json, Path, Query};
pub use http::StatusCode;
pub use limits::Limits;
pub use problem::{PROBLEM_JSON, Problem};
pub use urr_kernel::RequestId;
