//! What can go wrong with a call.

use std::time::Duration;

use urr_kernel::Refused;

/// Why a call has no answer. After [`Error::Down`] and [`Error::Timeout`] the script may or may not have run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The node cannot be reached or cannot serve now.
    #[error("redis is down: {0}")]
    Down(String),
    /// No answer within the deadline.
    #[error("redis did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The node failed often lately and was not asked.
    #[error("redis failed repeatedly; it is tried again in {} ms", retry_after.as_millis())]
    Open {
        /// When asking again makes sense.
        retry_after: Duration,
    },
    /// As many calls are waiting for the node as may wait; it was not asked.
    #[error("too many calls are waiting for redis")]
    Full,
    /// Redis answered with an error, or with something the caller did not expect.
    #[error("redis refused: {0}")]
    Reply(String),
    /// The keys of one call are not in one slot, so no Cluster could run it.
    #[error("a script needs at least one key, and all its keys must share one hash tag")]
    Keys,
}

impl Error {
    /// Whether going on without Redis is the answer, as opposed to a mistake in the call.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Down(_) | Self::Timeout(_) | Self::Open { .. } | Self::Full => true,
            Self::Reply(_) | Self::Keys => false,
        }
    }

    /// The word in metrics.
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
