//! What can go wrong inside, and how it becomes an answer: logged once, with its causes, then told without them.

use std::sync::Arc;

use urr_contracts::{catalog, tickets::Error};
use urr_db::Kind;
use urr_jobs::NotDone;
use urr_rpc::Ctx;

/// A refusal we mean, or trouble below us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The database could not do it.
    #[error("the database failed")]
    Db(#[source] Arc<urr_db::Error>),
    /// A claim got no answer.
    #[error("a claim was not made")]
    Claims(#[source] NotDone),
    /// The catalog could not be asked.
    #[error("the catalog failed")]
    Catalog(#[source] catalog::Error),
}

impl From<urr_db::Error> for Trouble {
    fn from(error: urr_db::Error) -> Self {
        Self::Db(Arc::new(error))
    }
}

impl From<catalog::Error> for Trouble {
    fn from(error: catalog::Error) -> Self {
        match error {
            catalog::Error::EventNotFound => Self::Refused(Error::EventNotFound),
            other => Self::Catalog(other),
        }
    }
}

impl Trouble {
    /// The answer for the caller. Trouble below is logged here, once, under the request's id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // A rush brings thousands of these in a second: they are counted.
            Self::Claims(NotDone::Full | NotDone::Late) => {
                metrics::counter!("urr_tickets_holds_shed_total").increment(1);
                return Error::Unavailable;
            }
            // Nobody knows whether the change is there; a repeat with the same key finds out.
            Self::Db(error) if error.is_unavailable() || error.kind() == Kind::UnknownCommit => {
                Error::Unavailable
            }
            Self::Catalog(catalog::Error::Unavailable) | Self::Claims(NotDone::BrokenOff) => {
                Error::Unavailable
            }
            Self::Db(_) | Self::Catalog(_) => Error::Internal,
        };
        ctx.log_trouble("tickets", method, &self);
        answer
    }
}
