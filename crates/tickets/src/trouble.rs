//! Internal errors and their mapping to the contract's errors. The cause is logged once and never
//! returned to the caller.

use std::sync::Arc;

use urr_contracts::{catalog, tickets::Error};
use urr_db::Kind;
use urr_jobs::NotDone;
use urr_rpc::Ctx;

/// A rejection by the rules, or a failure of the database, a batch or the catalog.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Rejected by the rules; returned to the caller unchanged.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The statement or its connection failed.
    #[error("the database failed")]
    Db(#[source] Arc<urr_db::Error>),
    /// The batch did not run this claim or lookup: the line was full or the deadline had passed.
    #[error("the claim was not processed")]
    Claims(#[source] NotDone),
    /// The call to the catalog failed.
    #[error("the call to the catalog failed")]
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
    /// Maps the error to the one the caller receives. Failures are logged here, once, with the
    /// request id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // A rush produces thousands of these per second, so they are counted instead of logged.
            Self::Claims(NotDone::Full | NotDone::Late) => {
                metrics::counter!("urr_tickets_holds_shed_total").increment(1);
                return Error::Unavailable;
            }
            // After `UnknownCommit` the change may or may not be stored. A retry with the same key
            // finds out.
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
