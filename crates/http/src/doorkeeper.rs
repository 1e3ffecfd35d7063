//! Guard checks that need the event id from the request body. A guard that runs before the body is
//! read leaves its check in the request; the handler runs it once it has parsed the body.

use std::{convert::Infallible, fmt, sync::Arc};

use axum::extract::FromRequestParts;
use http::{Extensions, request::Parts};
use urr_kernel::{EventId, Timestamp};

use crate::Problem;

type Verdict = dyn Fn(EventId) -> Result<(), Problem> + Send + Sync;

/// The deferred guard checks of a request, as an extractor. Without guards every event is allowed.
#[derive(Clone, Default)]
pub struct Doorkeeper(Vec<Arc<Verdict>>);

impl Doorkeeper {
    /// Adds a check, which runs after the ones already added.
    pub fn add(
        extensions: &mut Extensions,
        verdict: impl Fn(EventId) -> Result<(), Problem> + Send + Sync + 'static,
    ) {
        let mut keeper = extensions.remove::<Self>().unwrap_or_default();
        keeper.0.push(Arc::new(verdict));
        extensions.insert(keeper);
    }

    /// Runs the checks in order and returns the first error.
    pub fn check(&self, event: EventId) -> Result<(), Problem> {
        self.0.iter().try_for_each(|verdict| verdict(event))
    }
}

impl fmt::Debug for Doorkeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Doorkeeper").field(&self.0.len()).finish()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Doorkeeper {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
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

    #[test]
    fn checks_run_in_order_and_the_first_error_wins() {
        let event =
            |last: u8| format!("0190a1f0-0000-7000-8000-00000000000{last}").parse::<EventId>().unwrap();
        let (one, two) = (event(1), event(2));
        let mut extensions = Extensions::new();
        assert!(Doorkeeper::default().check(one).is_ok());
        let refuse = |code: &'static str| Problem::new(StatusCode::FORBIDDEN, code, "No.");
        Doorkeeper::add(&mut extensions, move |event| if event == one { Ok(()) } else { Err(refuse("a.a")) });
        Doorkeeper::add(&mut extensions, move |_| Err(refuse("b.b")));
        let keeper = extensions.get::<Doorkeeper>().unwrap();
        assert_eq!(keeper.check(two).unwrap_err().code, "a.a");
        assert_eq!(keeper.check(one).unwrap_err().code, "b.b");
    }
}
