//! Endless streams, local and remote: no time limit applies, and they end with the session or the
//! process.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, routing::get};
use http_body_util::BodyExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use urr_gateway::revoked::{Revocation, Revoked};
use urr_http::{Limits, Routes};
use urr_kernel::Role;
use urr_passes::access::LIFETIME;
use urr_telemetry::Health;
use urr_testkit::{until, within};

use crate::sample::{self, QUEUE};
use crate::{
    sessions::Nobody,
    world::{Options, PATIENCE, Served, World, request, session},
};

const LIVE: &str = "/api/queue/admin/live/{id}";
const PATH: &str = "/api/queue/admin/live/0190a1f0-4b7e-7c3d-9f00-5a1c2b3d4e5f";

/// Sends something ten times a second and never ends.
async fn endless() -> Body {
    Body::from_stream(futures_util::stream::unfold((), async |()| {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Some((Ok::<_, std::io::Error>("data: 1\n\n"), ()))
    }))
}

struct Watching {
    world: World,
    revoked: Arc<Revoked>,
    health: Health,
    _there: Option<Served>,
    _news: JoinSet<()>,
}

/// A gateway with the stream behind it, in this process or in another one.
async fn watching(elsewhere: bool) -> Watching {
    let clock = urr_testkit::fixed_clock();
    let (revoked, health) = (Arc::new(Revoked::new(clock.clone(), LIFETIME)), Health::new());
    let mut news = JoinSet::new();
    news.spawn(revoked.clone().watch(Arc::new(Nobody::default()), CancellationToken::new()));
    until(PATIENCE, async || revoked.is_fresh()).await;
    let mut options =
        Options { clock, revoked: Some(revoked.clone()), health: health.clone(), ..Options::default() };
    let mut there = None;
    if elsewhere {
        let served = Served::start(Router::new().route(LIVE, get(endless)), Limits::default()).await;
        options.remote = vec![(&QUEUE, vec![served.address])];
        options.time_limit = Some(Duration::from_millis(500));
        there = Some(served);
    } else {
        options.local = vec![(&QUEUE, Routes::new().get(LIVE, sample::policy("GET", LIVE), endless))];
    }
    Watching { world: World::with(options), revoked, health, _there: there, _news: news }
}

impl Watching {
    async fn listen(&self) -> Body {
        let admin = self.world.bearer(Role::Admin);
        let asked = request("GET", PATH, &[("authorization", &admin)]);
        let answer = self.world.app.clone().oneshot(asked).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body()
    }
}

/// Reads to the end, with a time limit.
async fn ends(mut body: Body) {
    within(Duration::from_secs(10), async { while body.frame().await.is_some() {} }).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_outlasts_the_time_limit_of_its_route() {
    let mut body = watching(false).await.listen().await;
    let limit = QUEUE.time_limit.as_millis();
    for _ in 0..limit / 50 {
        assert!(body.frame().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_remote_stream_outlasts_the_time_limit_of_its_service() {
    let watching = watching(true).await;
    let mut body = watching.listen().await;
    for _ in 0..15 {
        assert!(within(PATIENCE, body.frame()).await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_session() {
    for elsewhere in [false, true] {
        let watching = watching(elsewhere).await;
        let mut body = watching.listen().await;
        assert!(body.frame().await.unwrap().is_ok());
        let until = watching.world.clock.now().after(LIFETIME);
        watching.revoked.add(&[Revocation { session: session(), until }]);
        ends(body).await;
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_token_or_the_process() {
    let watching = watching(false).await;
    let body = watching.listen().await;
    watching.world.clock.advance(LIFETIME);
    ends(body).await;

    // The clock does not move from here on, so the list stays fresh.
    until(PATIENCE, async || watching.revoked.is_fresh()).await;
    let body = watching.listen().await;
    watching.health.drain();
    ends(body).await;
}

#[tokio::test]
async fn only_operators_can_open_the_stream() {
    let watching = watching(false).await;
    for (role, status) in [(None, 401), (Some(Role::User), 403)] {
        let bearer = role.map(|role| watching.world.bearer(role)).unwrap_or_default();
        let headers = [("authorization", bearer.as_str())];
        let headers = if role.is_some() { &headers[..] } else { &[] };
        assert_eq!(watching.world.get(PATH, headers).await.0, status);
    }
}
