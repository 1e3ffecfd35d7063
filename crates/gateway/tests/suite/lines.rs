//! Tier 1: which requests need a pass.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::json;
use urr_gateway::rooms::{OpenRoom, RoomSource, Rooms};
use urr_http::{EntryGuard, Json, LineSince, OnlyResume, Path, Problem, RoleRoutes, Routes};
use urr_kernel::{Clock, EventId, OrderKey, Role, Timestamp, VisitorId};
use urr_passes::{
    Secret,
    vwr_pass::{self, LIFETIME, Pass, key},
    vwr_ticket,
};
use uuid::Uuid;

use crate::sample::{QUEUE, TICKETS, policy};
use crate::world::{Options, World, request};

/// Header of a same-origin request.
pub(crate) const SAME_SITE: (&str, &str) = ("sec-fetch-site", "same-origin");

struct FakeRoomSource(Vec<OpenRoom>);

#[async_trait]
impl RoomSource for FakeRoomSource {
    async fn open(&self) -> Result<Vec<OpenRoom>, String> {
        Ok(self.0.clone())
    }
}

pub(crate) fn event(number: u128) -> EventId {
    EventId::from_uuid(Uuid::from_u128(number))
}

/// Rooms of events 1 and 3 are open, the one of event 2 is closed.
pub(crate) async fn rooms(clock: &Clock) -> Arc<Rooms> {
    let rooms = Arc::new(Rooms::new(clock.clone(), World::passes(), World::tier2_tokens(), false));
    let open = |number| OpenRoom { event: event(number), fail_open: false, opened_at: clock.now() };
    rooms.load(&FakeRoomSource(vec![open(1), open(3)])).await.unwrap();
    rooms
}

pub(crate) async fn world() -> World {
    let clock = urr_testkit::fixed_clock();
    let rooms = Some(rooms(&clock).await);
    World::with(Options { clock, rooms, local: behind(), ..Options::default() })
}

/// Routes that need a pass.
fn behind() -> Vec<(&'static RoleRoutes, Routes)> {
    let reserve = Routes::new().post(
        "/api/seats/reserve",
        policy("POST", "/api/seats/reserve"),
        async |guard: EntryGuard, Json(event): Json<EventId>| {
            guard.check(event).map(|()| Json(json!({"reserved": event})))
        },
    );
    let check = async |Path(event): Path<EventId>, since: LineSince, only: OnlyResume| {
        Ok::<_, Problem>(Json(json!({"event": event, "since": since.0, "onlyResume": only.0})))
    };
    let check = Routes::new().post("/api/queue/check/{id}", policy("POST", "/api/queue/check/{id}"), check);
    let reserve =
        reserve
            .get("/api/seats/events/{id}", policy("GET", "/api/seats/events/{id}"), async || Json(json!({})));
    vec![(&TICKETS, reserve), (&QUEUE, check)]
}

/// A pass from the room that was opened at this time.
fn pass(event: EventId, opened: Timestamp) -> Pass {
    let visitor = VisitorId::from_uuid(Uuid::from_u128(7));
    Pass { event, visitor, order: OrderKey::counted(opened, 42), position: 42 }
}

impl World {
    pub(crate) fn pass_cookie(&self, event: EventId) -> String {
        self.pass_cookie_of(event, self.clock.now())
    }

    /// A new pass from the room that was opened at this time.
    fn pass_cookie_of(&self, event: EventId, opened: Timestamp) -> String {
        let token = Self::passes().sign(&pass(event, opened), Uuid::from_u128(5), self.clock.now());
        format!("urr-vwr-token={token}")
    }

    async fn reserve(&self, wanted: EventId, cookie: &str) -> (u16, serde_json::Value) {
        let (status, _, body) = self.send(self.reservation(wanted, cookie)).await;
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn reserving(&self, wanted: EventId, cookie: &str) -> http::HeaderMap {
        self.send(self.reservation(wanted, cookie)).await.1
    }

    fn reservation(&self, wanted: EventId, cookie: &str) -> axum::extract::Request {
        let bearer = self.bearer(Role::User);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("cookie", cookie),
            SAME_SITE,
        ];
        let mut request = request("POST", "/api/seats/reserve", &headers);
        *request.body_mut() = serde_json::to_string(&wanted).unwrap().into();
        request
    }
}

