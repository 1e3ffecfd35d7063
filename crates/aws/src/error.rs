//! Errors of calls to AWS.

use std::time::Duration;

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};
use urr_kernel::{Failure, Refusal, Refused};

/// Why a call failed. After [`Error::Down`] and [`Error::Timeout`] the call may or may not have
/// taken effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// AWS is unreachable or throttling, or there are no credentials.
    #[error("{service} is down: {why}")]
    Down {
        /// The service.
        service: &'static str,
        /// The cause.
        why: String,
    },
    /// No reply within the deadline.
    #[error("{service} did not answer within {} ms", limit.as_millis())]
    Timeout {
        /// The service.
        service: &'static str,
        /// The deadline.
        limit: Duration,
    },
    /// The circuit breaker is open; the call was not made.
    #[error("{service} failed repeatedly; it is tried again in {} ms", retry_after.as_millis())]
    Open {
        /// The service.
        service: &'static str,
        /// When a retry makes sense.
        retry_after: Duration,
    },
    /// An error reply, or an unexpected one.
    #[error("{service} refused: {why}")]
    Reply {
        /// The service.
        service: &'static str,
        /// The cause.
        why: String,
    },
}

/// Error codes that mean throttling or overload; some of them have status 400.
const BUSY: [&str; 6] = [
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "TransactionInProgressException",
    "ServiceUnavailable",
];

impl Error {
    /// Whether the service failed, as opposed to a mistake in the call.
    pub fn is_unavailable(&self) -> bool {
        !matches!(self, Self::Reply { .. })
    }

    /// The value of the `outcome` metric label.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Down { .. } => "down",
            Self::Timeout { .. } => "timeout",
            Self::Open { .. } => "open",
            Self::Reply { .. } => "reply",
        }
    }

    pub(crate) fn open(service: &'static str, Refused { retry_after }: Refused) -> Self {
        Self::Open { service, retry_after }
    }

    /// Classifies an error of the SDK.
    pub(crate) fn of<E>(service: &'static str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let SdkError::ServiceError(answer) = error else {
            return Self::Down { service, why: urr_telemetry::chain(error) };
        };
        let (status, code) = (answer.raw().status().as_u16(), answer.err().code().unwrap_or("no code"));
        let why = format!("{code}: {}", answer.err().message().unwrap_or("no message"));
        if status >= 500 || BUSY.contains(&code) {
            Self::Down { service, why }
        } else {
            Self::Reply { service, why }
        }
    }
}

impl<E: Refusal> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::unavailable(error)
    }
}
