//! The port: whoever vouches for persons.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use urr_contracts::auth::{Account, IdentitySource};
use urr_http::CallError;
use urr_kernel::BirthDate;
use uuid::Uuid;

/// Whatever vouches for persons. The browser does the person's part in the provider's window; what came of it is asked here
/// and never taken from the browser.
#[async_trait]
pub trait IdentityProvider: Send + Sync + 'static {
    /// What the browser needs to open the provider's window.
    fn window(&self) -> Window;

    /// What came of a verification that `account` began. Bounded in time and size by the implementation.
    async fn look_up(&self, verification: Uuid, account: &Account) -> Result<Finding, ProviderError>;
}

/// What the browser needs to open the provider's window. None of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Whose window.
    pub source: IdentitySource,
    /// The provider's name for this shop.
    pub store_id: Option<String>,
    /// Which of its channels.
    pub channel_key: Option<String>,
}

/// What came of a verification.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// The provider vouches for this person.
    Verified(Person),
    /// The person has not finished, or never began.
    Pending,
    /// The provider vouches for nobody.
    Failed,
}

/// A person somebody vouched for. `Debug` shows nothing of them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The number that the person has everywhere.
    pub ci: String,
    /// The number that the person has at this shop.
    pub di: Option<String>,
    /// As the provider spells it.
    pub name: String,
    /// When the person was born.
    pub birth_date: Option<BirthDate>,
    /// The number of the phone that was used, in E.164 form.
    pub phone: Option<String>,
    /// As the provider says it.
    pub gender: Option<String>,
    /// Whether the person is a foreigner in Korea.
    pub foreigner: Option<bool>,
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Person(…)")
    }
}

/// Why it is not known what came of a verification.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// There was no complete answer.
    #[error("the provider gave no answer")]
    NoAnswer(#[from] CallError),
    /// The provider answered with an error.
    #[error("the provider answered with status {0}")]
    Status(u16),
    /// The answer is not what the provider's manual says.
    #[error("the provider's answer cannot be read")]
    Unreadable(#[from] serde_json::Error),
    /// The answer lacks what a person is known by, or is about something else.
    #[error("the provider's answer {0}")]
    Unusable(&'static str),
}
