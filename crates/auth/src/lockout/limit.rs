//! How often anybody may try to sign in to one account, right or wrong.
//!
//! Who counts is not this domain's business: processes count together or each for itself, as the installation has it.

use std::time::Duration;

use async_trait::async_trait;
use urr_contracts::auth::Error;

use super::refuse;
use crate::{service::Service, trouble::Trouble};

/// Bytes of an account's name that are counted by: too many for two accounts to share them.
const NAME_LEN: usize = 16;

/// Counts attempts to sign in.
#[async_trait]
pub trait LoginLimit: Send + Sync {
    /// Counts one more attempt on an account. Its name is a keyed hash, which tells nobody anything.
    async fn count(&self, account: [u8; NAME_LEN]) -> Result<(), NotNow>;
}

/// Why nobody may try now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// There were too many attempts; the next one may be made after this time.
    Wait(Duration),
    /// Nobody can count, and guessing must not be free because of that.
    Unknown,
}

/// Counts an attempt under its key, if somebody counts.
pub(super) async fn count(service: &Service, key: &[u8]) -> Result<(), Trouble> {
    let Some(limit) = &service.login_limit else { return Ok(()) };
    let name = key.first_chunk().expect("a key is a hash of 32 bytes");
    limit.count(*name).await.map_err(|refused| match refused {
        NotNow::Wait(wait) => refuse(wait),
        NotNow::Unknown => Error::Unavailable.into(),
    })
}
