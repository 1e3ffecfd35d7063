//! A request body that can be recovered if it was never read. hyper's connection pool consumes the
//! request even if it cannot connect.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// A recoverable body.
pub(super) struct RecoverableBody {
    body: Body,
    is_untouched: bool,
    back: Arc<Mutex<Option<Body>>>,
}

/// Recovers the body.
pub(super) struct BodyRecovery(Arc<Mutex<Option<Body>>>);

impl RecoverableBody {
    pub(super) fn new(body: Body) -> (Self, BodyRecovery) {
        let back = Arc::default();
        (Self { body, is_untouched: true, back: Arc::clone(&back) }, BodyRecovery(back))
    }
}

impl BodyRecovery {
    /// The body, if it was dropped before it was polled.
    pub(super) fn back(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl HttpBody for RecoverableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_untouched = false;
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RecoverableBody {
    fn drop(&mut self) {
        if self.is_untouched {
            let body = std::mem::take(&mut self.body);
            *self.back.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_body_is_recovered_unless_it_was_polled() {
        let (body, recovery) = RecoverableBody::new(Body::from("whole"));
        assert_eq!(body.size_hint().exact(), Some(5));
        assert!(recovery.back().is_none(), "it is still in use");
        drop(body);
        assert_eq!(recovery.back().unwrap().collect().await.unwrap().to_bytes(), "whole");

        let never = futures_util::stream::pending::<std::io::Result<Bytes>>();
        let (mut body, recovery) = RecoverableBody::new(Body::from_stream(never));
        assert!(futures_util::poll!(body.frame()).is_pending());
        drop(body);
        assert!(recovery.back().is_none(), "a polled body may have lost data");
    }
}
