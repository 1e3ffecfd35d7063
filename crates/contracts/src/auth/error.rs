//! Why auth refuses.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::Timestamp;
use urr_rpc::{Kind, ServiceError};

use super::{Provider, TermsKind};

/// Why auth refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// A field of the request makes no sense.
    #[error("{reason}")]
    Invalid {
        /// Which field.
        field: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// A required agreement is missing, or was given to another version.
    #[error("Please agree to the current terms of service and privacy policy")]
    TermsRequired {
        /// What is missing.
        missing: Vec<TermsKind>,
        /// The version that is shown now.
        version: String,
    },
    /// No such account, no password, or another one: the answer is the same.
    #[error("Invalid email or password")]
    InvalidCredentials,
    /// The password that confirms a change is wrong.
    #[error("The current password is wrong")]
    WrongPassword,
    /// The code is wrong, was used before, or is too old.
    #[error("This code is not right, or was used before")]
    WrongCode,
    /// The first factor was shown too long ago, or for another password.
    #[error("This sign-in took too long; please start again")]
    ChallengeInvalid,
    /// The account has a second factor.
    #[error("The second factor is on already")]
    SecondFactorOn,
    /// The account has no second factor.
    #[error("There is no second factor to use or to confirm")]
    SecondFactorOff,
    /// Too many wrong passwords. The wait grows.
    #[error("Too many attempts; please wait {wait_secs} second{} and try again", if *wait_secs == 1 { "" } else { "s" })]
    TooManyAttempts {
        /// How long to wait.
        wait_secs: u64,
    },
    /// More people sign in than passwords can be checked.
    #[error("Too many people are signing in at the moment; please try again")]
    Busy,
    /// There is no refresh token in the request.
    #[error("Refresh token is required")]
    RefreshRequired,
    /// The refresh token is unknown or too old, or its session has ended.
    #[error("Invalid or expired refresh token")]
    RefreshInvalid,
    /// The refresh token was used before: somebody copied it. The session is over for everybody.
    #[error(
        "This refresh token was used before, so its session was ended for security. Please sign in again."
    )]
    RefreshReused,
    /// The access token is no longer good, or never was.
    #[error("Invalid or expired token")]
    TokenInvalid,
    /// The link was used, is too old, or was never sent.
    #[error("This link is no longer valid; please ask for a new one")]
    LinkInvalid,
    /// No such session, or not the caller's.
    #[error("There is no such session")]
    SessionNotFound,
    /// No such account.
    #[error("There is no such user")]
    UserNotFound,
    /// The address has an account. Also for the first administrator, unless promoting that account was asked for.
    #[error("An account with this email address already exists. Sign in or reset your password.")]
    AlreadyRegistered,
    /// Somebody must be left to run the platform.
    #[error("The last administrator cannot be removed")]
    LastAdmin,
    /// This installation verifies nobody.
    #[error("Identity verification is not offered here")]
    IdentityOff,
    /// The verification was not started by this user, was used, or is too old.
    #[error("This verification is no longer valid; please start again")]
    IdentityInvalid,
    /// The person has not finished the provider's part yet.
    #[error("The verification is not finished yet; please finish it and try again")]
    IdentityPending,
    /// The provider did not vouch for the person.
    #[error("Your identity could not be verified; please start again")]
    IdentityFailed,
    /// The person has another account.
    #[error("This person already has an account")]
    IdentityTaken {
        /// When a closed account stops counting. `None`: the other account is open.
        #[serde(rename = "freeFrom")]
        free_from: Option<Timestamp>,
    },
    /// The account belongs to somebody else.
    #[error("This account was verified for another person")]
    IdentityMismatch,
    /// The provider does not answer, or not in a way that can be used.
    #[error("Identity verification is not available at the moment; please try again")]
    IdentityUnavailable,
    /// There is no such provider, or it is off.
    #[error("Signing in this way is not offered here")]
    ProviderOff,
    /// The ID token is not one of the provider's for us, or no longer.
    #[error("Invalid Google token")]
    CredentialInvalid,
    /// The ID token was used before.
    #[error("This Google sign-in was used already; please sign in with Google again")]
    CredentialUsed,
    /// The browser that returned is not the one that left, or it was too slow, or it was here before.
    #[error("This sign-in is no longer valid; please start again")]
    TripInvalid,
    /// The user, or the provider, did not want to.
    #[error("The sign-in was cancelled")]
    TripRefused,
    /// The provider gave no answer, or none that makes sense.
    #[error("The sign-in service does not answer at the moment; please try again")]
    ProviderUnavailable {
        /// Who.
        provider: Provider,
    },
    /// Somebody else's word is not enough to get into an account that exists.
    #[error(
        "There is already an account with this e-mail address; sign in to it and link the other account there"
    )]
    LinkRequired {
        /// What to link.
        provider: Provider,
    },
    /// The provider does not vouch for the address.
    #[error("The e-mail address is not verified there; please verify it first, or register with a password")]
    EmailUnverified {
        /// Who.
        provider: Provider,
    },
    /// The offer of an account was taken, is too old, or was never made.
    #[error("This registration is no longer valid; please start again")]
    SignUpInvalid,
    /// The account elsewhere is a way into another account here.
    #[error("This account is linked to another user")]
    LinkTaken,
    /// The account has another one of the same provider.
    #[error("Another account of this provider is linked already; unlink it first")]
    AlreadyLinked,
    /// No account of this provider is linked.
    #[error("No account of this provider is linked")]
    NotLinked,
    /// Without it nobody could sign in to the account.
    #[error("The last way to sign in cannot be removed; set a password first")]
    LastWayIn,
    /// The account has no password to confirm a change with, and its user signed in too long ago.
    #[error("Please sign in again to confirm this change")]
    SignInAgain,
    /// A mailed link proves a mailbox, not that whoever follows it made the account.
    #[error("Please sign in to this account, or enter its password, to confirm its e-mail address")]
    ProofRequired,
    /// Nobody is signed in.
    #[error("Please sign in first.")]
    Required,
    /// Only admins may do this.
    #[error("Only an administrator may do this.")]
    AdminRequired,
    /// Only admins who showed a second factor may do this.
    #[error("Please turn on a second factor first; administrators need one here.")]
    SecondFactorRequired,
    /// Something below is down.
    #[error("Accounts are not available at the moment; please try again")]
    Unavailable,
    /// A bug.
    #[error("Something went wrong on our side")]
    Internal,
}

