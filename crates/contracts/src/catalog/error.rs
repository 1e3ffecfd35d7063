//! Why the catalog refuses.

use serde::{Deserialize, Serialize};
use urr_rpc::{Kind, ServiceError};

/// Why the catalog refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    /// No such event.
    #[error("There is no such event")]
    EventNotFound,
    /// No such layout.
    #[error("There is no such seat layout")]
    LayoutNotFound,
    /// A field of the request makes no sense.
    #[error("{field}: {reason}")]
    Invalid {
        /// Which field.
        field: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// Only admins may do this.
    #[error("Only an admin may do this")]
    AdminRequired,
    /// The catalog cannot be asked right now.
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
