//! Guards who cannot decide before the body is read. Which event somebody wants to buy for may stand there alone; what the guards
//! know of the request goes along with it, and the handler that parses the body asks.

use std::{convert::Infallible, fmt, sync::Arc};

use axum::extract::FromRequestParts;
use http::{Extensions, request::Parts};
use urr_kernel::{EventId, Timestamp};

use crate::Problem;

type Verdict = dyn Fn(EventId) -> Result<(), Problem> + Send + Sync;

/// Says whether a request may go on to an event. Handlers take it like any other part of a request; where no guard stands, it
/// lets everybody through.
#[derive(Clone, Default)]
pub struct Doorkeeper(Vec<Arc<Verdict>>);

impl Doorkeeper {
    /// Lets one more guard have a say, after those who had.
    pub fn add(
        extensions: &mut Extensions,
        verdict: impl Fn(EventId) -> Result<(), Problem> + Send + Sync + 'static,
    ) {
        let mut keeper = extensions.remove::<Self>().unwrap_or_default();
        keeper.0.push(Arc::new(verdict));
        extensions.insert(keeper);
    }

    /// Whether the request may go on to this event: every guard agrees, or the first who does not says why.
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

/// Since when people wait in line in front of the event that a request names, if a guard knows of such a line. Handlers take it like
/// any other part of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineSince(pub Option<Timestamp>);

impl<S: Send + Sync> FromRequestParts<S> for LineSince {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}

/// Whether a guard let somebody past a line for their turn in it, or for the place that they have behind it: they may take that up, and get
/// no new one. Handlers take it like any other part of a request.
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
    fn every_guard_has_a_say() {
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
