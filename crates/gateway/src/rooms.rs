//! Which events have a line in front of everything, and who has waited in it.
//!
//! Whoever wants to buy for such an event shows a Tier 1 pass. Every gateway knows the open rooms from a copy that it makes anew
//! several times a second, so no request reads a store.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use urr_http::{Doorkeeper, LineSince, Problem, bad_path, cookie};
use urr_kernel::{Clock, EventId, Timestamp};
use urr_passes::vwr_pass::{self, LIFETIME, Pass, Passes, Verified};
use urr_telemetry::Check;

use crate::{
    codes,
    table::{Line, Route, Service},
};

/// Two questions fit into the second within which a room must be known everywhere; whoever answers may be half a second behind.
const PERIOD: Duration = Duration::from_millis(300);

/// A quicker next question is worth more than a late answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Without news for longer than this, a room that fails open stands open.
const STALE: Duration = Duration::from_secs(5);

/// A room in which people wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRoom {
    /// In front of which event.
    pub event: EventId,
    /// Whether nobody has to wait while nobody can say who is next.
    pub fail_open: bool,
    /// Since when people wait in it.
    pub opened_at: Timestamp,
}

impl OpenRoom {
    /// Whether a pass was given to somebody who has waited in it since it was opened.
    fn takes(&self, pass: &Pass) -> bool {
        pass.event == self.event && pass.is_of_line(self.opened_at)
    }
}

/// Whoever knows which rooms are open.
#[async_trait]
pub trait RoomSource: Send + Sync {
    /// All of them.
    async fn open(&self) -> Result<Vec<OpenRoom>, String>;
}

/// The rooms that are open, and the passes that lead past them.
#[derive(Debug)]
pub struct Rooms {
    clock: Clock,
    passes: Passes,
    /// Whether cookies go over HTTPS alone.
    secure: bool,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    rooms: HashMap<EventId, OpenRoom>,
    /// When news came last; `None`: never.
    heard: Option<Duration>,
}

impl Rooms {
    /// Knows of none yet. `secure`: whether cookies go over HTTPS alone.
    pub fn new(clock: Clock, passes: Passes, secure: bool) -> Self {
        Self { clock, passes, secure, known: RwLock::default() }
    }

