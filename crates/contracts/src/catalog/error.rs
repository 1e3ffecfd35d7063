//! Errors of the catalog.

use serde::{Deserialize, Serialize};
use urr_kernel::{CommonError, Failure, Refusal};
use urr_rpc::{Kind, ServiceError};

/// Errors of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// The event does not exist.
    #[error("There is no such event")]
    EventNotFound,
    /// The layout does not exist.
    #[error("There is no such seat layout")]
    LayoutNotFound,
    /// A field of the request is invalid.
    #[error("{field}: {reason}")]
    Invalid {
        /// Name of the field.
        field: String,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// An error of every service.
    #[error(transparent)]
    #[serde(untagged)]
    Common(#[from] CommonError),
}

impl Refusal for Error {}

impl ServiceError for Error {
    const DOMAIN: &'static str = "catalog";

    fn kind(&self) -> Kind {
        match self {
            Self::EventNotFound | Self::LayoutNotFound => Kind::NotFound,
            Self::Invalid { .. } => Kind::Invalid,
            Self::Common(error) => (*error).into(),
        }
    }
}

impl Error {
    /// The failure of a method that needs the event: `not_found` if there is no such event.
    pub fn into_failure<E: Refusal>(self, not_found: E) -> Failure<E> {
        match self {
            Self::EventNotFound => not_found.into(),
            Self::Common(CommonError::Unavailable) => Failure::unavailable(self),
            other => Failure::internal(other),
        }
    }
}
