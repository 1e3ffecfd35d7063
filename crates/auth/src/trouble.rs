//! Internal errors and their mapping to public ones: logged once, with their causes, which are not
//! sent to the caller.

use urr_contracts::auth::{Error, Provider};
use urr_db::Kind;
use urr_mail::ForgetError;
use urr_rpc::Ctx;

use crate::{
    passwords::{BadHash, NoHash},
    pii::Unreadable,
    social::NoAnswer,
};

/// A refusal, or an internal error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The request was refused.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The database failed.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// Personal data could not be decrypted.
    #[error("personal data cannot be decrypted")]
    Unreadable(#[from] Unreadable),
    /// The call to a provider failed.
    #[error("{} did not answer", provider.name())]
    Provider {
        /// The provider.
        provider: Provider,
        /// The cause.
        source: NoAnswer,
    },
    /// Copies of mails could not be deleted.
    #[error("copies of mails cannot be deleted")]
    Mails(#[source] std::io::Error),
    /// A stored hash cannot be verified.
    #[error("a password hash cannot be verified")]
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
    /// Returns the public error. Internal errors are logged here, once, with the request id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // It is unknown whether the change was committed. Signing in again, or requesting
            // another link, is harmless.
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