    /// Asks once.
    pub async fn load(&self, source: &dyn RoomSource) -> Result<(), String> {
        let rooms = match timeout(PATIENCE, source.open()).await {
            Ok(rooms) => rooms?,
            Err(_) => return Err(format!("no answer within {PATIENCE:?}")),
        };
        let rooms = rooms.into_iter().map(|room| (room.event, room)).collect();
        let known = Known { rooms, heard: Some(self.clock.ticks()) };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// Asks again and again until the process stops.
    pub async fn watch(self: Arc<Self>, source: Arc<dyn RoomSource>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(cause) = self.load(&*source).await {
                tracing::debug!(cause, "nobody says which waiting rooms are open");
            }
            tokio::select! {
                () = sleep(PERIOD) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Fails until the rooms have been told once: before, nobody knows who has to wait.
    pub fn loaded(self: &Arc<Self>) -> Arc<dyn Check> {
        Arc::new(Loaded(Arc::clone(self)))
    }

    /// Sends whoever has not waited to where one waits.
    #[expect(clippy::result_large_err, reason = "an answer is made for a few and moved once")]
    pub(crate) fn wait_in_line(
        self: &Arc<Self>,
        route: &Route,
        request: &mut Request,
    ) -> Result<Option<Turn>, Response> {
        if route.line == Line::No {
            return Ok(None);
        }
        let turn = Turn { rooms: Arc::clone(self), used: Arc::default() };
        if route.line == Line::Body {
            let (asked, headers) = (turn.clone(), cookies(request.headers()));
            Doorkeeper::add(request.extensions_mut(), move |event| asked.take(event, &headers));
            return Ok(Some(turn));
        }
        // What cannot be read here is not handed on: whoever answers might read an event in it.
        let event = route.event(request.uri().path());
        let event = event.ok_or_else(|| bad_path("The path names no event.").into_response())?;
        request.extensions_mut().insert(LineSince(self.opened_at(event)));
        match turn.take(event, request.headers()) {
            Err(problem) if route.line == Line::Page && problem.status == StatusCode::FORBIDDEN => {
                let page = format!("/vwr/{event}?to={}", request.uri().path());
                let page = HeaderValue::try_from(page).map_err(|_| problem.into_response())?;
                Err((StatusCode::FOUND, [(header::LOCATION, page)]).into_response())
            }
            outcome => outcome.map(|()| Some(turn)).map_err(Problem::into_response),
        }
    }

    /// The pass of a request for an event, if it has a good one.
    fn pass(&self, event: EventId, headers: &HeaderMap) -> Option<Verified> {
        let token = cookie(headers, &vwr_pass::cookie(event)).or_else(|| cookie(headers, vwr_pass::COOKIE));
        self.passes.verify(token?, self.clock.now()).ok()
    }

    /// The cookie for whoever uses a pass that grows old: people who are inside and busy are not sent out to wait again.
    fn renewal(&self, held: &Verified) -> Option<HeaderValue> {
        let opened = self.opened_at(held.pass.event)?;
        let token = self.passes.renew(held, opened, self.clock.now())?;
        let secure = if self.secure { "; Secure" } else { "" };
        let (name, age) = (vwr_pass::cookie(held.pass.event), LIFETIME.as_secs());
        let text = format!("{name}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        let mut value = HeaderValue::try_from(text).expect("tokens are printable ASCII");
        value.set_sensitive(true);
        Some(value)
    }

    /// Since when people wait in front of an event, if they do.
    fn opened_at(&self, event: EventId) -> Option<Timestamp> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.rooms.get(&event).map(|room| room.opened_at)
    }

    /// Whether whoever has this pass may go on to an event.
    fn check(&self, event: EventId, pass: Option<&Verified>) -> Result<(), Problem> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(heard) = known.heard else {
            return Err(Problem::of(codes::UNAVAILABLE, Service::Vwr.is_away())
                .retry_after(PERIOD)
                .field("service", Service::Vwr.name()));
        };
        let is_stale = || self.clock.ticks().saturating_sub(heard) > STALE;
        match known.rooms.get(&event) {
            None => Ok(()),
            Some(room) if pass.is_some_and(|held| room.takes(&held.pass)) => Ok(()),
            Some(room) if room.fail_open && is_stale() => Ok(()),
            Some(_) => Err(Problem::of(codes::PASS_REQUIRED, "Please wait in line first.")
                .field("redirectTo", format!("/vwr/{event}"))),
        }
    }
}

/// Somebody's way past a line: with the pass that they use, once it is known for which event.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    rooms: Arc<Rooms>,
    used: Arc<OnceLock<Verified>>,
}

impl Turn {
    /// Whether whoever has these cookies may go on to an event.
    fn take(&self, event: EventId, headers: &HeaderMap) -> Result<(), Problem> {
        let pass = self.rooms.pass(event, headers);
        self.rooms.check(event, pass.as_ref())?;
        if let Some(pass) = pass {
            let _only_the_first = self.used.set(pass);
        }
        Ok(())
    }

