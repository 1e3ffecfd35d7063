//! Tokens of Tier 2 that replace a Tier 1 pass, and tokens that must not.

use std::time::Duration;

use serde_json::{Value, json};
use urr_kernel::{EventId, OrderKey, Role, Timestamp, UserId};
use urr_passes::{
    Secret,
    entry::{self, Entries, Entry},
    queue_ticket::{self, Ticket, Tickets},
};
use urr_testkit::within;
use uuid::Uuid;

use crate::sample::{QUEUE, SITE, TICKETS};
use crate::{
    lines::{SAME_SITE, event, rooms, world},
    world::{Options, PATIENCE, World, request, session, user},
};

const HOUR: Duration = Duration::from_hours(1);

fn somebody_else() -> UserId {
    UserId::from_uuid(Uuid::from_u128(77))
}

fn entry(event: EventId, user: UserId, expires: Timestamp) -> Entry {
    Entry { event, user, slot: Uuid::from_u128(12), expires }
}

/// What a request carries instead of a pass.
#[derive(Clone)]
enum PassSubstitute {
    Nothing,
    Header(String),
    Cookie(String),
}

impl PassSubstitute {
    fn header(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Nothing => None,
            Self::Header(token) => Some(("x-queue-entry-token", token)),
            Self::Cookie(line) => Some(("cookie", line)),
        }
    }
}

impl World {
    /// An entry token issued that long ago.
    fn entry(&self, event: EventId, user: UserId, ago: Duration) -> String {
        let then = self.clock.now().before(ago);
        Self::entries().sign(&entry(event, user, then.after(HOUR)), Uuid::from_u128(13), then)
    }

    /// A queue ticket issued that long ago, before or after Tier 1 was opened.
    fn ticket(&self, event: EventId, user: UserId, ago: Duration) -> String {
        let issued = self.clock.now().before(ago);
        Self::tickets().sign(&Ticket { event, user, order: OrderKey::at(issued), epoch: 1, issued })
    }

    /// Requests every route that needs a pass, with the given token or anonymously. Returns the
    /// responses.
    async fn knock(
        &self,
        wanted: EventId,
        bearer: Option<&str>,
        substitute: &PassSubstitute,
    ) -> Vec<(u16, Value)> {
        let mut headers = vec![SAME_SITE, ("content-type", "application/json")];
        headers.extend(bearer.map(|bearer| ("authorization", bearer)));
        headers.extend(substitute.header());
        let mut answers = Vec::new();
        for (method, path) in [
            ("POST", format!("/api/queue/check/{wanted}")),
            ("GET", format!("/api/seats/events/{wanted}")),
            ("POST", "/api/seats/reserve".to_owned()),
            ("GET", format!("/queue/{wanted}")),
            ("GET", format!("/events/{wanted}/seats")),
            ("GET", format!("/events/{wanted}/book")),
        ] {
            let mut request = request(method, &path, &headers);
            if path.ends_with("reserve") {
                *request.body_mut() = serde_json::to_string(&wanted).unwrap().into();
            }
            let (status, headers, body) = self.send(request).await;
            let to = headers.get("location").map(|to| to.to_str().unwrap().to_owned());
            let said = serde_json::from_slice::<Value>(&body).unwrap_or_default();
            answers.push((status, to.map_or_else(|| said["code"].clone(), Value::from)));
        }
        answers
    }
}

fn let_on() -> Vec<(u16, Value)> {
    vec![(200, Value::Null); 6]
}

fn sent_to_wait(event: EventId) -> Vec<(u16, Value)> {
    let refused = (403, json!("vwr.pass_required"));
    let page = |path: String| (302, json!(format!("/vwr/{event}?to={path}")));
    let pages =
        [format!("/queue/{event}"), format!("/events/{event}/seats"), format!("/events/{event}/book")];
    [refused.clone(), refused.clone(), refused].into_iter().chain(pages.map(page)).collect()
}

/// Every token that might replace a pass, and whether it does.
fn cases(world: &World) -> Vec<(&'static str, PassSubstitute, bool)> {
    let (one, three, own, other) = (event(1), event(3), user(), somebody_else());
    let now = world.clock.now();
    let foreign = Secret::new("another secret, which is nobody's key here").unwrap();
    let forged_entry =
        Entries::new([entry::key(&foreign)]).sign(&entry(one, own, now.after(HOUR)), Uuid::nil(), now);
    let place = Ticket { event: one, user: own, order: OrderKey::at(now), epoch: 1, issued: now };
    let forged_ticket = Tickets::new([queue_ticket::key(&foreign)]).sign(&place);
    let over = World::entries().sign(&entry(one, own, now), Uuid::nil(), now.before(HOUR / 60));
    let (soon, day) = (Duration::from_secs(1), queue_ticket::LIFETIME);
    let (header, kept) =
        (PassSubstitute::Header, |token: String| PassSubstitute::Cookie(format!("urr-entry-token={token}")));
    let ticket = |token: String| PassSubstitute::Cookie(format!("urr-queue-ticket={token}"));
    let good = world.entry(one, own, soon);
    vec![
        ("nothing", PassSubstitute::Nothing, false),
        ("an entry token", header(good.clone()), true),
        ("an entry token in a cookie", kept(good.clone()), true),
        (
            "one beside that of another event",
            kept(format!("{}; urr-entry-token={good}", world.entry(three, own, soon))),
            true,
        ),
        ("an entry token of another user", header(world.entry(one, other, soon)), false),
        ("one of another user in a cookie", kept(world.entry(one, other, soon)), false),
        ("an entry token of another event", header(world.entry(three, own, soon)), false),
        ("one of another event in a cookie", kept(world.entry(three, own, soon)), false),
        ("an entry token of an hour ago", header(world.entry(one, own, HOUR)), false),
        ("an entry token whose slot has ended by now", kept(over), false),
        ("an entry token of another key", header(forged_entry), false),
        ("a ticket from before the line was opened", ticket(world.ticket(one, own, HOUR)), true),
        (
            "a ticket from after the opening, with an expired pass",
            ticket(world.ticket(one, own, Duration::ZERO)),
            true,
        ),
        ("a ticket of another user", ticket(world.ticket(one, other, HOUR)), false),
        ("a ticket of another event", ticket(world.ticket(three, own, HOUR)), false),
        ("a ticket of yesterday", ticket(world.ticket(one, own, day)), false),
        ("a ticket of another key", ticket(forged_ticket), false),
        (
            "two tickets that differ",
            ticket(format!("{}; urr-queue-ticket=x", world.ticket(one, own, HOUR))),
            false,
        ),
        ("a ticket as an entry token", header(world.ticket(one, own, HOUR)), false),
        ("an entry token as a ticket", ticket(good.clone()), false),
        ("an entry token as a pass", PassSubstitute::Cookie(format!("urr-vwr-token={good}")), false),
        (
            "a ticket as a pass",
            PassSubstitute::Cookie(format!("urr-vwr-token={}", world.ticket(one, own, HOUR))),
            false,
        ),
    ]
}

