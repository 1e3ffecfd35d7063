//! Limit of sign-in attempts per account, successful or not.
//!
//! The counter is injected: the installation decides whether processes share it.

use std::time::Duration;

use async_trait::async_trait;
use urr_kernel::CommonError;

use super::refuse;
use crate::{Failure, service::Service};

/// Length of the hashed account name, in bytes: enough to make collisions negligible.
const NAME_LEN: usize = 16;

/// A counter of sign-in attempts.
#[async_trait]
pub trait LoginLimit: Send + Sync {
    /// Counts an attempt on an account, which is identified by a keyed hash.
    async fn count(&self, account: [u8; NAME_LEN]) -> Result<(), NotNow>;
}

/// Why an attempt is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// Too many attempts; the next one is allowed after this time.
    Wait(Duration),
    /// The counter is unavailable. Guessing must not be free because of that.
    Unknown,
}

/// Counts an attempt under its key, if a counter is configured.
pub(super) async fn count(service: &Service, key: &[u8]) -> Result<(), Failure> {
    let Some(limit) = &service.login_limit else { return Ok(()) };
    let name = key.first_chunk().expect("a key is a 32-byte hash");
    limit.count(*name).await.map_err(|refused| match refused {
        NotNow::Wait(wait) => refuse(wait),
        NotNow::Unknown => CommonError::Unavailable.into(),
    })
}
