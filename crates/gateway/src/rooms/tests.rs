//! Access while a room is open, and the renewal of passes.

use urr_kernel::{OrderKey, VisitorId};
use urr_passes::{Secret, entry, queue_ticket};
use uuid::Uuid;

use super::*;

struct FakeRoomSource(Result<Vec<OpenRoom>, String>);

#[async_trait]
impl RoomSource for FakeRoomSource {
    async fn open(&self) -> Result<Vec<OpenRoom>, String> {
        self.0.clone()
    }
}

fn event(number: u128) -> EventId {
    EventId::from_uuid(Uuid::from_u128(number))
}

fn secret() -> Secret {
    Secret::new("a secret for tests, of more than 32 bytes").unwrap()
}

fn passes() -> Passes {
    Passes::new([vwr_pass::key(&secret())])
}

fn tier2_tokens() -> Tier2Tokens {
    let entries = entry::Entries::new([entry::key(&secret())]);
    Tier2Tokens::new(entries, queue_ticket::Tickets::new([queue_ticket::key(&secret())]))
}

fn code<T>(outcome: Result<T, Problem>) -> Option<String> {
    outcome.err().map(|problem| problem.code.into_owned())
}

#[tokio::test]
async fn an_open_room_requires_a_pass_for_its_event() {
    let clock = urr_testkit::fixed_clock();
    let rooms = Arc::new(Rooms::new(clock.clone(), passes(), tier2_tokens(), true));
    assert_eq!(code(rooms.check(event(1), None)).as_deref(), Some("http.unavailable"));
    assert!(rooms.loaded().check().await.is_err());
    let closed = OpenRoom { event: event(1), fail_open: false, opened_at: clock.now() };
    let open = OpenRoom { event: event(2), fail_open: true, ..closed };
    rooms.load(&FakeRoomSource(Ok(vec![closed, open]))).await.unwrap();
    assert!(rooms.loaded().check().await.is_ok());

    let pass = vwr_pass::Pass {
        event: event(1),
        visitor: VisitorId::from_uuid(Uuid::from_u128(7)),
        order: OrderKey::at(clock.now()),
        position: 1,
    };
    let token = passes().sign(&pass, Uuid::from_u128(9), clock.now());
    let mut headers = HeaderMap::new();
    headers.insert(header::COOKIE, format!("x=1; urr-vwr-token={token}").parse().unwrap());
    let held = rooms.pass(event(1), &headers).unwrap();
    // A pass from an earlier opening, which ended a microsecond before this one began; not yet
    // expired.
    let before = OrderKey::at(clock.now().before(Duration::from_micros(1)));
    let rehearsed = Verified { pass: vwr_pass::Pass { order: before, ..pass }, ..held };
    let cases = [
        (1, None, true),
        (1, Some(&held), false),
        (1, Some(&rehearsed), true),
        (2, Some(&held), true),
        (3, None, false),
        (3, Some(&rehearsed), false),
    ];
    for (number, pass, refused) in cases {
        let outcome = code(rooms.check(event(number), pass));
        assert_eq!(outcome.as_deref(), refused.then_some("vwr.pass_required"), "{number}");
    }
    headers.append(header::COOKIE, "urr-vwr-token=another".parse().unwrap());
    assert_eq!(rooms.pass(event(1), &headers), None, "two different passes count as none");

    assert!(rooms.load(&FakeRoomSource(Err("away".to_owned()))).await.is_err());
    clock.advance(STALE + PERIOD);
    assert!(rooms.check(event(1), None).is_err(), "the last known rooms stay in effect");
    assert!(matches!(rooms.check(event(2), None), Ok(PassReason::NoLine)), "a fail-open room admits all");
    assert!(matches!(rooms.check(event(1), Some(&held)), Ok(PassReason::Token)));
    clock.advance(vwr_pass::LIFETIME);
    headers.remove(header::COOKIE);
    headers.insert(header::COOKIE, format!("urr-vwr-token={token}").parse().unwrap());
    assert_eq!(rooms.pass(event(1), &headers), None, "an expired pass is rejected");
}

#[tokio::test]
async fn passes_of_active_visitors_are_renewed() {
    let clock = urr_testkit::fixed_clock();
    let rooms = Arc::new(Rooms::new(clock.clone(), passes(), tier2_tokens(), true));
    let room = OpenRoom { event: event(1), fail_open: false, opened_at: clock.now() };
    rooms.load(&FakeRoomSource(Ok(vec![room]))).await.unwrap();
    let pass = vwr_pass::Pass {
        event: event(1),
        visitor: VisitorId::from_uuid(Uuid::from_u128(7)),
        order: OrderKey::at(clock.now()),
        position: 1,
    };
    let first = passes().verify(&passes().sign(&pass, Uuid::from_u128(9), clock.now()), clock.now()).unwrap();
    let pass_since = first.since;
    assert_eq!(rooms.renewal(&first), None, "a new pass is not renewed");
    clock.advance(LIFETIME / 2 + Duration::from_secs(1));
    let line = rooms.renewal(&first).unwrap();
    let line = line.to_str().unwrap();
    assert!(line.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"), "{line}");
    let token = line.split_once('=').unwrap().1.split_once(';').unwrap().0;
    let renewed = passes().verify(token, clock.now()).unwrap();
    assert_eq!((renewed.pass, renewed.id, renewed.expires), (pass, first.id, clock.now().after(LIFETIME)));

    let cookies = |name: header::HeaderName, value: &str| {
        let answer = Response::builder().header(name, value).body(axum::body::Body::empty()).unwrap();
        let pass_use = PassUse { rooms: Arc::clone(&rooms), used: Arc::new(OnceLock::from(first)) };
        pass_use.renewed(answer).headers().get_all(header::SET_COOKIE).iter().count()
    };
    assert_eq!(cookies(header::CACHE_CONTROL, "no-cache"), 1);
    let shared = cookies(header::CACHE_CONTROL, "public, max-age=1");
    assert_eq!(shared, 0, "cacheable responses must not contain a pass");
    let forgotten = format!("{}=; Max-Age=0", vwr_pass::cookie(event(1)));
    assert_eq!(cookies(header::SET_COOKIE, &forgotten), 1, "a deleted pass must not be renewed");
    assert_eq!(cookies(header::SET_COOKIE, "another=1"), 2);

    // No longer than a queue ticket of the same wait would be valid.
    let late = |hours: u64| {
        let now = pass_since.after(Duration::from_hours(hours));
        let old = passes().sign_since(pass_since, &pass, first.id, now.before(LIFETIME / 2));
        passes().renew(&passes().verify(&old, now).unwrap(), pass_since, now.after(Duration::from_secs(1)))
    };
    assert!(late(23).is_some_and(|token| {
        let now = pass_since.after(Duration::from_hours(23));
        passes().verify(&token, now.after(Duration::from_secs(1))).unwrap().since == first.since
    }));
    assert_eq!(late(24), None, "Tier 2 deletes its record of used passes by then");

    let reopened = OpenRoom { opened_at: clock.now(), ..room };
    rooms.load(&FakeRoomSource(Ok(vec![reopened]))).await.unwrap();
    assert_eq!(rooms.renewal(&first), None, "the pass is from another opening");
    rooms.load(&FakeRoomSource(Ok(Vec::new()))).await.unwrap();
    assert_eq!(rooms.renewal(&first), None, "the room is closed");
}
