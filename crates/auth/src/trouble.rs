//! What can go wrong inside, and how it becomes an answer: logged once, with its causes, then told without them.

use urr_contracts::auth::{Error, Provider};
use urr_db::Kind;
use urr_mail::ForgetError;
use urr_rpc::Ctx;

use crate::{
    passwords::{BadHash, NoHash},
    pii::Unreadable,
    social::NoAnswer,
};

/// A refusal we mean, or trouble below us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The database could not do it.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// Personal data does not open.
    #[error("personal data cannot be read")]
    Unreadable(#[from] Unreadable),
    /// Somebody else could not tell who the caller is.
    #[error("{} did not answer", provider.name())]
    Provider {
        /// Who.
        provider: Provider,
        /// Why not.
        source: NoAnswer,
    },
    /// Copies of mails that the transport keeps.
    #[error("mails cannot be removed")]
    Mails(#[source] std::io::Error),
    /// A stored hash cannot be compared with.
    #[error("a password cannot be compared")]
    BadHash(#[source] BadHash),
}

impl From<ForgetError> for Trouble {
    fn from(error: ForgetError) -> Self {
        match error {
            ForgetError::Db(error) => Self::Db(error),
            ForgetError::Copies(error) => Self::Mails(error),
        }
    }
}

impl From<NoHash> for Trouble {
    fn from(error: NoHash) -> Self {
        match error {
            NoHash::Busy => Self::Refused(Error::Busy),
            NoHash::Bad(bad) => Self::BadHash(bad),
        }
    }
}

impl Trouble {
    /// The answer for the caller. Trouble below is logged here, once, under the request's id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // Nobody knows whether the change is there. Signing in again, or asking for another link, is harmless.
            Self::Db(error) if error.is_unavailable() || error.kind() == Kind::UnknownCommit => {
                Error::Unavailable
            }
            Self::Provider { provider, .. } => Error::ProviderUnavailable { provider: *provider },
            Self::Db(_) | Self::Unreadable(_) | Self::Mails(_) | Self::BadHash(_) => Error::Internal,
        };
        ctx.log_trouble("auth", method, &self);
        answer
    }
}
