//! What can go wrong inside, and how it becomes an answer: logged once, with its causes, then told without them.

use urr_contracts::vwr::Error;
use urr_rpc::Ctx;

/// A refusal we mean, or trouble below us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The database could not do it.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// Redis could not do it.
    #[error("Redis failed")]
    Kv(#[from] urr_kv::Error),
    /// DynamoDB could not do it.
    #[cfg(feature = "aws")]
    #[error("DynamoDB failed")]
    Aws(#[from] urr_aws::Error),
    /// Too many at once, or a store that forgets between two questions.
    #[error("{0}")]
    Busy(&'static str),
}

impl Trouble {
    /// The answer for the caller. Trouble below is logged here, once, under the request's id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        if let Self::Refused(error) = self {
            return error;
        }
        ctx.log_trouble("the waiting room", method, &self);
        Error::Unavailable
    }
}
