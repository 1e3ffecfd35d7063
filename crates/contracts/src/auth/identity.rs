//! Identity verification: one person, one account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{BirthDate, Timestamp, UserId};
use uuid::Uuid;

/// Who vouches for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdentitySource {
    /// Nobody: persons are made up, for trying things out.
    Sandbox,
    /// PortOne, and behind it a carrier or a bank.
    Portone,
}

/// Begins to verify who the calling user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartIdentity {}

/// A verification that was begun, and what the browser needs to go on with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityStarted {
    /// Names the verification to the provider. It is the calling user's alone and good once.
    pub verification: Uuid,
    /// Whose window the browser opens.
    pub source: IdentitySource,
    /// The provider's name for this shop.
    pub store_id: Option<String>,
    /// Which of its channels to use.
    pub channel_key: Option<String>,
    /// Until when it can be completed.
    pub expires_at: Timestamp,
}

/// Asks the provider what came of a verification of the calling user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteIdentity {
    /// What [`IdentityStarted`] said.
    pub verification: Uuid,
}

/// Asks who a user is, for rules such as a minimum age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityOf {
    /// Whose.
    pub user: UserId,
}

/// What is known about who a user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownIdentity {
    /// `None`: nobody vouched for the user, or there is no such user.
    pub identity: Option<Identity>,
}

/// As much of a person as other roles need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Who vouches.
    pub source: IdentitySource,
    /// When they did.
    pub verified_at: Timestamp,
    /// When the person was born, if the provider said so. [`BirthDate::age_at`] tells how old they are.
    pub birth_date: Option<BirthDate>,
}
