//! Errors that every service has, and the failure of a service method.

use std::{error::Error, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Errors that every service has. Each has one public code for the whole product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code")]
pub enum CommonError {
    /// The caller is not signed in.
    #[error("Please sign in first.")]
    #[serde(rename = "auth.required")]
    SignInRequired,
    /// Only admins may do this.
    #[error("Only an administrator may do this.")]
    #[serde(rename = "auth.admin_required")]
    AdminRequired,
    /// The caller is an admin who signed in without the required second factor.
    #[error("Please turn on a second factor first; administrators need one here.")]
    #[serde(rename = "auth.second_factor_required")]
    SecondFactorRequired,
    /// The service, or a store that it needs, is down.
    #[error("This is unavailable right now. Please try again in a moment.")]
    #[serde(rename = "http.unavailable")]
    Unavailable,
    /// A bug.
    #[error("The server failed. It has been logged.")]
    #[serde(rename = "http.internal")]
    Internal,
}

/// The error enum of a service.
pub trait Refusal: From<CommonError> + Error + Send + Sync + 'static {}

/// Why a service method has no result.
#[derive(Clone, Debug)]
pub enum Failure<E> {
    /// The rules refused the request. The caller gets the error unchanged.
    Refused(E),
    /// Something below failed. The cause is logged and not sent to the caller.
    Failed {
        /// The error for the caller.
        answer: E,
        /// What failed. Requests of one batch share it.
        cause: Arc<dyn Error + Send + Sync>,
    },
}

impl<E> Failure<E> {
    /// A failure with this answer.
    pub fn failed(answer: impl Into<E>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed { answer: answer.into(), cause: cause.into().into() }
    }

    /// The cause, if it is of this type.
    pub fn cause<T: Error + 'static>(&self) -> Option<&T> {
        match self {
            Self::Refused(_) => None,
            Self::Failed { cause, .. } => cause.downcast_ref(),
        }
    }
}

impl<E: Refusal> Failure<E> {
    /// A store or a service does not answer: the caller gets 503 and may retry.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::failed(CommonError::Unavailable, cause)
    }

    /// A bug: the caller gets 500.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::failed(CommonError::Internal, cause)
    }
}

impl<E: Refusal> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::Refused(error)
    }
}

impl<E: Refusal> From<CommonError> for Failure<E> {
    fn from(error: CommonError) -> Self {
        Self::Refused(error.into())
    }
}

impl<E: Refusal> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => fmt::Display::fmt(error, f),
            Self::Failed { cause, .. } => fmt::Display::fmt(cause, f),
        }
    }
}

impl<E: Refusal> Error for Failure<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(error) => error.source(),
            Self::Failed { cause, .. } => cause.source(),
        }
    }
}
