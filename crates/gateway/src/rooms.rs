//! Which events have a line in front of everything, and who has waited in it.
//!
//! Whoever wants to buy for such an event shows a Tier 1 pass, or that they have a place behind the line ([`places`](crate::places)).
//! Every gateway knows the open rooms from a copy that it makes anew
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
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use urr_http::{Doorkeeper, Line, LineSince, OnlyResume, Problem, bad_path, cookie};
use urr_kernel::{Actor, Clock, EventId, Timestamp};
use urr_passes::vwr_pass::{self, LIFETIME, Pass, Passes, Verified};
use urr_telemetry::Check;

use crate::{codes, places::Places, slots, table::Route};

/// The message users see while a waiting room does not answer.
pub(crate) const AWAY: &str = "The waiting room does not answer right now. You keep your place in line.";

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
    places: Places,
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
    pub fn new(clock: Clock, passes: Passes, places: Places, secure: bool) -> Self {
        Self { clock, passes, places, secure, known: RwLock::default() }
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
        if route.policy.line == Line::No {
            return Ok(None);
        }
        let turn = Turn { rooms: Arc::clone(self), used: Arc::default() };
        let actor = request.extensions().get().copied().unwrap_or(Actor::Anonymous);
        if route.policy.line == Line::Body {
            let (asked, headers) = (turn.clone(), proofs(request.headers()));
            Doorkeeper::add(request.extensions_mut(), move |event| {
                asked.take(event, actor, &headers).map(drop)
            });
            return Ok(Some(turn));
        }
        // What cannot be read here is not handed on: whoever answers might read an event in it.
        let event = route.event(request.uri().path());
        let event = event.ok_or_else(|| bad_path("The path names no event.").into_response())?;
        request.extensions_mut().insert(LineSince(self.opened_at(event)));
        match turn.take(event, actor, request.headers()) {
            Ok(by) => {
                request.extensions_mut().insert(OnlyResume(by != By::NoLine));
                Ok(Some(turn))
            }
            Err(problem) if route.policy.line == Line::Page && is_refused(&problem) => {
                let page = self.elsewhere(event, actor, request);
                let page = HeaderValue::try_from(page).map_err(|_| problem.into_response())?;
                Err((StatusCode::FOUND, [(header::LOCATION, page)]).into_response())
            }
            Err(problem) => Err(problem.into_response()),
        }
    }

    /// Where a page is to be had that somebody may not see yet. Access tokens are shorter than some waits: whoever has a place and does
    /// not say who they are signs in, and is not sent to the end of another line.
    fn elsewhere(&self, event: EventId, actor: Actor, request: &Request) -> String {
        let path = request.uri().path();
        let mut owners = self.places.owners(event, request.headers(), self.clock.now());
        if actor.user().is_none() && owners.next().is_some() {
            format!("/login?next={path}")
        } else {
            format!("/vwr/{event}?to={path}")
        }
    }

    /// Whether whoever asks has a place behind the line.
    fn has_place(&self, event: EventId, actor: Actor, headers: &HeaderMap) -> bool {
        let mut owners = self.places.owners(event, headers, self.clock.now());
        actor.user().is_some_and(|user| owners.any(|owner| owner == user))
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

    /// Whether whoever has this pass may go on to an event, and by what.
    fn check(&self, event: EventId, pass: Option<&Verified>) -> Result<By, Problem> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(heard) = known.heard else {
            return Err(Problem::of(codes::UNAVAILABLE, AWAY).retry_after(PERIOD).field("service", "vwr"));
        };
        let is_stale = || self.clock.ticks().saturating_sub(heard) > STALE;
        match known.rooms.get(&event) {
            None => Ok(By::NoLine),
            Some(room) if room.fail_open && is_stale() => Ok(By::NoLine),
            Some(room) if pass.is_some_and(|held| room.takes(&held.pass)) => Ok(By::Token),
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

/// What leads somebody past a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Nobody has to wait, or nobody can say who is next and the room lets everybody on meanwhile.
    NoLine,
    /// A pass, or a token of the place that they have behind it.
    Token,
}

impl Turn {
    /// Whether whoever sends this may go on to an event. What stands in for a pass is looked at when there is none.
    fn take(&self, event: EventId, actor: Actor, headers: &HeaderMap) -> Result<By, Problem> {
        let pass = self.rooms.pass(event, headers);
        match self.rooms.check(event, pass.as_ref()) {
            Ok(by) => {
                if let Some(pass) = pass {
                    let _only_the_first = self.used.set(pass);
                }
                Ok(by)
            }
            Err(problem) if is_refused(&problem) && self.rooms.has_place(event, actor, headers) => {
                Ok(By::Token)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Gives a browser its renewed pass, unless others may get to see the same answer, or it makes the browser forget that turn.
    pub(crate) fn renewed(&self, mut answer: Response) -> Response {
        let Some(used) = self.used.get() else { return answer };
        let Some(renewal) = self.rooms.renewal(used) else { return answer };
        let name = vwr_pass::cookie(used.pass.event);
        let is_of_turn = |line: &HeaderValue| line.as_bytes().starts_with(name.as_bytes());
        let is_told = answer.headers().get_all(header::SET_COOKIE).iter().any(is_of_turn);
        let is_shared = answer
            .headers()
            .get(header::CACHE_CONTROL)
            .is_some_and(|said| said.to_str().is_ok_and(|said| said.contains("public")));
        if !is_shared && !is_told {
            answer.headers_mut().append(header::SET_COOKIE, renewal);
        }
        answer
    }
}

/// Whether somebody has to wait, and not just until it is known who has to.
fn is_refused(problem: &Problem) -> bool {
    problem.status == StatusCode::FORBIDDEN
}

/// What somebody shows to get past a line, alone.
fn proofs(headers: &HeaderMap) -> HeaderMap {
    let entry = HeaderName::from_static(slots::HEADER);
    let named =
        |name: HeaderName| headers.get_all(&name).iter().map(move |line| (name.clone(), line.clone()));
    [header::COOKIE, entry].into_iter().flat_map(named).collect()
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
mod tests;
