//! Streaming responses without an end: they continue while the caller is allowed to read them, and
//! end when the process drains.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    response::Response,
};
use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Interval, MissedTickBehavior, interval};
use urr_kernel::Clock;
use urr_passes::access::Verified;
use urr_telemetry::Health;

use crate::{Guards, revoked::Revoked};

/// How often the permission is checked. Together with the delay of a revocation this stays within a
/// second.
const LOOK: Duration = Duration::from_millis(500);

/// Checks whether a stream may continue.
pub(crate) struct Watch {
    verified: Option<Verified>,
    revoked: Option<Arc<Revoked>>,
    clock: Clock,
    health: Health,
}

impl Watch {
    /// Creates a check for the response to a request with this token.
    pub(crate) fn new(guards: &Guards, verified: Option<Verified>) -> Self {
        Self {
            verified,
            revoked: guards.revoked.clone(),
            clock: guards.clock.clone(),
            health: guards.health.clone(),
        }
    }

    /// Wraps the response, which ends once the permission is lost. The client reconnects and gets
    /// the reason.
    pub(crate) fn over(self: Box<Self>, answer: Response) -> Response {
        answer.map(|body| {
            let mut look = interval(LOOK);
            look.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Body::new(Watched { body, watch: self, look })
        })
    }

    fn is_over(&self) -> bool {
        let has_ended = |verified: &Verified| {
            verified.expires <= self.clock.now()
                || self.revoked.as_ref().is_some_and(|revoked| {
                    // As on every operator route: a stale list of ended sessions ends the stream.
                    revoked.contains(verified.access.session) || !revoked.is_fresh()
                })
        };
        self.health.is_draining() || self.verified.as_ref().is_some_and(has_ended)
    }
}

struct Watched {
    body: Body,
    watch: Box<Watch>,
    look: Interval,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        while self.look.poll_tick(cx).is_ready() {
            if self.watch.is_over() {
                return Poll::Ready(None);
            }
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}
