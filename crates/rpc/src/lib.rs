//! One declaration of a service gives its trait, an HTTP client and an HTTP server.
//!
//! [`service!`] turns a list of methods into a trait that domains implement, an implementation of
//! that trait for [`Remote`], and the routes that serve it to other roles. Callers hold `Arc<dyn
//! Trait>` and cannot tell whether the service is in this process or behind HTTP: requests are
//! owned and serialisable, errors keep their type, and every call carries a [`Ctx`].

mod ctx;
mod error;
mod guard;
mod remote;
mod serve;
mod service;
mod single_flight;
mod state;

pub use ctx::{Ctx, REQUEST_BUDGET};
pub use error::{Kind, ServiceError, problem, restore};
pub use guard::{CODES, internal_guard};
pub use remote::{Peer, Remote, Retry};
pub use single_flight::SingleFlightCache;

/// Used by the macro's output. Not public API.
#[doc(hidden)]
pub mod private {
    pub use async_trait::async_trait;
    pub use axum::{Router, extract::FromRef, routing::post};

    pub use crate::serve::{Internal, answer};
}
