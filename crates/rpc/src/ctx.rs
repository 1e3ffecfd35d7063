//! What every call carries: who asks, on which request, and how long there is.

use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use urr_kernel::{Actor, Clock, Ids, RequestId};

/// How long one call may take. The edge cuts off no later, because its limit cannot be configured beyond this, except on a route
/// that asked for more time.
pub const REQUEST_BUDGET: Duration = Duration::from_secs(30);

/// The context of one call. Comes first in every service method.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// Names the request in every log line and every role it touches.
    pub request_id: RequestId,
    /// On whose behalf.
    pub actor: Actor,
    clock: Clock,
    deadline: Duration,
}

impl Ctx {
    /// A context with `budget` left from now.
    pub fn new(request_id: RequestId, actor: Actor, clock: Clock, budget: Duration) -> Self {
        let deadline = clock.ticks().saturating_add(budget);
        Self { request_id, actor, clock, deadline }
    }

    /// For work that no request asked for: jobs, consumers, commands.
    pub fn system(ids: &Ids, clock: &Clock) -> Self {
        Self::new(ids.next(), Actor::System, clock.clone(), REQUEST_BUDGET)
    }

    /// How much time is left. Zero once the deadline has passed.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_sub(self.clock.ticks())
    }
}

/// On public routes the edge has verified who asks and named the request.
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
