//! What the waiting rooms found about a request. The gateway leaves it in the request for the
//! handler.

use std::{convert::Infallible, fmt, sync::Arc};

use axum::extract::FromRequestParts;
use http::request::Parts;
use urr_kernel::{EventId, Timestamp};

use crate::{Problem, codes};

/// Whether the caller's pass of the site waiting room is valid for an event.
pub type PassCheck = Arc<dyn Fn(EventId) -> Result<(), Problem> + Send + Sync>;

/// The guard in front of buying, as an extractor. Its checks need the event in the body, so the
/// handler runs them once it has parsed the body.
#[derive(Clone)]
pub struct EntryGuard {
    pass: Option<PassCheck>,
    slot: Option<EventId>,
}

impl EntryGuard {
    /// `pass` is `None` without a site waiting room; `slot` is the event of the caller's slot, or
    /// `None` if buying needs none.
    pub fn new(pass: Option<PassCheck>, slot: Option<EventId>) -> Self {
        Self { pass, slot }
    }

    /// Returns an error unless the caller may buy for this event.
    pub fn check(&self, event: EventId) -> Result<(), Problem> {
        if let Some(check) = &self.pass {
            check(event)?;
        }
        match self.slot {
            Some(slot) if slot != event => Err(entry_required("other_event")),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for EntryGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryGuard").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// Fails closed: a request that the gateway has not checked is refused.
impl<S: Send + Sync> FromRequestParts<S> for EntryGuard {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| entry_required("missing"))
    }
}

/// 403 `queue.entry_required`. Clients know the message; `reason` says what is wrong.
pub fn entry_required(reason: &'static str) -> Problem {
    Problem::of(codes::ENTRY_REQUIRED, "Queue entry token required")
        .field("redirectTo", "/queue")
        .field("reason", reason)
}

/// When the waiting room of the event in the request opened, if a guard found one. `None` without
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineSince(pub Option<Timestamp>);

impl<S: Send + Sync> FromRequestParts<S> for LineSince {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}

/// Whether a guard let the request past the waiting room only to resume an existing turn or
/// position. Handlers must not give such a request a new position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnlyResume(pub bool);

impl<S: Send + Sync> FromRequestParts<S> for OnlyResume {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn event(last: u8) -> EventId {
        format!("0197b3c2-0000-7000-8000-00000000000{last}").parse().unwrap()
    }

    #[test]
    fn the_pass_and_the_slot_must_be_of_the_event() {
        let one = event(1);
        let refuse = || Problem::new(StatusCode::FORBIDDEN, "vwr.pass_required", "No.");
        let pass: PassCheck = Arc::new(move |event| if event == one { Ok(()) } else { Err(refuse()) });
        assert_eq!(EntryGuard::new(None, None).check(one), Ok(()));
        let guard = EntryGuard::new(Some(pass), Some(event(2)));
        assert_eq!(guard.check(one), Err(entry_required("other_event")));
        assert_eq!(guard.check(event(2)), Err(refuse()), "the pass is checked first");
        assert_eq!(EntryGuard { slot: Some(one), ..guard }.check(one), Ok(()));
    }

    #[tokio::test]
    async fn an_unchecked_request_is_refused() {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        let unchecked = EntryGuard::from_request_parts(&mut parts, &()).await;
        assert_eq!(unchecked.unwrap_err(), entry_required("missing"));
    }
}