impl ServiceError for Error {
    const DOMAIN: &'static str = "auth";

    fn kind(&self) -> Kind {
        match self {
            // Older clients know these as 400: a 401 would make them try to refresh a token that is not the trouble.
            Self::Invalid { .. }
            | Self::TermsRequired { .. }
            | Self::InvalidCredentials
            | Self::WrongPassword
            | Self::WrongCode
            | Self::RefreshRequired
            | Self::IdentityInvalid
            | Self::IdentityFailed
            | Self::TripRefused
            | Self::EmailUnverified { .. } => Kind::Invalid,
            Self::TooManyAttempts { .. } => Kind::TooMany,
            // Tokens of a session: no client refreshes one because of an answer of these routes.
            Self::TokenInvalid
            | Self::Required
            | Self::ChallengeInvalid
            | Self::RefreshInvalid
            | Self::RefreshReused => Kind::Unauthenticated,
            // Tokens of something else: another access token would not help.
            Self::LinkInvalid
            | Self::CredentialInvalid
            | Self::CredentialUsed
            | Self::TripInvalid
            | Self::SignUpInvalid
            | Self::ProofRequired
            | Self::AdminRequired
            | Self::SecondFactorRequired
            | Self::SignInAgain => Kind::Forbidden,
            Self::SessionNotFound
            | Self::UserNotFound
            | Self::IdentityOff
            | Self::ProviderOff
            | Self::NotLinked => Kind::NotFound,
            Self::LastAdmin
            | Self::AlreadyRegistered
            | Self::SecondFactorOn
            | Self::SecondFactorOff
            | Self::IdentityPending
            | Self::IdentityTaken { .. }
            | Self::IdentityMismatch
            | Self::LinkRequired { .. }
            | Self::LinkTaken
            | Self::AlreadyLinked
            | Self::LastWayIn => Kind::Conflict,
            Self::Busy | Self::Unavailable | Self::IdentityUnavailable | Self::ProviderUnavailable { .. } => {
                Kind::Unavailable
            }
            Self::Internal => Kind::Internal,
        }
    }

    fn unavailable() -> Self {
        Self::Unavailable
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyAttempts { wait_secs } => Some(Duration::from_secs(*wait_secs)),
            Self::Busy | Self::Unavailable => Some(Duration::from_secs(1)),
            // A provider that just failed is left alone for a while by the breaker; asking every second is no use.
            Self::IdentityUnavailable | Self::ProviderUnavailable { .. } => Some(Duration::from_secs(5)),
            _ => None,
        }
    }
}
