//! Buying requires a slot: accepted and rejected tokens, and calls to the waiting room.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::body::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use urr_gateway::slots::{SlotSource, Slots};
use urr_http::{EntryGuard, Json, Problem, Routes};
use urr_kernel::{Clock, EventId, Role, UserId};
use urr_passes::{
    Secret, access, entry,
    entry::{Entries, Entry},
    queue_ticket,
    queue_ticket::{Ticket, Tickets},
};
use uuid::Uuid;

use crate::sample::{TICKETS, policy};
use crate::world::{Options, World, request, session, user};

const MINUTE: Duration = Duration::from_mins(1);

/// A fake waiting room with some slots.
#[derive(Default)]
struct Room {
    open: Mutex<HashSet<Uuid>>,
    asked: AtomicUsize,
    down: AtomicBool,
}

#[async_trait]
impl SlotSource for Room {
    async fn is_open(&self, entry: &Entry) -> Result<bool, String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.down.load(Ordering::Relaxed) {
            return Err("down".to_owned());
        }
        Ok(self.open.lock().unwrap().contains(&entry.slot))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BuyRequest {
    event_id: EventId,
}

/// As tickets does: compares the event of the slot with the one of the seats.
async fn buy(guard: EntryGuard, Json(request): Json<BuyRequest>) -> Result<Json<Value>, Problem> {
    guard.check(request.event_id)?;
    Ok(Json(json!({})))
}

struct Sale {
    world: World,
    room: Arc<Room>,
    clock: Clock,
}

fn secret() -> Secret {
    Secret::new("correct horse battery staple, twice").unwrap()
}

fn event() -> EventId {
    EventId::from_uuid(Uuid::from_u128(11))
}

impl Sale {
    fn new() -> Self {
        let (clock, room) = (urr_testkit::fixed_clock(), Arc::new(Room::default()));
        let entries = Entries::new([entry::key(&secret())]);
        let slots = Slots::new(entries, Arc::clone(&room) as Arc<dyn SlotSource>, clock.clone());
        let routes = Routes::new()
            .post("/api/seats/reserve", policy("POST", "/api/seats/reserve"), buy)
            .post("/api/reservations", policy("POST", "/api/reservations"), buy);
        let options = Options {
            clock: clock.clone(),
            slots: Some(Arc::new(slots)),
            local: vec![(&TICKETS, routes)],
            ..Options::default()
        };
        Self { world: World::with(options), room, clock }
    }

    fn entry(&self) -> Entry {
        Entry {
            event: event(),
            user: user(),
            slot: Uuid::from_u128(12),
            expires: self.clock.now().after(MINUTE),
        }
    }

    fn sign(&self, entry: &Entry) -> String {
        Entries::new([entry::key(&secret())]).sign(entry, Uuid::from_u128(13), self.clock.now())
    }

