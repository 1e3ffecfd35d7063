//! The interface to identity providers.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use urr_contracts::auth::{Account, IdentitySource};
use urr_http::CallError;
use urr_kernel::BirthDate;
use uuid::Uuid;

/// An identity provider. The user completes the verification in the provider's window; the result
/// is fetched from the provider and never taken from the browser.
#[async_trait]
pub trait IdentityProvider: Send + Sync + 'static {
    /// Parameters for the provider's window.
    fn window(&self) -> Window;

    /// Returns the result of a verification started by `account`. The implementation bounds time
    /// and size.
    async fn look_up(&self, verification: Uuid, account: &Account) -> Result<Finding, ProviderError>;
}

/// Parameters with which the browser opens the provider's window. None of them is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The provider.
    pub source: IdentitySource,
    /// The store id at the provider.
    pub store_id: Option<String>,
    /// The channel at the provider.
    pub channel_key: Option<String>,
}

/// The result of a verification.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// The provider confirmed this person.
    Verified(Person),
    /// The user has not finished, or never started.
    Pending,
    /// The provider did not confirm an identity.
    Failed,
}

/// A verified person. `Debug` prints no personal data.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Identifier of the person across all services (CI).
    pub ci: String,
    /// Identifier of the person at this store (DI).
    pub di: Option<String>,
    /// Name as given by the provider.
    pub name: String,
    /// Date of birth.
    pub birth_date: Option<BirthDate>,
    /// Phone number that was used, in E.164.
    pub phone: Option<String>,
    /// Gender as given by the provider.
    pub gender: Option<String>,
    /// Whether the person is a foreigner in Korea.
    pub foreigner: Option<bool>,
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Person(…)")
    }
}

/// Why the result of a verification is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// There was no complete response.
    #[error("no response from the provider")]
    NoAnswer(#[from] CallError),
    /// The provider returned an error status.
    #[error("the provider answered with status {0}")]
    Status(u16),
    /// The response has an unexpected format.
    #[error("the provider's response cannot be parsed")]
    Unreadable(#[from] serde_json::Error),
    /// The response lacks required fields, or belongs to another verification.
    #[error("the provider's response {0}")]
    Unusable(&'static str),
}