#[tokio::test]
async fn requests_without_a_pass_are_sent_to_the_waiting_room() {
    let world = world().await;
    let bearer = world.bearer(Role::User);
    let (own, other) = (world.pass_cookie(event(1)), world.pass_cookie(event(2)));
    let signed_in = ("authorization", bearer.as_str());
    let one = event(1);
    for path in [format!("/api/queue/check/{one}"), format!("/api/v1/queue/check/{one}")] {
        for cookie in ["", "urr-vwr-token=rubbish", &other] {
            let (status, body) = world.ask("POST", &path, &[signed_in, ("cookie", cookie), SAME_SITE]).await;
            assert_eq!((status, &body["code"]), (403, &json!("vwr.pass_required")), "{path} {cookie}");
            assert_eq!(body["redirectTo"], format!("/vwr/{one}"));
        }
        let (status, body) = world.ask("POST", &path, &[signed_in, ("cookie", &own), SAME_SITE]).await;
        assert_eq!((status, &body["event"]), (200, &json!(one)));
    }
    let (status, _) = world.ask("POST", &format!("/api/queue/check/{}", event(2)), &[signed_in]).await;
    assert_eq!(status, 200, "this event has no open room");
}

#[tokio::test]
async fn a_page_redirects_to_the_waiting_room_and_back() {
    let world = world().await;
    let (one, two) = (event(1), event(2));
    for page in ["/events/{}/seats", "/events/{}/book", "/queue/{}"] {
        let page = |event: EventId| page.replace("{}", &event.to_string());
        let (status, headers, _) = world.send(request("GET", &page(one), &[])).await;
        assert_eq!(status, 302);
        assert_eq!(headers["location"].to_str().unwrap(), format!("/vwr/{one}?to={}", page(one)));
        let cookie = world.pass_cookie(one);
        assert_eq!(world.get(&page(one), &[("cookie", &cookie)]).await.0, 200);
        assert_eq!(world.get(&page(two), &[]).await.0, 200);
    }
    for free in [format!("/events/{one}"), format!("/api/events/{one}"), format!("/vwr/{one}")] {
        assert_eq!(world.get(&free, &[]).await.0, 200, "{free}");
    }
}

#[tokio::test]
async fn an_event_in_the_body_is_checked_by_the_handler() {
    let world = world().await;
    let (own, other) = (world.pass_cookie(event(1)), world.pass_cookie(event(2)));
    for cookie in ["", other.as_str()] {
        let (status, body) = world.reserve(event(1), cookie).await;
        assert_eq!((status, &body["code"]), (403, &json!("vwr.pass_required")), "{cookie}");
    }
    assert_eq!(world.reserve(event(1), &own).await.0, 200);
    assert_eq!(world.reserve(event(2), "").await.0, 200);
}