    async fn buy(&self, path: &str, event: EventId, headers: &[(&str, &str)]) -> (u16, Value) {
        let bearer = self.world.bearer(Role::User);
        let mut all = vec![
            ("authorization", &*bearer),
            ("content-type", "application/json"),
            ("host", "urr.example"),
            ("origin", "https://urr.example"),
        ];
        all.extend_from_slice(headers);
        let mut request = request("POST", path, &all);
        *request.body_mut() = Body::from(json!({ "eventId": event }).to_string());
        let (status, _, body) = self.world.send(request).await;
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn with_header(&self, token: &str) -> (u16, Value) {
        self.buy("/api/seats/reserve", event(), &[("x-queue-entry-token", token)]).await
    }
}

#[tokio::test]
async fn an_admitted_user_buys_with_a_header_or_a_cookie() {
    let sale = Sale::new();
    sale.room.open.lock().unwrap().insert(sale.entry().slot);
    let token = sale.sign(&sale.entry());
    let (good, bad) = (format!("urr-entry-token={token}"), "urr-entry-token=nonsense");
    for path in ["/api/seats/reserve", "/api/reservations", "/api/v1/seats/reserve"] {
        assert_eq!(sale.buy(path, event(), &[("x-queue-entry-token", &token)]).await.0, 200, "{path}");
        assert_eq!(sale.buy(path, event(), &[("cookie", &good)]).await.0, 200, "{path}");
        let both = [("cookie", bad), ("x-queue-entry-token", &*token)];
        assert_eq!(
            sale.buy(path, event(), &both).await.0,
            200,
            "the header takes precedence over the cookie"
        );
    }
}

#[tokio::test]
async fn every_other_token_is_rejected_with_a_reason() {
    let sale = Sale::new();
    sale.room.open.lock().unwrap().insert(sale.entry().slot);
    let (good, now) = (sale.entry(), sale.clock.now());
    let signed = sale.sign(&good);
    let strange = Secret::new("somebody else's secret of enough bytes").unwrap();
    let forged = Entries::new([entry::key(&strange)]).sign(&good, Uuid::nil(), now);
    let old = Entries::new([entry::key(&secret())]).sign(&good, Uuid::nil(), now.before(60 * MINUTE));
    let other_user = UserId::from_uuid(Uuid::from_u128(99));
    let other_event = EventId::from_uuid(Uuid::from_u128(98));
    let order = urr_kernel::OrderKey::at(now);
    let ticket = Ticket { event: event(), user: user(), order, epoch: 1, issued: now };
    let ticket = Tickets::new([queue_ticket::key(&secret())]).sign(&ticket);
    let wrong_key = Entries::new([access::key(&secret())]).sign(&good, Uuid::nil(), now);
    let access = sale.world.token_of(user(), Role::User, session());
    for (name, token, reason) in [
        ("none", String::new(), "missing"),
        ("nonsense", "nonsense".to_owned(), "invalid"),
        ("a position", "1".to_owned(), "invalid"),
        ("forged", forged, "invalid"),
        ("signed with the key of access tokens", wrong_key, "invalid"),
        ("changed", signed.replace('.', ".e"), "invalid"),
        ("unsigned", signed.rsplit_once('.').unwrap().0.to_owned() + ".", "invalid"),
        ("of an hour ago", old, "expired"),
        ("an access token", access, "invalid"),
        ("a place in line", ticket, "invalid"),
        ("of somebody else", sale.sign(&Entry { user: other_user, ..good }), "other_user"),
        ("of another event", sale.sign(&Entry { event: other_event, ..good }), "other_event"),
        ("of a slot that is over", sale.sign(&Entry { slot: Uuid::from_u128(97), ..good }), "slot_over"),
    ] {
        let (status, body) = sale.with_header(&token).await;
        assert_eq!((status, &body["code"]), (403, &json!("queue.entry_required")), "{name}: {body}");
        assert_eq!(
            (&body["error"], &body["redirectTo"]),
            (&json!("Queue entry token required"), &json!("/queue"))
        );
        assert_eq!(body["reason"], json!(reason), "{name}");
    }
    let twice = [("cookie", "urr-entry-token=a; urr-entry-token=b")];
    assert_eq!(sale.buy("/api/seats/reserve", event(), &twice).await.1["reason"], json!("invalid"));
    assert_eq!(sale.buy("/api/seats/reserve", event(), &[]).await.1["reason"], json!("missing"));
    let (status, body) =
        sale.world.ask("POST", "/api/seats/reserve", &[("x-queue-entry-token", &signed)]).await;
    assert_eq!((status, &body["code"]), (401, &json!("auth.required")), "sign-in is checked first");
}

#[tokio::test]
async fn replies_are_cached_for_a_second_and_an_ended_slot_is_then_rejected() {
    let sale = Sale::new();
    let asked = || sale.room.asked.load(Ordering::Relaxed);
    sale.room.open.lock().unwrap().insert(sale.entry().slot);
    let token = sale.sign(&sale.entry());
    for _ in 0..5 {
        assert_eq!(sale.with_header(&token).await.0, 200);
    }
    assert_eq!(asked(), 1);
    sale.room.open.lock().unwrap().clear();
    assert_eq!(sale.with_header(&token).await.0, 200, "the reply is cached for a second");
    sale.clock.advance(Duration::from_secs(1));
    for times in [2, 3] {
        assert_eq!(sale.with_header(&token).await.1["reason"], json!("slot_over"));
        assert_eq!(asked(), times, "a negative reply is never cached");
    }
    sale.room.open.lock().unwrap().insert(sale.entry().slot);
    assert_eq!(sale.with_header(&token).await.0, 200);
}

#[tokio::test]
async fn buying_is_rejected_while_the_waiting_room_is_down_and_recovers() {
    let sale = Sale::new();
    sale.room.open.lock().unwrap().insert(sale.entry().slot);
    let token = sale.sign(&sale.entry());
    sale.room.down.store(true, Ordering::Relaxed);
    let (status, body) = sale.with_header(&token).await;
    assert_eq!((status, &body["code"], &body["service"]), (503, &json!("http.unavailable"), &json!("queue")));
    assert!(body["retryAfter"].is_u64());
    sale.room.down.store(false, Ordering::Relaxed);
    assert_eq!(sale.with_header(&token).await.0, 200);
}
