//! Errors of auth.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{CommonError, Refusal, Timestamp};
use urr_rpc::{Kind, ServiceError};

use super::{Provider, TermsKind};

/// Errors of auth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// A field of the request is invalid.
    #[error("{reason}")]
    Invalid {
        /// Name of the field.
        field: String,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// A required agreement is missing, or is for another version.
    #[error("Please agree to the current terms of service and privacy policy")]
    TermsRequired {
        /// The missing agreements.
        missing: Vec<TermsKind>,
        /// The current version.
        version: String,
    },
    /// Unknown account, no password set, or wrong password; not distinguished.
    #[error("Invalid email or password")]
    InvalidCredentials,
    /// The password that confirms a change is wrong.
    #[error("The current password is wrong")]
    WrongPassword,
    /// The code is wrong, already used or expired.
    #[error("This code is not right, or was used before")]
    WrongCode,
    /// The sign-in challenge has expired, or the password has changed since.
    #[error("This sign-in took too long; please start again")]
    ChallengeInvalid,
    /// The second factor is already on.
    #[error("The second factor is on already")]
    SecondFactorOn,
    /// The second factor is off.
    #[error("There is no second factor to use or to confirm")]
    SecondFactorOff,
    /// Too many wrong passwords. The wait grows with each attempt.
    #[error("Too many attempts; please wait {wait_secs} second{} and try again", if *wait_secs == 1 { "" } else { "s" })]
    TooManyAttempts {
        /// Seconds to wait.
        wait_secs: u64,
    },
    /// Password checks are at capacity.
    #[error("Too many people are signing in at the moment; please try again")]
    Busy,
    /// The request has no refresh token.
    #[error("Refresh token is required")]
    RefreshRequired,
    /// The refresh token is unknown or expired, or its session has ended.
    #[error("Invalid or expired refresh token")]
    RefreshInvalid,
    /// The refresh token was already used, so it may have been copied. The session is ended.
    #[error(
        "This refresh token was used before, so its session was ended for security. Please sign in again."
    )]
    RefreshReused,
    /// The access token is invalid or expired.
    #[error("Invalid or expired token")]
    TokenInvalid,
    /// The link is already used, expired or unknown.
    #[error("This link is no longer valid; please ask for a new one")]
    LinkInvalid,
    /// The session does not exist or belongs to another user.
    #[error("There is no such session")]
    SessionNotFound,
    /// The account does not exist.
    #[error("There is no such user")]
    UserNotFound,
    /// The address has an account. Also for the first admin, unless promotion was requested.
    #[error("An account with this email address already exists. Sign in or reset your password.")]
    AlreadyRegistered,
    /// The platform must keep at least one admin.
    #[error("The last administrator cannot be removed")]
    LastAdmin,
    /// Identity verification is disabled in this installation.
    #[error("Identity verification is not offered here")]
    IdentityOff,
    /// The verification belongs to another user, is already used, or has expired.
    #[error("This verification is no longer valid; please start again")]
    IdentityInvalid,
    /// The user has not finished the verification at the provider.
    #[error("The verification is not finished yet; please finish it and try again")]
    IdentityPending,
    /// The provider could not verify the person.
    #[error("Your identity could not be verified; please start again")]
    IdentityFailed,
    /// The person already has another account.
    #[error("This person already has an account")]
    IdentityTaken {
        /// When the closed account stops counting; `None` if the other account is open.
        #[serde(rename = "freeFrom")]
        free_from: Option<Timestamp>,
    },
    /// The account belongs to another person.
    #[error("This account was verified for another person")]
    IdentityMismatch,
    /// The provider is unreachable or returned an unusable response.
    #[error("Identity verification is not available at the moment; please try again")]
    IdentityUnavailable,
    /// The provider is unknown or disabled.
    #[error("Signing in this way is not offered here")]
    ProviderOff,
    /// The ID token is not from this provider, not for this site, or expired.
    #[error("Invalid Google token")]
    CredentialInvalid,
    /// The ID token was already used.
    #[error("This Google sign-in was used already; please sign in with Google again")]
    CredentialUsed,
    /// The redirect sign-in belongs to another browser, has expired, or was already completed.
    #[error("This sign-in is no longer valid; please start again")]
    TripInvalid,
    /// The user cancelled at the provider, or the provider rejected the sign-in.
    #[error("The sign-in was cancelled")]
    TripRefused,
    /// The provider is unreachable or returned an unusable response.
    #[error("The sign-in service does not answer at the moment; please try again")]
    ProviderUnavailable {
        /// The provider.
        provider: Provider,
    },
    /// An existing account has this address. A provider's claim is not enough to enter it.
    #[error(
        "There is already an account with this e-mail address; sign in to it and link the other account there"
    )]
    LinkRequired {
        /// The provider to link.
        provider: Provider,
    },
    /// The provider has not verified the address.
    #[error("The e-mail address is not verified there; please verify it first, or register with a password")]
    EmailUnverified {
        /// The provider.
        provider: Provider,
    },
    /// The offered account was already created, or the offer has expired or is unknown.
    #[error("This registration is no longer valid; please start again")]
    SignUpInvalid,
    /// The provider's account is linked to another account here.
    #[error("This account is linked to another user")]
    LinkTaken,
    /// The account already has a link to this provider.
    #[error("Another account of this provider is linked already; unlink it first")]
    AlreadyLinked,
    /// No account of this provider is linked.
    #[error("No account of this provider is linked")]
    NotLinked,
    /// The last sign-in method cannot be removed.
    #[error("The last way to sign in cannot be removed; set a password first")]
    LastWayIn,
    /// The account has no password to confirm a change with, and the last sign-in is too old.
    #[error("Please sign in again to confirm this change")]
    SignInAgain,
    /// A mailed link proves access to a mailbox, not ownership of the account.
    #[error("Please sign in to this account, or enter its password, to confirm its e-mail address")]
    ProofRequired,
    /// An error of every service.
    #[error(transparent)]
    #[serde(untagged)]
    Common(#[from] CommonError),
}

impl Refusal for Error {}

impl ServiceError for Error {
    const DOMAIN: &'static str = "auth";

    fn kind(&self) -> Kind {
        match self {
            // 400 for older clients: a 401 would make them refresh a token that is not the cause.
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
            // Session tokens. Clients do not try to refresh a token after a 401 of these routes.
            Self::TokenInvalid | Self::ChallengeInvalid | Self::RefreshInvalid | Self::RefreshReused => {
                Kind::Unauthenticated
            }
            // Other tokens: a new access token would not help.
            Self::LinkInvalid
            | Self::CredentialInvalid
            | Self::CredentialUsed
            | Self::TripInvalid
            | Self::SignUpInvalid
            | Self::ProofRequired
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
            Self::Busy | Self::IdentityUnavailable | Self::ProviderUnavailable { .. } => Kind::Unavailable,
            Self::Common(error) => (*error).into(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyAttempts { wait_secs } => Some(Duration::from_secs(*wait_secs)),
            Self::Busy => Some(Duration::from_secs(1)),
            // The circuit breaker blocks a failed provider for a while, so retrying every second is
            // useless.
            Self::IdentityUnavailable | Self::ProviderUnavailable { .. } => Some(Duration::from_secs(5)),
            _ => None,
        }
    }
}
