//! Client of a service in another process.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, header};
use serde::{Serialize, de::DeserializeOwned};
use urr_http::{Call, Target};
use urr_kernel::CommonError;

use crate::{Ctx, ServiceError, error::restore};

/// The actor, as JSON. Only the internal listener reads it.
pub(crate) const ACTOR: &str = "x-urr-actor";
/// Milliseconds until the caller's deadline.
pub(crate) const BUDGET: &str = "x-urr-budget-ms";
/// Identifies the request across roles.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// Whether a call may be retried when it is unknown if the first one arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The call is idempotent.
    Safe,
    /// Sent once. The caller decides about retries.
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
    /// The role at `target`, which accepts our `token`.
    pub fn new(target: Target, token: &str) -> Self {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
            .expect("the configuration only accepts printable tokens");
        bearer.set_sensitive(true);
        Self { target, bearer }
    }

    /// One call. Transport errors become the service's own "unavailable".
    #[doc(hidden)]
    pub async fn call<Q, A, E>(&self, ctx: &Ctx, path: &str, request: &Q, retry: Retry) -> Result<A, E>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
        E: ServiceError,
    {
        let budget = ctx.remaining();
        if budget.is_zero() {
            return Err(CommonError::Unavailable.into());
        }
        let body = serde_json::to_vec(request).expect("requests always serialise");
        let call = Call::post_json(path, body).idempotent(retry == Retry::Safe).within(budget);
        let (role, request_id) = (self.target.name(), ctx.request_id);
        let answer = self.target.send(self.signed(ctx, budget, call)).await.map_err(|trouble| {
            let error = urr_telemetry::chain(&trouble);
            tracing::warn!(role, path, %request_id, error, "role did not answer: the call fails");
            CommonError::Unavailable
        })?;
        if answer.status.is_success() {
            return serde_json::from_slice(&answer.body).map_err(|error| {
                tracing::error!(
                    role, path, %request_id, %error,
                    "cannot decode the response of a role; are all processes on the same version?"
                );
                CommonError::Unavailable.into()
            });
        }
        Err(restore(&answer.body).unwrap_or_else(|| {
            tracing::warn!(
                role, path, %request_id, status = %answer.status,
                "role rejected the call; 401: is internal.token the same? 404: same version? \
                 503: is it starting or stopping?"
            );
            CommonError::Unavailable.into()
        }))
    }

    fn signed(&self, ctx: &Ctx, budget: Duration, call: Call) -> Call {
        let text = |text: &str| HeaderValue::from_str(text).expect("ids and actors are printable ASCII");
        let actor = serde_json::to_string(&ctx.actor).expect("an actor always serialises");
        let budget_ms = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        call.header(header::AUTHORIZATION, self.bearer.clone())
            .header(HeaderName::from_static(REQUEST_ID), text(&ctx.request_id.to_string()))
            .header(HeaderName::from_static(ACTOR), text(&actor))
            .header(HeaderName::from_static(BUDGET), HeaderValue::from(budget_ms))
    }
}
