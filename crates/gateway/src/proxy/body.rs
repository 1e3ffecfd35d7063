//! Bodies of forwarded requests and responses.

use std::{
    error::Error as StdError,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
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
use urr_kernel::Clock;

/// Longest pause between two pieces of a response. Event streams send something every 30 seconds.
const MAX_PAUSE: Duration = Duration::from_mins(1);

type Piece = Option<Result<Frame<Bytes>, axum::Error>>;

/// State of a request body. A broken or slow body is the client's fault, not the service's.
#[derive(Clone, Debug, Default)]
pub(super) struct Flaw(Arc<BodyState>);

#[derive(Debug, Default)]
struct BodyState {
    cause: OnceLock<Cause>,
    /// Whether the next piece was polled for and has not arrived.
    is_awaited: AtomicBool,
    /// When the last awaited piece arrived, in microseconds of ticks.
    fed: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
enum Cause {
    TooLarge,
    Broken,
    Slow,
}

impl Flaw {
    /// Whether the service waits for the client's body. A body that is not polled is not late.
    pub(super) fn is_awaited(&self) -> bool {
        self.0.is_awaited.load(Ordering::Relaxed)
    }

    /// When the client last kept the service waiting. From then on only the service is waited for.
    pub(super) fn fed(&self) -> Duration {
        Duration::from_micros(self.0.fed.load(Ordering::Relaxed))
    }

    /// Called when the time limit has passed: a body that is still awaited is too slow.
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
            Cause::Slow => Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "http.slow_body",
                "The body took too long to arrive.",
            ),
        })
    }
}

/// A request body that records how it failed and whether the client is slow.
pub(super) struct Watched {
    body: Body,
    flaw: Flaw,
    clock: Clock,
}

impl Watched {
    pub(super) fn new(body: Body, clock: Clock) -> (Self, Flaw) {
        let flaw = Flaw::default();
        (Self { body, flaw: flaw.clone(), clock }, flaw)
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Piece> {
        let piece = Pin::new(&mut self.body).poll_frame(cx);
        let was_awaited = self.flaw.0.is_awaited.swap(piece.is_pending(), Ordering::Relaxed);
        let piece = ready!(piece);
        if was_awaited {
            let now = u64::try_from(self.clock.ticks().as_micros()).unwrap_or(u64::MAX);
            self.flaw.0.fed.store(now, Ordering::Relaxed);
        }
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

/// A response body that fails when nothing arrives for too long.
pub(super) struct IdleTimeoutBody {
    body: Body,
    pause: Option<Pin<Box<Sleep>>>,
}

impl IdleTimeoutBody {
    pub(super) fn new(body: Body) -> Self {
        Self { body, pause: None }
    }
}

impl HttpBody for IdleTimeoutBody {
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
    async fn too_large_and_broken_bodies_have_different_errors() {
        let watched = |body| Watched::new(body, urr_testkit::fixed_clock());
        let (body, flaw) = watched(Body::new(Limited::new(Body::from("too much"), 3)));
        assert!(flaw.problem().is_none());
        body.collect().await.unwrap_err();
        assert_eq!(flaw.problem().unwrap().status, StatusCode::PAYLOAD_TOO_LARGE);

        let gone = futures_util::stream::iter([Ok("a"), Err(std::io::Error::other("gone"))]);
        let (body, flaw) = watched(Body::from_stream(gone));
        body.collect().await.unwrap_err();
        assert_eq!(flaw.problem().unwrap().status, StatusCode::BAD_REQUEST);

        let (body, flaw) = watched(Body::from("well"));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "well");
        assert!(flaw.problem().is_none());
    }

    #[tokio::test]
    async fn a_body_is_too_slow_only_if_it_was_polled() {
        let watched = |body| Watched::new(body, urr_testkit::fixed_clock());
        let stalls = || watched(Body::from_stream(futures_util::stream::pending::<std::io::Result<Bytes>>()));
        let (_unread, flaw) = stalls();
        flaw.time_is_over();
        assert!(flaw.problem().is_none(), "a service that does not read the body is at fault itself");

        let (mut body, flaw) = stalls();
        assert!(futures_util::poll!(body.frame()).is_pending());
        flaw.time_is_over();
        assert_eq!(flaw.problem().unwrap().status, StatusCode::REQUEST_TIMEOUT);

        let (body, flaw) = watched(Body::from("well"));
        body.collect().await.unwrap();
        flaw.time_is_over();
        assert!(flaw.problem().is_none());
    }

    #[tokio::test]
    async fn waiting_for_the_service_starts_when_the_body_is_complete() {
        let clock = urr_testkit::fixed_clock();
        let (send, rest) = tokio::sync::oneshot::channel::<&str>();
        let rest = futures_util::stream::once(async { rest.await.map_err(std::io::Error::other) });
        let (mut body, flaw) = Watched::new(Body::from_stream(rest), clock.clone());
        assert!(futures_util::poll!(body.frame()).is_pending());
        clock.advance(Duration::from_secs(7));
        let late = clock.ticks();
        send.send("late").unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        clock.advance(Duration::from_secs(7));
        assert!(body.frame().await.is_none());
        assert_eq!(flaw.fed(), late, "the end did not have to be waited for");
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_may_pause_but_not_stall() {
        let pauses = futures_util::stream::unfold(0, async |number| {
            tokio::time::sleep(if number < 3 { Duration::from_secs(59) } else { Duration::from_secs(61) })
                .await;
            Some((Ok::<_, std::io::Error>("x"), number + 1))
        });
        let mut body = IdleTimeoutBody::new(Body::from_stream(pauses));
        for _ in 0..3 {
            assert!(body.frame().await.unwrap().is_ok());
        }
        assert!(body.frame().await.unwrap().is_err());
    }
}
