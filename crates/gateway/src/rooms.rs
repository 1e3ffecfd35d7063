//! Open Tier 1 rooms, and the check of Tier 1 passes.
//!
//! Requests for an event with an open room need a Tier 1 pass, or a token of a position or slot in
//! Tier 2 ([`tier2_tokens`](crate::tier2_tokens)). Every gateway polls the open rooms several times
//! a second, so no request reads a store.

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
use urr_http::{Line, LineSince, OnlyResume, PassCheck, Problem, bad_path, cookie};
use urr_kernel::{Actor, Clock, EventId, Timestamp};
use urr_passes::vwr_pass::{self, LIFETIME, Pass, Passes, Verified};
use urr_telemetry::Check;

use crate::{codes, slots, table::Route, tier2_tokens::Tier2Tokens};

/// The message users see while a waiting room does not answer.
pub(crate) const AWAY: &str = "The waiting room does not answer right now. You keep your place in line.";

/// Poll interval. Two polls fit into the second within which an opened room must take effect;
/// replies may be half a second old.
const PERIOD: Duration = Duration::from_millis(300);

/// Timeout of a poll: a new attempt is better than a late reply.
const PATIENCE: Duration = Duration::from_secs(2);

/// Age of the list above which rooms with `fail_open` admit all visitors.
const STALE: Duration = Duration::from_secs(5);

/// An open room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRoom {
    /// Event of the room.
    pub event: EventId,
    /// Whether all visitors are admitted while the state of the room is unknown.
    pub fail_open: bool,
    /// Time of opening.
    pub opened_at: Timestamp,
}

impl OpenRoom {
    /// Whether a pass was issued by this opening of the room.
    fn takes(&self, pass: &Pass) -> bool {
        pass.event == self.event && pass.is_of_line(self.opened_at)
    }
}

/// Source of open rooms.
#[async_trait]
pub trait RoomSource: Send + Sync {
    /// Returns all open rooms.
    async fn open(&self) -> Result<Vec<OpenRoom>, String>;
}

/// The open rooms, and the verifier of passes.
#[derive(Debug)]
pub struct Rooms {
    clock: Clock,
    passes: Passes,
    tier2_tokens: Tier2Tokens,
    /// Whether cookies are `Secure`.
    secure: bool,
    known: RwLock<RoomList>,
}

#[derive(Debug, Default)]
struct RoomList {
    rooms: HashMap<EventId, OpenRoom>,
    /// Time of the last reply; `None` if there was none.
    heard: Option<Duration>,
}

impl Rooms {
    /// Creates an empty list. `secure` makes cookies `Secure`.
    pub fn new(clock: Clock, passes: Passes, tier2_tokens: Tier2Tokens, secure: bool) -> Self {
        Self { clock, passes, tier2_tokens, secure, known: RwLock::default() }
    }

