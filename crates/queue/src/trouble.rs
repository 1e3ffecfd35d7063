//! What can go wrong inside, and how it becomes an answer: logged once, with its causes, then told without them.

use urr_contracts::{catalog, queue::Error};
use urr_rpc::Ctx;

use crate::room::Closed;

/// A refusal we mean, or trouble below us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The rooms cannot be asked.
    #[error(transparent)]
    Room(#[from] Closed),
    /// The database could not do it.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
}

impl From<catalog::Error> for Trouble {
    fn from(error: catalog::Error) -> Self {
        Self::Refused(match error {
            catalog::Error::EventNotFound => Error::EventNotFound,
            _ => Error::Unavailable,
        })
    }
}

impl Trouble {
    /// The answer for the caller. Trouble below is logged here, once, under the request's id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // Whatever the store's trouble is: keep waiting, never come in.
            Self::Room(Closed) => Error::Unavailable,
            Self::Db(error) if error.is_unavailable() => Error::Unavailable,
            Self::Db(_) => Error::Internal,
        };
        let error = urr_telemetry::chain(&self);
        tracing::error!(method, request_id = %ctx.request_id, error, "the line could not answer");
        answer
    }
}
