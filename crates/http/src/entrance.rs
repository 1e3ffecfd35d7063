//! The event that a request may buy for. The gateway checks the queue slot and leaves the result in
//! the request; the handler compares it with the event in the body.

use axum::extract::FromRequestParts;
use http::request::Parts;
use urr_kernel::EventId;

use crate::{Problem, codes};

/// Result of the gateway's slot check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// Buying needs no slot.
    Open,
    /// The caller has a slot of this event.
    Slot(EventId),
}

impl Entrance {
    /// Returns an error unless the request may buy seats of this event.
    pub fn allows(self, event: EventId) -> Result<(), Problem> {
        match self {
            Self::Slot(of) if of != event => Err(entry_required("other_event")),
            Self::Open | Self::Slot(_) => Ok(()),
        }
    }
}

/// Fails closed: without a result from the gateway the request is refused.
impl<S: Send + Sync> FromRequestParts<S> for Entrance {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().copied().ok_or_else(|| entry_required("missing"))
    }
}

/// 403 `queue.entry_required`. Clients know the message; `reason` says what is wrong.
pub fn entry_required(reason: &'static str) -> Problem {
    Problem::of(codes::ENTRY_REQUIRED, "Queue entry token required")
        .field("redirectTo", "/queue")
        .field("reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_allows_its_own_event_only_and_a_missing_check_is_refused() {
        let id = |text: &str| text.parse::<EventId>().unwrap();
        let event = id("0197b3c2-0000-7000-8000-000000000001");
        let other = id("0197b3c2-0000-7000-8000-000000000002");
        assert_eq!(Entrance::Open.allows(event), Ok(()));
        assert_eq!(Entrance::Slot(event).allows(event), Ok(()));
        assert_eq!(Entrance::Slot(event).allows(other), Err(entry_required("other_event")));
        let (mut parts, ()) = http::Request::new(()).into_parts();
        let nobody_looked = Entrance::from_request_parts(&mut parts, &()).await;
        assert_eq!(nobody_looked, Err(entry_required("missing")));
    }
}
