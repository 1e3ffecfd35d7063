//! Internal errors and their mapping to the contract's errors. The cause is logged once and never
//! returned to the caller.

use urr_contracts::catalog::Error;
use urr_db::Kind;
use urr_rpc::Ctx;

/// A rejection by the rules, or a failure of the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Rejected by the rules; returned to the caller unchanged.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The statement or its connection failed.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
}

impl Trouble {
    /// Maps the error to the one the caller receives. Database failures are logged here, once, with
    /// the request id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // After `UnknownCommit` the change may or may not be stored. `Unavailable` is safe for
            // both: cancelling is idempotent, and an admin can check whether a new event exists.
            Self::Db(error) if error.is_unavailable() || error.kind() == Kind::UnknownCommit => {
                Error::Unavailable
            }
            Self::Db(_) => Error::Internal,
        };
        ctx.log_trouble("the catalog", method, &self);
        answer
    }
}
