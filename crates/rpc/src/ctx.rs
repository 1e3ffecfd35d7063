//! The context of a call: actor, request id and deadline.

use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use urr_kernel::{Actor, Clock, CommonError, Failure, Ids, RequestId, Role, UserId};
use urr_telemetry::FailureLines;

use crate::ServiceError;

/// Time limit of a call. The edge's own limit cannot be configured higher, except on routes that
/// request more time.
pub const REQUEST_BUDGET: Duration = Duration::from_secs(30);

/// Rate limit for log lines about domain failures.
static FAILURES: FailureLines = FailureLines::new();

/// The context of one call: the first argument of every service method.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// Identifies the request in all logs and roles.
    pub request_id: RequestId,
    /// On whose behalf the call runs.
    pub actor: Actor,
    clock: Clock,
    deadline: Duration,
}

impl Ctx {
    /// A context that ends `budget` from now.
    pub fn new(request_id: RequestId, actor: Actor, clock: Clock, budget: Duration) -> Self {
        let deadline = clock.ticks().saturating_add(budget);
        Self { request_id, actor, clock, deadline }
    }

    /// For work without a request: jobs, consumers, commands.
    pub fn system(ids: &Ids, clock: &Clock) -> Self {
        Self::new(ids.next(), Actor::System, clock.clone(), REQUEST_BUDGET)
    }

    /// The same call, ending at most `budget` from now.
    #[must_use]
    pub fn within(&self, budget: Duration) -> Self {
        let deadline = self.deadline.min(self.clock.ticks().saturating_add(budget));
        Self { deadline, ..self.clone() }
    }

    /// Time left. Zero after the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_sub(self.clock.ticks())
    }

    /// The signed-in user.
    pub fn user(&self) -> Result<UserId, CommonError> {
        self.actor.user().ok_or(CommonError::SignInRequired)
    }

    /// Refuses callers who are not admins.
    pub fn require_admin(&self) -> Result<(), CommonError> {
        match self.actor {
            Actor::System | Actor::User { role: Role::Admin, .. } => Ok(()),
            Actor::User { role: Role::UnprovenAdmin, .. } => Err(CommonError::SecondFactorRequired),
            Actor::User { role: Role::User, .. } => Err(CommonError::AdminRequired),
            Actor::Anonymous => Err(CommonError::SignInRequired),
        }
    }

    /// The answer of a service method, see [`Self::reveal`].
    pub fn answer<T, E: ServiceError>(
        &self,
        method: &'static str,
        outcome: Result<T, Failure<E>>,
    ) -> Result<T, E> {
        outcome.map_err(|failure| self.reveal(method, failure))
    }

    /// The error for the caller of a failed method. The cause is logged here, once, within the rate
    /// limit.
    pub fn reveal<E: ServiceError>(&self, method: &'static str, failure: Failure<E>) -> E {
        match failure {
            Failure::Refused(error) => error,
            Failure::Failed { answer, cause } => {
                if FAILURES.may_write(self.clock.ticks()) {
                    let error = urr_telemetry::chain(&*cause);
                    tracing::error!(method, request_id = %self.request_id, error, "{} call failed", E::DOMAIN);
                }
                answer
            }
        }
    }
}

/// On public routes the edge has set the actor and the request id.
impl<S> FromRequestParts<S> for Ctx
where
    S: Send + Sync,
    Clock: FromRef<S>,
    Ids: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let actor = parts.extensions.get::<Actor>().copied().unwrap_or(Actor::Anonymous);
        let request_id =
            urr_http::request_id(&parts.extensions).unwrap_or_else(|| Ids::from_ref(state).next());
        Ok(Self::new(request_id, actor, Clock::from_ref(state), REQUEST_BUDGET))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use serde::{Deserialize, Serialize};
    use tracing::{Event, Metadata, Subscriber, span};

    use urr_kernel::Refusal;

    use super::*;

    /// The errors of a service that has no others.
    #[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Refused {
        #[error(transparent)]
        Common(#[from] CommonError),
    }

    impl Refusal for Refused {}

    impl ServiceError for Refused {
        const DOMAIN: &'static str = "tickets";

        fn kind(&self) -> crate::Kind {
            let Self::Common(error) = self;
            (*error).into()
        }
    }

    /// Counts log lines.
    #[derive(Clone, Default)]
    struct Lines(Arc<AtomicUsize>);

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn failures_are_logged_up_to_the_rate_limit() {
        let clock = Clock::fixed("2026-06-01T01:00:00Z".parse().unwrap());
        let ctx = Ctx::system(&Ids::seeded(clock.clone(), 1), &clock);
        let (lines, failure) = (Lines::default(), Failure::<Refused>::unavailable("the database is down"));
        let written = |times| {
            let before = lines.0.load(Ordering::SeqCst);
            let ask = || (0..times).for_each(|_| _ = ctx.reveal("hold", failure.clone()));
            tracing::subscriber::with_default(lines.clone(), ask);
            lines.0.load(Ordering::SeqCst) - before
        };
        assert_eq!(written(5_000), 100);
        clock.advance(Duration::from_secs(1));
        assert_eq!(written(1), 2, "one of them says how many were suppressed");
    }
}
