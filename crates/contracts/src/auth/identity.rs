//! Identity verification: one person, one account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{BirthDate, Timestamp, UserId};
use uuid::Uuid;

/// Provider of identity verifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdentitySource {
    /// Fictional identities, for development.
    Sandbox,
    /// PortOne, which uses a mobile carrier or a bank.
    Portone,
}

/// Starts an identity verification of the calling user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartIdentity {}

/// A started verification, and what the browser needs to continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityStarted {
    /// Id of the verification at the provider. Bound to the calling user; can be completed once.
    pub verification: Uuid,
    /// Provider whose window the browser opens.
    pub source: IdentitySource,
    /// Our store id at the provider.
    pub store_id: Option<String>,
    /// Channel to use at the provider.
    pub channel_key: Option<String>,
    /// Deadline for completing it.
    pub expires_at: Timestamp,
}

/// Completes a verification with the result from the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteIdentity {
    /// Id from [`IdentityStarted`].
    pub verification: Uuid,
}

/// Requests the identity of a user, for rules such as a minimum age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityOf {
    /// The user.
    pub user: UserId,
}

/// The verified identity of a user, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownIdentity {
    /// `None` if the user is not verified or does not exist.
    pub identity: Option<Identity>,
}

/// The part of an identity that other roles need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Provider that verified it.
    pub source: IdentitySource,
    /// Time of the verification.
    pub verified_at: Timestamp,
    /// Date of birth, if the provider returned one. [`BirthDate::age_at`] computes the age.
    pub birth_date: Option<BirthDate>,
}