#[tokio::test]
async fn only_a_tier_2_place_replaces_a_pass() {
    let world = world().await;
    let bearer = world.bearer(Role::User);
    for (what, substitute, passes) in cases(&world) {
        let expected = if passes { let_on() } else { sent_to_wait(event(1)) };
        assert_eq!(world.knock(event(1), Some(&bearer), &substitute).await, expected, "{what}");
    }
}

#[tokio::test]
async fn a_closed_room_requires_nothing() {
    let world = world().await;
    let bearer = world.bearer(Role::User);
    for (what, substitute, _) in cases(&world) {
        assert_eq!(world.knock(event(2), Some(&bearer), &substitute).await, let_on(), "{what}");
    }
}

#[tokio::test]
async fn an_anonymous_caller_with_a_place_is_sent_to_sign_in() {
    let world = world().await;
    let one = event(1);
    for (what, substitute, passes) in cases(&world) {
        // An anonymous caller is not another user: whether the place is theirs is decided after
        // sign-in.
        let is_somebodys = passes || what.contains("of another user");
        let answers = world.knock(one, None, &substitute).await;
        let [check, map, reserve, pages @ ..] = &answers[..] else { panic!("{answers:?}") };
        let signed_out = (401, json!("auth.required"));
        assert_eq!((check, reserve), (&signed_out, &signed_out), "{what}");
        assert_eq!(*map, (403, json!("vwr.pass_required")), "{what}");
        let to = if is_somebodys { "/login?next=".to_owned() } else { format!("/vwr/{one}?to=") };
        for (status, said) in pages {
            assert!(*status == 302 && said.as_str().unwrap().starts_with(&to), "{what}: {said}");
        }
    }
    let (status, headers, _) = world
        .send(request(
            "GET",
            &format!("/queue/{one}"),
            &[("cookie", &format!("urr-queue-ticket={}", world.ticket(one, user(), HOUR)))],
        ))
        .await;
    assert_eq!((status, headers["location"].to_str().unwrap()), (302, &*format!("/login?next=/queue/{one}")));
}

/// Tier 2 gives callers the place of their tokens, and no new one.
#[tokio::test]
async fn tier_2_is_informed_that_tier_1_is_open() {
    let world = world().await;
    let (one, bearer) = (event(1), world.bearer(Role::User));
    let (pass, ticket) = (world.pass_cookie(one), world.ticket(one, user(), HOUR));
    let place = format!("urr-queue-ticket={ticket}");
    let both = format!("{pass}; {place}");
    for (wanted, cookie, only) in
        [(one, &place, true), (one, &pass, true), (one, &both, true), (event(2), &place, false)]
    {
        let headers = [("authorization", bearer.as_str()), ("cookie", cookie), SAME_SITE];
        let (status, body) = world.ask("POST", &format!("/api/queue/check/{wanted}"), &headers).await;
        assert_eq!((status, &body["onlyResume"]), (200, &json!(only)), "{cookie}");
    }
    let path = format!("/api/queue/check/{one}");
    let other = format!("Bearer {}", world.token_of(somebody_else(), Role::User, session()));
    let headers = [("authorization", other.as_str()), ("cookie", &place), SAME_SITE];
    assert_eq!(world.ask("POST", &path, &headers).await.0, 403, "a copied ticket is rejected");
}

#[tokio::test]
async fn a_gateway_in_front_makes_the_same_decisions() {
    within(PATIENCE, async {
        let inner = world().await;
        let served = inner.serve().await;
        let clock = inner.clock.clone();
        let elsewhere = [&TICKETS, &QUEUE, &SITE];
        let remote = elsewhere.map(|service| (service, vec![served.address])).to_vec();
        let rooms = Some(rooms(&clock).await);
        let outer = World::with(Options { clock, rooms, remote, ..Options::default() });
        let bearer = outer.bearer(Role::User);
        for (what, substitute, passes) in cases(&outer) {
            let expected = if passes { let_on() } else { sent_to_wait(event(1)) };
            assert_eq!(outer.knock(event(1), Some(&bearer), &substitute).await, expected, "{what}");
        }
    })
    .await;
}
