//! A service that runs in another process.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, header};
use serde::{Serialize, de::DeserializeOwned};
use urr_http::{Call, Target};

use crate::{Ctx, ServiceError, error::restore};

/// Who asks, as JSON of an `Actor`. Only the internal listener reads it.
pub(crate) const ACTOR: &str = "x-urr-actor";
/// Milliseconds the caller will still wait.
pub(crate) const BUDGET: &str = "x-urr-budget-ms";
/// Names the request across roles.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// Whether a call may be sent again when nobody knows if the first one arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Asking twice is as good as asking once.
    Safe,
    /// Asked once. Whoever calls decides whether to ask again.
    Never,
}

/// A service as other roles know it: `dyn Catalog` and the like. Implemented by [`service!`](crate::service).
pub trait Peer: Send + Sync + 'static {
    /// The role that offers it.
    const ROLE: &'static str;

    /// The service in another process.
    fn remote(remote: Remote) -> Arc<Self>;
}

/// Another role, reached over HTTP. Implements every service trait.
#[derive(Clone, Debug)]
pub struct Remote {
    target: Target,
    bearer: HeaderValue,
}

impl Remote {
    /// The role at `target`, which knows us by `token`.
    pub fn new(target: Target, token: &str) -> Self {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
            .expect("configuration lets only printable tokens pass");
        bearer.set_sensitive(true);
        Self { target, bearer }
    }

    /// One call. Trouble on the way becomes the service's own "unavailable".
    #[doc(hidden)]
    pub async fn call<Q, A, E>(&self, ctx: &Ctx, path: &str, request: &Q, retry: Retry) -> Result<A, E>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
        E: ServiceError,
    {
        let budget = ctx.remaining();
        if budget.is_zero() {
            return Err(E::unavailable());
        }
        let body = serde_json::to_vec(request).expect("requests are plain data and always serialise");
        let call = Call::post_json(path, body).idempotent(retry == Retry::Safe).within(budget);
        let (role, request_id) = (self.target.name(), ctx.request_id);
        let answer = self.target.send(self.signed(ctx, budget, call)).await.map_err(|trouble| {
            let error = urr_telemetry::chain(&trouble);
            tracing::warn!(role, path, %request_id, error, "a role did not answer");
            E::unavailable()
        })?;
        if answer.status.is_success() {
            return serde_json::from_slice(&answer.body).map_err(|error| {
                tracing::error!(role, path, %request_id, %error, "a role answered in another version's words");
                E::unavailable()
            });
        }
        Err(restore(&answer.body).unwrap_or_else(|| {
            tracing::warn!(role, path, %request_id, status = %answer.status, "a role refused the call itself");
            E::unavailable()
        }))
    }

    fn signed(&self, ctx: &Ctx, budget: Duration, call: Call) -> Call {
        let text = |text: &str| HeaderValue::from_str(text).expect("ids and actors are printable ASCII");
        let actor = serde_json::to_string(&ctx.actor).expect("an actor is plain data and always serialises");
        let budget_ms = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        call.header(header::AUTHORIZATION, self.bearer.clone())
            .header(HeaderName::from_static(REQUEST_ID), text(&ctx.request_id.to_string()))
            .header(HeaderName::from_static(ACTOR), text(&actor))
            .header(HeaderName::from_static(BUDGET), HeaderValue::from(budget_ms))
    }
}