#[tokio::test]
async fn tokens_of_other_kinds_or_keys_are_not_passes() {
    let world = world().await;
    let bearer = world.bearer(Role::User);
    let foreign = Secret::new("another secret, which is nobody's key here").unwrap();
    let foreign = urr_passes::vwr_pass::Passes::new([key(&foreign)]).sign(
        &pass(event(1), world.clock.now()),
        Uuid::from_u128(5),
        world.clock.now(),
    );
    let secret = Secret::new("correct horse battery staple, twice").unwrap();
    let ticket = vwr_ticket::Tickets::new([vwr_ticket::key(&secret)]).sign(&vwr_ticket::Ticket {
        event: event(1),
        visitor: VisitorId::from_uuid(Uuid::from_u128(7)),
        position: 1,
        order: OrderKey::new(99).unwrap(),
        epoch: 1,
        issued: world.clock.now(),
    });
    let good = world.pass_cookie(event(1));
    let expired = good.clone();
    let rehearsal = world.clock.now().before(Duration::from_secs(1));
    let path = format!("/api/queue/check/{}", event(1));
    let cases = [
        ("an access token", format!("urr-vwr-token={}", world.token(Role::User))),
        ("a pass of another key", format!("urr-vwr-token={foreign}")),
        ("a ticket", format!("urr-vwr-token={ticket}")),
        ("two that differ", format!("{good}; urr-vwr-token=x")),
        ("a pass of an earlier opening", world.pass_cookie_of(event(1), rehearsal)),
    ];
    for (what, cookie) in &cases {
        let answer =
            world.ask("POST", &path, &[("authorization", &bearer), ("cookie", cookie), SAME_SITE]).await;
        assert_eq!((answer.0, &answer.1["code"]), (403, &json!("vwr.pass_required")), "{what}");
    }
    world.clock.advance(urr_passes::vwr_pass::LIFETIME);
    let bearer = world.bearer(Role::User);
    let answer =
        world.ask("POST", &path, &[("authorization", &bearer), ("cookie", &expired), SAME_SITE]).await;
    assert_eq!(answer.0, 403, "an expired pass");
}

/// Two dates of a tour, in two tabs of one browser.
#[tokio::test]
async fn passes_for_two_events_work_in_one_browser() {
    let world = world().await;
    let named = |of: EventId, named: EventId| {
        let cookie = world.pass_cookie(of);
        cookie.replacen("urr-vwr-token", &vwr_pass::cookie(named), 1)
    };
    let (one, three) = (event(1), event(3));
    let both = format!("{}; {}", named(one, one), named(three, three));
    for event in [one, three] {
        assert_eq!(world.get(&format!("/api/seats/events/{event}"), &[("cookie", &both)]).await.0, 200);
        assert_eq!(world.reserve(event, &both).await.0, 200);
        assert_eq!(
            world.reserve(event, &named(one, three)).await.0,
            403,
            "the cookie name of another event grants nothing"
        );
    }
    // A purchase uses the pass of its event, and only that one is renewed.
    world.clock.advance(LIFETIME / 2 + Duration::from_secs(1));
    for (event, other) in [(one, three), (three, one)] {
        let cookies = world.reserving(event, &both).await;
        let cookies: Vec<_> =
            cookies.get_all("set-cookie").iter().map(|line| line.to_str().unwrap()).collect();
        let [renewed] = cookies[..] else { panic!("{cookies:?}") };
        assert!(renewed.starts_with(&vwr_pass::cookie(event)), "{renewed}");
        assert!(!renewed.contains(&vwr_pass::cookie(other)), "{renewed}");
    }
}

#[tokio::test]
async fn a_pass_of_an_earlier_opening_is_rejected() {
    let world = world().await;
    let one = event(1);
    let rehearsed = world.pass_cookie_of(one, world.clock.now().before(Duration::from_hours(1)));
    assert_eq!(world.reserve(one, &rehearsed).await.0, 403);
    assert_eq!(world.get(&format!("/api/seats/events/{one}"), &[("cookie", &rehearsed)]).await.0, 403);
    assert_eq!(world.get(&format!("/queue/{one}"), &[("cookie", &rehearsed)]).await.0, 302);
    // Tier 2 receives the time of opening, so that it ignores places from before.
    let bearer = world.bearer(Role::User);
    let own = world.pass_cookie(one);
    let headers = [("authorization", bearer.as_str()), ("cookie", &own), SAME_SITE];
    for (event, since) in [(one, Some(world.clock.now())), (event(2), None)] {
        let (_, body) = world.ask("POST", &format!("/api/queue/check/{event}"), &headers).await;
        assert_eq!(body["since"], json!(since));
        assert_eq!(
            body["onlyResume"],
            json!(since.is_some()),
            "while Tier 1 is open, Tier 2 only resumes existing places"
        );
    }
}
