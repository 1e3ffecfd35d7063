//! The guard of Tier 1 with the real `vwr` service.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
};
use serde_json::{Value, json};
use urr_contracts::vwr::{GiveOrder, Order};
use urr_http::{Json, Line, PUBLIC, Problem, Routes};
use urr_jobs::Tasks;
use urr_kernel::{Actor, EventId};
use urr_passes::Secret;

use super::*;

struct World {
    vwr: Arc<urr_vwr::Service>,
    source: AskVwr,
    rooms: Arc<Rooms>,
    gateway: axum::Router,
    _files: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let (files, db) = urr_testkit::fresh_sqlite(&urr_vwr::DOMAIN).await;
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let secret = Secret::new("a secret for tests, of more than 32 bytes").unwrap();
        let vwr = urr_vwr::build(urr_vwr::Parts {
            counters: urr_vwr::Counters::memory(db.clone(), clock.clone()),
            db: Some(db),
            clock: clock.clone(),
            ids: ids.clone(),
            secrets: vec![secret.clone()],
            tasks: Tasks::new(),
            secure_cookies: false,
        });
        let tickets = queue_ticket::Tickets::new([queue_ticket::key(&secret)]);
        let tier2_tokens = Tier2Tokens::new(Entries::new([entry::key(&secret)]), tickets);
        let passes = Passes::new([vwr_pass::key(&secret)]);
        let rooms = Arc::new(Rooms::new(clock.clone(), passes, tier2_tokens, false));
        let guards = Guards { rooms: Some(Arc::clone(&rooms)), ..plain_guards(&secret, &clock) };
        let seats = Routes::new().get("/api/seats/events/{id}", PUBLIC.after_line(Line::Path), async || {
            Ok::<_, Problem>(Json(json!("seats")))
        });
        let gateway = urr_http::router(Gateway::new(guards).local(&urr_tickets::ROLE, seats).finish());
        let source = AskVwr { vwr: Arc::clone(&vwr) as Arc<dyn Vwr>, clock, ids };
        Self { vwr, source, rooms, gateway, _files: files }
    }

    /// Sends a request without a pass. Returns status and error code.
    async fn knock(&self, event: EventId) -> (u16, Value) {
        let path = format!("/api/seats/events/{event}");
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        request.extensions_mut().insert(urr_http::Peer("198.51.100.1:4711".parse().unwrap()));
        let answer = tower::ServiceExt::oneshot(self.gateway.clone(), request).await.unwrap();
        let status = answer.status().as_u16();
        let body: Value =
            serde_json::from_slice(&to_bytes(answer.into_body(), 10_000).await.unwrap()).unwrap();
        (status, body["code"].clone())
    }
}

#[tokio::test]
async fn requests_get_503_until_tier_one_has_read_its_store() {
    let world = World::new().await;
    let (event, free): (EventId, EventId) = (world.source.ids.next(), world.source.ids.next());
    // An operator opened the room before a restart; this process has not read its store yet.
    let admin = Actor::User { id: world.source.ids.next(), role: urr_kernel::Role::Admin };
    let ctx = Ctx::new(world.source.ids.next(), admin, world.source.clock.clone(), Duration::from_secs(10));
    let order = GiveOrder { event, order: Order::Activate { rate: Some(0), fail_open: Some(true) } };
    world.vwr.order(&ctx, order).await.unwrap();
    let away = (503, json!("http.unavailable"));
    for _ in 0..2 {
        assert_eq!(world.knock(event).await, away);
        assert_eq!(world.knock(free).await, away, "also for events without a room, which is not known yet");
        assert!(world.rooms.load(&world.source).await.is_err(), "Tier 1 fails until it has read its store");
    }
    world.vwr.refresh().await.unwrap();
    world.rooms.load(&world.source).await.unwrap();
    assert_eq!(world.knock(event).await, (403, json!("vwr.pass_required")));
    assert_eq!(world.knock(free).await.0, 200);
}
