//! For whose seats a request may ask. The gateway finds it out and leaves it in the request; whoever reads the body compares.

use axum::extract::FromRequestParts;
use http::request::Parts;
use urr_kernel::EventId;

use crate::{Problem, codes};

/// What the gateway found out about the caller's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// Nobody guards the sale.
    Open,
    /// The caller has a slot of this event.
    Slot(EventId),
}

impl Entrance {
    /// Lets a request for this event's seats through.
    pub fn allows(self, event: EventId) -> Result<(), Problem> {
        match self {
            Self::Slot(of) if of != event => Err(entry_required("other_event")),
            Self::Open | Self::Slot(_) => Ok(()),
        }
    }
}

/// Where nobody has looked, nobody gets in.
impl<S: Send + Sync> FromRequestParts<S> for Entrance {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().copied().ok_or_else(|| entry_required("missing"))
    }
}

/// The answer to whoever wants to buy without a slot. The sentence is the one that clients know; `reason` says what is wrong.
pub fn entry_required(reason: &'static str) -> Problem {
    Problem::of(codes::ENTRY_REQUIRED, "Queue entry token required")
        .field("redirectTo", "/queue")
        .field("reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_is_good_for_its_own_event_and_nothing_is_good_for_none() {
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
