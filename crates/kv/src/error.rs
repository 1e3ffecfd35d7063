//! Errors of a call.

use std::time::Duration;

use urr_kernel::{Failure, Refusal, Refused};

/// Why a call failed. After [`Error::Down`] and [`Error::Timeout`] the script may or may not have
/// run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The node is unreachable or cannot serve.
    #[error("redis is down: {0}")]
    Down(String),
    /// No reply within the deadline.
    #[error("redis did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The circuit breaker is open; nothing was sent.
    #[error("redis failed repeatedly: its circuit breaker is open for {} ms", retry_after.as_millis())]
    Open {
        /// When to retry.
        retry_after: Duration,
    },
    /// Too many calls wait for the node; nothing was sent.
    #[error("too many calls are waiting for redis")]
    Full,
    /// Redis returned an error or an unexpected reply.
    #[error("redis returned an error: {0}")]
    Reply(String),
    /// The keys are in different slots or there are none, so a Cluster could not run the call.
    #[error("a script needs at least one key, and all its keys must share one hash tag")]
    Keys,
}

impl Error {
    /// Whether Redis is unavailable, so that the caller should go on without it. Otherwise the call
    /// itself is wrong.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Down(_) | Self::Timeout(_) | Self::Open { .. } | Self::Full => true,
            Self::Reply(_) | Self::Keys => false,
        }
    }

    /// The label in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Down(_) => "down",
            Self::Timeout(_) => "timeout",
            Self::Open { .. } => "open",
            Self::Full => "full",
            Self::Reply(_) => "reply",
            Self::Keys => "keys",
        }
    }
}

impl From<Refused> for Error {
    fn from(Refused { retry_after }: Refused) -> Self {
        Self::Open { retry_after }
    }
}

impl<E: Refusal> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::unavailable(error)
    }
}
