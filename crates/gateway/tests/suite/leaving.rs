//! Clients that disconnect before the response, and what that means for a replica.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    routing::{any, get},
};
use tokio::task::JoinSet;
use tower::ServiceExt as _;
use urr_testkit::within;

use crate::sample::CATALOG;
use crate::{
    proxy::{backend, in_front_of},
    world::{PATIENCE, World, request},
};

/// Ten clients wait for a response that does not come, and disconnect after `waited`.
async fn ten_leave_after(
    world: &World,
    asked: &AtomicUsize,
    waited: Duration,
    meanwhile: impl AsyncFnOnce(),
) {
    let before = asked.load(Ordering::Relaxed);
    world.clock.advance(Duration::from_millis(1));
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        let app = world.app.clone();
        clients.spawn(async move { app.oneshot(request("GET", "/api/events", &[])).await });
    }
    urr_testkit::until(PATIENCE, async || asked.load(Ordering::Relaxed) == before + 10).await;
    world.clock.advance(Duration::from_millis(1));
    meanwhile().await;
    world.clock.advance(waited);
    clients.shutdown().await;
    // A replica that just failed is avoided; wait until that is over.
    world.clock.advance(Duration::from_secs(2));
}

#[tokio::test]
async fn disconnects_take_out_a_hung_replica_but_not_a_responding_one() {
    within(PATIENCE, async {
        let asked = Arc::new(AtomicUsize::new(0));
        let hang = {
            let asked = Arc::clone(&asked);
            async move || -> () {
                asked.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }
        };
        let router = Router::new().route("/api/events", get(hang)).fallback(any(async || "here"));
        let backend = backend(router).await;
        let world = in_front_of(&CATALOG, &[backend.address]);
        let answers = async || world.get("/api/artists", &[]).await.0;
        let third = CATALOG.time_limit / 3;

        ten_leave_after(&world, &asked, third.saturating_sub(Duration::from_secs(1)), async || {}).await;
        assert_eq!(answers().await, 200, "early disconnects must not count against a replica");
        ten_leave_after(&world, &asked, third, async || assert_eq!(answers().await, 200)).await;
        assert_eq!(answers().await, 200, "it responded to other requests meanwhile");
        ten_leave_after(&world, &asked, third, async || {}).await;
        assert_eq!(answers().await, 503, "it responded to no request");
        world.clock.advance(Duration::from_secs(10));
        assert_eq!(answers().await, 200, "a trial");
    })
    .await;
}
