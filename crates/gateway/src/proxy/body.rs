//! Bodies on their way through.

use std::{
    error::Error as StdError,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::StatusCode;
use http_body::{Frame, SizeHint};
use http_body_util::LengthLimitError;
use tokio::time::{Sleep, sleep};
use urr_http::Problem;

use crate::codes;

/// How long an answer may pause between two pieces. Streams of events say something at least every 30 seconds.
const MAX_PAUSE: Duration = Duration::from_mins(1);

type Piece = Option<Result<Frame<Bytes>, axum::Error>>;

/// What was wrong with the body of a request, if something was: the client's doing and not the service's.
#[derive(Clone, Debug, Default)]
pub(super) struct Flaw(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    cause: OnceLock<Cause>,
    /// Whether the next piece was asked for and has not come.
    is_awaited: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
enum Cause {
    TooLarge,
    Broken,
    Slow,
}

impl Flaw {
    /// Whether the client has yet to send what it was asked for. A body that nobody asks for is not late.
    pub(super) fn is_awaited(&self) -> bool {
        self.0.is_awaited.load(Ordering::Relaxed)
    }

    /// The time for the request is over: a body that has not come by now is too slow.
    pub(super) fn time_is_over(&self) {
        if self.is_awaited() {
            self.set(Cause::Slow);
        }
    }

    fn set(&self, cause: Cause) {
        let _already = self.0.cause.set(cause);
    }

    pub(super) fn problem(&self) -> Option<Problem> {
        Some(match self.0.cause.get()? {
            Cause::TooLarge => Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "http.body_too_large",
                "The body is larger than it may be.",
            ),
            Cause::Broken => Problem::new(
                StatusCode::BAD_REQUEST,
                "http.bad_request",
                "The body ended before it was complete.",
            ),
            Cause::Slow => Problem::of(codes::SLOW_BODY, "The body took too long to arrive."),
        })
    }
}

/// The body of a request that remembers how it broke, and whether it keeps us waiting.
pub(super) struct Watched {
    body: Body,
    flaw: Flaw,
}

impl Watched {
    pub(super) fn new(body: Body) -> (Self, Flaw) {
        let flaw = Flaw::default();
        (Self { body, flaw: flaw.clone() }, flaw)
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Piece> {
        let piece = Pin::new(&mut self.body).poll_frame(cx);
        self.flaw.0.is_awaited.store(piece.is_pending(), Ordering::Relaxed);
        let piece = ready!(piece);
        if let Some(Err(error)) = &piece {
            self.flaw.set(if is_too_large(error) { Cause::TooLarge } else { Cause::Broken });
        }
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn is_too_large(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<LengthLimitError>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// The body of an answer that breaks off when nothing comes for too long.
pub(super) struct Steady {
    body: Body,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Steady {
    pub(super) fn new(body: Body) -> Self {
        Self { body, pause: None }
    }
}

impl HttpBody for Steady {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Piece> {
        if let Poll::Ready(piece) = Pin::new(&mut self.body).poll_frame(cx) {
            self.pause = None;
            return Poll::Ready(piece);
        }
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(MAX_PAUSE)));
        ready!(pause.as_mut().poll(cx));
        Poll::Ready(Some(Err(axum::Error::new("the service behind stopped in the middle of its answer"))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Limited};

    use super::*;

    #[tokio::test]
    async fn a_body_over_the_limit_and_one_that_breaks_are_told_apart() {
        let (body, flaw) = Watched::new(Body::new(Limited::new(Body::from("too much"), 3)));
        assert!(flaw.problem().is_none());
        body.collect().await.unwrap_err();
        assert_eq!(flaw.problem().unwrap().status, StatusCode::PAYLOAD_TOO_LARGE);

        let gone = futures_util::stream::iter([Ok("a"), Err(std::io::Error::other("gone"))]);
        let (body, flaw) = Watched::new(Body::from_stream(gone));
        body.collect().await.unwrap_err();
        assert_eq!(flaw.problem().unwrap().status, StatusCode::BAD_REQUEST);

        let (body, flaw) = Watched::new(Body::from("well"));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "well");
        assert!(flaw.problem().is_none());
    }

    #[tokio::test]
    async fn a_body_is_too_slow_only_if_it_was_asked_for_and_did_not_come() {
        let stalls =
            || Watched::new(Body::from_stream(futures_util::stream::pending::<std::io::Result<Bytes>>()));
        let (_unread, flaw) = stalls();
        flaw.time_is_over();
        assert!(flaw.problem().is_none(), "a service that does not read has itself to blame");

        let (mut body, flaw) = stalls();
        assert!(futures_util::poll!(body.frame()).is_pending());
        flaw.time_is_over();
        assert_eq!(flaw.problem().unwrap().status, StatusCode::REQUEST_TIMEOUT);

        let (body, flaw) = Watched::new(Body::from("well"));
        body.collect().await.unwrap();
        flaw.time_is_over();
        assert!(flaw.problem().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_pause_but_not_stop() {
        let pauses = futures_util::stream::unfold(0, async |number| {
            tokio::time::sleep(if number < 3 { Duration::from_secs(59) } else { Duration::from_secs(61) })
                .await;
            Some((Ok::<_, std::io::Error>("x"), number + 1))
        });
        let mut body = Steady::new(Body::from_stream(pauses));
        for _ in 0..3 {
            assert!(body.frame().await.unwrap().is_ok());
        }
        assert!(body.frame().await.unwrap().is_err());
    }
}
