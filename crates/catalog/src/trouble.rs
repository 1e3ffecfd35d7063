//! What can go wrong inside, and how it becomes an answer: logged once, with its causes, then told without them.

use urr_contracts::catalog::Error;
use urr_db::Kind;
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
}

impl Trouble {
    /// The answer for the caller. Trouble below is logged here, once, under the request's id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // Nobody knows whether the change is there: calling off can be asked again, and a new event looked up.
            Self::Db(error) if error.is_unavailable() || error.kind() == Kind::UnknownCommit => {
                Error::Unavailable
            }
            Self::Db(_) => Error::Internal,
        };
        ctx.log_trouble("the catalog", method, &self);
        answer
    }
}
