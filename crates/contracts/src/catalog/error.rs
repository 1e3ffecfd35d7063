//! Errors of the catalog.

use serde::{Deserialize, Serialize};
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
    /// Only admins may do this.
    #[error("Only an admin may do this")]
    AdminRequired,
    /// The catalog or its database is unreachable.
    #[error("The catalog is not available at the moment; please try again")]
    Unavailable,
    /// A bug.
    #[error("Something went wrong on our side")]
    Internal,
}

impl ServiceError for Error {
    const DOMAIN: &'static str = "catalog";

    fn kind(&self) -> Kind {
        match self {
            Self::EventNotFound | Self::LayoutNotFound => Kind::NotFound,
            Self::Invalid { .. } => Kind::Invalid,
            Self::AdminRequired => Kind::Forbidden,
            Self::Unavailable => Kind::Unavailable,
            Self::Internal => Kind::Internal,
        }
    }

    fn unavailable() -> Self {
        Self::Unavailable
    }
}