    /// Polls once.
    pub async fn load(&self, source: &dyn RoomSource) -> Result<(), String> {
        let rooms = match timeout(PATIENCE, source.open()).await {
            Ok(rooms) => rooms?,
            Err(_) => return Err(format!("no answer within {PATIENCE:?}")),
        };
        let rooms = rooms.into_iter().map(|room| (room.event, room)).collect();
        let known = RoomList { rooms, heard: Some(self.clock.ticks()) };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// Polls until the process stops.
    pub async fn watch(self: Arc<Self>, source: Arc<dyn RoomSource>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(cause) = self.load(&*source).await {
                tracing::debug!(
                    cause,
                    "cannot reach vwr: the list of open waiting rooms is stale; \
                     fail-open rooms admit all visitors after 5 s"
                );
            }
            tokio::select! {
                () = sleep(PERIOD) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Readiness check: fails until the rooms were read once. Before that it is unknown which
    /// events have a line.
    pub fn loaded(self: &Arc<Self>) -> Arc<dyn Check> {
        Arc::new(Loaded(Arc::clone(self)))
    }

    /// Sends callers without a pass to the waiting room.
    #[expect(clippy::result_large_err, reason = "the error response is rare and moved once")]
    pub(crate) fn wait_in_line(
        self: &Arc<Self>,
        route: &Route,
        request: &mut Request,
    ) -> Result<Option<PassUse>, Response> {
        if route.policy.line == Line::No {
            return Ok(None);
        }
        let pass_use = PassUse { rooms: Arc::clone(self), used: Arc::default() };
        let actor = request.extensions().get().copied().unwrap_or(Actor::Anonymous);
        if route.policy.line == Line::Body {
            let (asked, headers) = (pass_use.clone(), proofs(request.headers()));
            let check: PassCheck = Arc::new(move |event| asked.take(event, actor, &headers).map(drop));
            request.extensions_mut().insert(check);
            return Ok(Some(pass_use));
        }
        // An event id that cannot be parsed here is rejected: the handler might parse it
        // differently.
        let event = route.event(request.uri().path());
        let event = event.ok_or_else(|| bad_path("The path names no event.").into_response())?;
        request.extensions_mut().insert(LineSince(self.opened_at(event)));
        match pass_use.take(event, actor, request.headers()) {
            Ok(by) => {
                request.extensions_mut().insert(OnlyResume(by != PassReason::NoLine));
                Ok(Some(pass_use))
            }
            Err(problem) if route.policy.line == Line::Page && is_refused(&problem) => {
                let page = self.elsewhere(event, actor, request);
                let page = HeaderValue::try_from(page).map_err(|_| problem.into_response())?;
                Err((StatusCode::FOUND, [(header::LOCATION, page)]).into_response())
            }
            Err(problem) => Err(problem.into_response()),
        }
    }

    /// Returns where to redirect a page request that may not pass yet. Access tokens expire sooner
    /// than some waits: a caller with a position or slot but no valid token is sent to sign in, not
    /// to the end of the line.
    fn elsewhere(&self, event: EventId, actor: Actor, request: &Request) -> String {
        let path = request.uri().path();
        let mut owners = self.tier2_tokens.owners(event, request.headers(), self.clock.now());
        if actor.user().is_none() && owners.next().is_some() {
            format!("/login?next={path}")
        } else {
            format!("/vwr/{event}?to={path}")
        }
    }

    /// Whether the caller has a token of a position or slot in Tier 2.
    fn has_tier2_token(&self, event: EventId, actor: Actor, headers: &HeaderMap) -> bool {
        let mut owners = self.tier2_tokens.owners(event, headers, self.clock.now());
        actor.user().is_some_and(|user| owners.any(|owner| owner == user))
    }

    /// Returns the pass of a request for an event, if it is valid.
    fn pass(&self, event: EventId, headers: &HeaderMap) -> Option<Verified> {
        let token = cookie(headers, &vwr_pass::cookie(event)).or_else(|| cookie(headers, vwr_pass::COOKIE));
        self.passes.verify(token?, self.clock.now()).ok()
    }

    /// Returns the cookie that renews an ageing pass, so that active visitors are not sent back to
    /// the line.
    fn renewal(&self, held: &Verified) -> Option<HeaderValue> {
        let opened = self.opened_at(held.pass.event)?;
        let token = self.passes.renew(held, opened, self.clock.now())?;
        let secure = if self.secure { "; Secure" } else { "" };
        let (name, age) = (vwr_pass::cookie(held.pass.event), LIFETIME.as_secs());
        let text = format!("{name}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        let mut value =
            HeaderValue::try_from(text).expect("a cookie of printable ASCII is a valid header value");
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns when the room of an event was opened, if it is open.
    fn opened_at(&self, event: EventId) -> Option<Timestamp> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.rooms.get(&event).map(|room| room.opened_at)
    }

    /// Whether a caller with this pass may proceed to an event, and why.
    fn check(&self, event: EventId, pass: Option<&Verified>) -> Result<PassReason, Problem> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(heard) = known.heard else {
            return Err(Problem::of(urr_http::codes::UNAVAILABLE, AWAY)
                .retry_after(PERIOD)
                .field("service", "vwr"));
        };
        let is_stale = || self.clock.ticks().saturating_sub(heard) > STALE;
        match known.rooms.get(&event) {
            None => Ok(PassReason::NoLine),
            Some(room) if room.fail_open && is_stale() => Ok(PassReason::NoLine),
            Some(room) if pass.is_some_and(|held| room.takes(&held.pass)) => Ok(PassReason::Token),
            Some(_) => Err(Problem::of(codes::PASS_REQUIRED, "Please wait in line first.")
                .field("redirectTo", format!("/vwr/{event}"))),
        }
    }
}

/// A caller who may pass the line, with the pass to renew once the event is known.
#[derive(Clone, Debug)]
pub(crate) struct PassUse {
    rooms: Arc<Rooms>,
    used: Arc<OnceLock<Verified>>,
}

/// Why a caller may pass the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassReason {
    /// The event has no line, or its room fails open.
    NoLine,
    /// A pass, or a token of a position or slot in Tier 2.
    Token,
}

impl PassUse {
    /// Whether the caller may proceed to an event. Other tokens are checked only without a valid
    /// pass.
    fn take(&self, event: EventId, actor: Actor, headers: &HeaderMap) -> Result<PassReason, Problem> {
        let pass = self.rooms.pass(event, headers);
        match self.rooms.check(event, pass.as_ref()) {
            Ok(by) => {
                if let Some(pass) = pass {
                    let _only_the_first = self.used.set(pass);
                }
                Ok(by)
            }
            Err(problem) if is_refused(&problem) && self.rooms.has_tier2_token(event, actor, headers) => {
                Ok(PassReason::Token)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Adds the renewed pass to a response, unless the response is cacheable by others or deletes
    /// the pass.
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

/// Whether the caller has to wait in line; `false` if the state of the room is just unknown.
fn is_refused(problem: &Problem) -> bool {
    problem.status == StatusCode::FORBIDDEN
}

/// Copies only the headers that carry passes and tokens.
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
        known.heard.map(drop).ok_or_else(|| "the list of open waiting rooms has not been read yet".to_owned())
    }
}

#[cfg(test)]
mod tests;
