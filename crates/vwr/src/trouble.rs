//! Internal errors and the error the caller gets. Causes are logged once and not revealed.

use urr_contracts::vwr::Error;
use urr_rpc::Ctx;

/// A refusal by the rules, or a failure of a store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Refused(#[from] Error),
    /// The database failed.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// Redis failed.
    #[error("Redis failed")]
    Kv(#[from] urr_kv::Error),
    /// DynamoDB failed.
    #[cfg(feature = "aws")]
    #[error("DynamoDB failed")]
    Aws(#[from] urr_aws::Error),
    /// Too many concurrent requests, or a store that loses writes.
    #[error("{0}")]
    Busy(&'static str),
}

impl Trouble {
    /// The error for the caller. Store failures are logged here, once, with the request id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        if let Self::Refused(error) = self {
            return error;
        }
        ctx.log_trouble("vwr", method, &self);
        Error::Unavailable
    }
}
