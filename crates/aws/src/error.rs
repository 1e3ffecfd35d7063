//! What can go wrong with a call.

use std::time::Duration;

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};
use urr_kernel::Refused;

/// Why a call has no answer. After [`Error::Down`] and [`Error::Timeout`] what was asked may or may not have been done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// AWS cannot be reached, is busy, or has no credentials for us.
    #[error("{service} is down: {why}")]
    Down {
        /// Which service.
        service: &'static str,
        /// What it or the network said.
        why: String,
    },
    /// No answer within the deadline.
    #[error("{service} did not answer within {} ms", limit.as_millis())]
    Timeout {
        /// Which service.
        service: &'static str,
        /// The deadline.
        limit: Duration,
    },
    /// It failed often lately and was not asked.
    #[error("{service} failed repeatedly; it is tried again in {} ms", retry_after.as_millis())]
    Open {
        /// Which service.
        service: &'static str,
        /// When asking again makes sense.
        retry_after: Duration,
    },
    /// It answered with an error, or with something the caller did not expect.
    #[error("{service} refused: {why}")]
    Reply {
        /// Which service.
        service: &'static str,
        /// What it said.
        why: String,
    },
}

/// Codes with which AWS asks for patience; the status of some of them is 400.
const BUSY: [&str; 6] = [
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "TransactionInProgressException",
    "ServiceUnavailable",
];

impl Error {
    /// Whether it is the other side that could not answer, as opposed to a mistake in the call.
    pub fn is_unavailable(&self) -> bool {
        !matches!(self, Self::Reply { .. })
    }

    /// The word in metrics.
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

    /// What the SDK's error means.
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