    /// Gives a browser its renewed pass, unless others may get to see the same answer.
    pub(crate) fn renewed(&self, mut answer: Response) -> Response {
        let Some(renewal) = self.used.get().and_then(|used| self.rooms.renewal(used)) else { return answer };
        let is_shared = answer
            .headers()
            .get(header::CACHE_CONTROL)
            .is_some_and(|said| said.to_str().is_ok_and(|said| said.contains("public")));
        if !is_shared {
            answer.headers_mut().append(header::SET_COOKIE, renewal);
        }
        answer
    }
}

/// The cookies of a request alone.
fn cookies(headers: &HeaderMap) -> HeaderMap {
    headers.get_all(header::COOKIE).iter().map(|line| (header::COOKIE, line.clone())).collect()
}

struct Loaded(Arc<Rooms>);

#[async_trait]
impl Check for Loaded {
    async fn check(&self) -> Result<(), String> {
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        known.heard.map(drop).ok_or_else(|| "nobody has said yet which waiting rooms are open".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::{OrderKey, VisitorId};
    use urr_passes::Secret;
    use uuid::Uuid;

    use super::*;

    struct Told(Result<Vec<OpenRoom>, String>);

    #[async_trait]
    impl RoomSource for Told {
        async fn open(&self) -> Result<Vec<OpenRoom>, String> {
            self.0.clone()
        }
    }

    fn event(number: u128) -> EventId {
        EventId::from_uuid(Uuid::from_u128(number))
    }

    fn passes() -> Passes {
        Passes::new([vwr_pass::key(&Secret::new("a secret for tests, of more than 32 bytes").unwrap())])
    }

    fn code(outcome: Result<(), Problem>) -> Option<String> {
        outcome.err().map(|problem| problem.code.into_owned())
    }

    #[tokio::test]
    async fn an_open_room_wants_a_pass_of_its_own_event() {
        let clock = urr_testkit::fixed_clock();
        let rooms = Arc::new(Rooms::new(clock.clone(), passes(), true));
        assert_eq!(code(rooms.check(event(1), None)).as_deref(), Some("gateway.unavailable"));
        assert!(rooms.loaded().check().await.is_err());
        let closed = OpenRoom { event: event(1), fail_open: false, opened_at: clock.now() };
        let open = OpenRoom { event: event(2), fail_open: true, ..closed };
        rooms.load(&Told(Ok(vec![closed, open]))).await.unwrap();
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
        // Of a rehearsal that ended a microsecond before the line was opened, and as good as new.
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
        assert_eq!(rooms.pass(event(1), &headers), None, "two are none");

        assert!(rooms.load(&Told(Err("away".to_owned()))).await.is_err());
        clock.advance(STALE + PERIOD);
        assert!(rooms.check(event(1), None).is_err(), "what was known stays true");
        assert!(rooms.check(event(2), None).is_ok(), "unless the room fails open");
        clock.advance(vwr_pass::LIFETIME);
        headers.remove(header::COOKIE);
        headers.insert(header::COOKIE, format!("urr-vwr-token={token}").parse().unwrap());
        assert_eq!(rooms.pass(event(1), &headers), None, "a pass that has expired is none");
    }

    #[tokio::test]
    async fn whoever_is_inside_and_busy_stays_inside() {
        let clock = urr_testkit::fixed_clock();
        let rooms = Arc::new(Rooms::new(clock.clone(), passes(), true));
        let room = OpenRoom { event: event(1), fail_open: false, opened_at: clock.now() };
        rooms.load(&Told(Ok(vec![room]))).await.unwrap();
        let pass = vwr_pass::Pass {
            event: event(1),
            visitor: VisitorId::from_uuid(Uuid::from_u128(7)),
            order: OrderKey::at(clock.now()),
            position: 1,
        };
        let first =
            passes().verify(&passes().sign(&pass, Uuid::from_u128(9), clock.now()), clock.now()).unwrap();
        assert_eq!(rooms.renewal(&first), None, "it is as good as new");
        clock.advance(LIFETIME / 2 + Duration::from_secs(1));
        let line = rooms.renewal(&first).unwrap();
        let line = line.to_str().unwrap();
        assert!(line.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"), "{line}");
        let token = line.split_once('=').unwrap().1.split_once(';').unwrap().0;
        let renewed = passes().verify(token, clock.now()).unwrap();
        assert_eq!(
            (renewed.pass, renewed.id, renewed.expires),
            (pass, first.id, clock.now().after(LIFETIME))
        );

        let answer = |cached: &'static str| {
            let answer = Response::builder()
                .header(header::CACHE_CONTROL, cached)
                .body(axum::body::Body::empty())
                .unwrap();
            let turn = Turn { rooms: Arc::clone(&rooms), used: Arc::new(OnceLock::from(first)) };
            turn.renewed(answer).headers().contains_key(header::SET_COOKIE)
        };
        assert!(
            answer("no-cache") && !answer("public, max-age=1"),
            "what others may see carries nobody's pass"
        );

        let reopened = OpenRoom { opened_at: clock.now(), ..room };
        rooms.load(&Told(Ok(vec![reopened]))).await.unwrap();
        assert_eq!(rooms.renewal(&first), None, "that was another line");
        rooms.load(&Told(Ok(Vec::new()))).await.unwrap();
        assert_eq!(rooms.renewal(&first), None, "nobody has to wait");
    }
}
