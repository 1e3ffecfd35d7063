//! Passes requests on to a role that runs elsewhere, and its answers back. Bodies are streamed both ways.
//!
//! The other side is the public listener of that role, with a gateway of its own: it gets the caller's token and verifies it
//! itself. It believes one thing only, because it is signed: where the client is, and that the request was counted.

mod body;
mod headers;
mod replicas;

use std::{pin::pin, time::Duration};

use axum::{
    body::{Body, HttpBody as _},
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{Method, StatusCode, request::Parts, uri::PathAndQuery};
use tokio::time::timeout;
use urr_http::{BadTarget, Client, ClientAddress, PipeError, Problem, RoleRoutes};
use urr_kernel::Clock;
use urr_passes::hop::Signer;

use self::{
    body::{Flaw, Steady, Watched},
    replicas::{Replica, Replicas, Turn},
};
use crate::{codes, compress::Passed};

/// When a service whose connection was refused, or that is busy, is worth another try: replicas restart within seconds.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A replica is judged by somebody who waited for it in vain once it alone was waited for this part of the time limit: 10 of 30
/// seconds, so that people who leave a hung replica early are heard too. One that is well answers within it. A request that may be
/// repeated waits no longer than that for a replica that answers nobody, and is then sent to another.
const JUDGED_AFTER: u32 = 3;

/// A role that runs elsewhere.
#[derive(Debug)]
pub struct Upstream {
    role: &'static RoleRoutes,
    replicas: Replicas,
    clock: Clock,
    signer: Signer,
    time_limit: Duration,
}

impl Upstream {
    /// The replicas of a role, by the base URLs of their public listeners. Requests are marked by `signer`.
    pub fn new<'u>(
        role: &'static RoleRoutes,
        urls: impl IntoIterator<Item = &'u str>,
        client: &Client,
        clock: Clock,
        signer: Signer,
    ) -> Result<Self, BadTarget> {
        let replicas = Replicas::new(role, urls, client)?;
        Ok(Self { role, replicas, clock, signer, time_limit: role.time_limit })
    }

    /// How long an answer may take to begin, if not the role's own limit.
    pub fn within(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Which role.
    pub fn role(&self) -> &'static RoleRoutes {
        self.role
    }

    pub(crate) fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// The answer of one of the replicas, or why there is none.
    pub(crate) async fn pass(&self, mut request: Request) -> Response {
        let mark = self.signer.sign(ClientAddress::of(request.extensions()).0, self.clock.now());
        if let Err(problem) = headers::outbound(&mut request, &mark) {
            return problem.into_response();
        }
        self.answer(request).await.unwrap_or_else(Problem::into_response)
    }

    /// Asks one replica after the other, each once, until one got something of the request: whatever may have been read there is sent
    /// to nobody else, unless it only reads.
    async fn answer(&self, request: Request) -> Result<Response, Problem> {
        let is_safe = is_safe(&request);
        let (parts, body) = request.into_parts();
        let spare = (is_safe && self.replicas.are_several()).then(|| parts.clone());
        let (body, flaw) = Watched::new(body, self.clock.clone());
        let mut request = Request::from_parts(parts, Body::new(body));
        let started = self.clock.ticks();
        let (mut tried, mut last) = (Vec::new(), None);
        loop {
            let now = self.clock.ticks();
            let left = self.time_limit.saturating_sub(now.saturating_sub(started));
            if let Some(failure) = last.as_ref().filter(|_| left.is_zero()) {
                return Err(self.problem(failure));
            }
            let turn = match (self.replicas.choose(now, &tried), &last) {
                (Ok(turn), _) => turn,
                (Err(_wait), Some(failure)) => return Err(self.problem(failure)),
                (Err(wait), None) => return Err(self.is_away(wait)),
            };
            let mut failure = match self.attempt(&turn, request, (left, is_safe), &flaw).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            if let Some(problem) = flaw.problem() {
                return Err(problem);
            }
            request = failure.next_request(spare.as_ref()).ok_or_else(|| self.problem(&failure))?;
            tried.push(turn.replica);
            last = Some(failure);
        }
    }

    /// One try on one replica, from start to the head of the answer.
    async fn attempt(
        &self,
        turn: &Turn<'_>,
        request: Request,
        (left, is_safe): (Duration, bool),
        flaw: &Flaw,
    ) -> Result<Response, Failure> {
        let replica = turn.replica;
        let path = request.uri().path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let started = self.clock.ticks();
        let mut wait = Wait { upstream: self, replica, flaw, started, is_judged: false, is_over: false };
        let mut answer = pin!(replica.pipe.send(path, request));
        let judged_after = left.min(self.time_limit / JUDGED_AFTER);
        let mut outcome = timeout(judged_after, answer.as_mut()).await;
        // A replica that answers nobody is judged now, so that others need not wait for it. What changes something waits on: it may
        // have been done, and is not sent to another.
        let mut is_given_up = false;
        if outcome.is_err() {
            is_given_up = wait.is_in_vain() && is_safe;
            if !is_given_up {
                outcome = timeout(left.saturating_sub(judged_after), answer.as_mut()).await;
            }
        }
        let failure = match outcome {
            Ok(Ok(answer)) => {
                if is_shut(&answer) {
                    wait.turned_away();
                } else {
                    wait.answered();
                }
                return Ok(inbound(answer));
            }
            Ok(Err(error @ PipeError::NotSent { .. })) => Failure::NotSent(error),
            Ok(Err(error @ PipeError::Unknown { .. })) => Failure::NoAnswer(error),
            Err(_elapsed) if is_given_up => Failure::Silent,
            Err(_elapsed) => {
                flaw.time_is_over();
                Failure::TimedOut
            }
        };
        wait.failed(&failure);
        Err(failure)
    }

    fn is_away(&self, wait: Duration) -> Problem {
        Problem::of(codes::UNAVAILABLE, self.role.unavailable)
            .retry_after(wait)
            .field("service", self.role.role)
    }

    fn problem(&self, failure: &Failure) -> Problem {
        match failure {
            Failure::NotSent(error) => self.is_away(TRY_AGAIN).caused_by(error),
            Failure::NoAnswer(error) => {
                Problem::of(codes::NO_ANSWER, "The connection broke before the answer came.")
                    .field("service", self.role.role)
                    .caused_by(error)
            }
            Failure::TimedOut | Failure::Silent => {
                Problem::of(codes::TIMEOUT, "The service behind this took too long to answer.")
                    .field("service", self.role.role)
            }
        }
    }
}

/// Waiting for a replica. However it ends, the replica is judged by it: also when the client leaves, which drops this.
struct Wait<'w> {
    upstream: &'w Upstream,
    replica: &'w Replica,
    flaw: &'w Flaw,
    started: Duration,
    /// Whether the replica was counted as silent while this went on.
    is_judged: bool,
    is_over: bool,
}

impl Wait<'_> {
    fn answered(&mut self) {
        self.is_over = true;
        self.replica.succeeded(self.upstream.clock.ticks(), self.started);
    }

    fn turned_away(&mut self) {
        self.is_over = true;
        self.replica.failed(self.upstream.clock.ticks(), self.started);
    }

    fn failed(&mut self, failure: &Failure) {
        self.is_over = true;
        if self.is_judged {
            return;
        }
        let is_its_own = !matches!(failure, Failure::TimedOut) || self.had_its_time();
        // A client that went away in the middle of its own body, or was slow, says nothing about the replica.
        if self.flaw.problem().is_none() && is_its_own {
            let now = self.upstream.clock.ticks();
            match failure {
                Failure::TimedOut => self.replica.timed_out(now, self.since()),
                _ => self.replica.failed(now, self.started),
            }
        }
    }

    /// Whether the replica has answered nobody in the time after which it is judged. If so, it is counted as silent.
    fn is_in_vain(&mut self) -> bool {
        let is_silent = self.had_its_time() && self.replica.is_silent_since(self.since());
        if is_silent && self.flaw.problem().is_none() {
            self.replica.timed_out(self.upstream.clock.ticks(), self.since());
            self.is_judged = true;
        }
        self.is_judged
    }

    /// Since when nothing but the replica is waited for.
    fn since(&self) -> Duration {
        self.started.max(self.flaw.fed())
    }

    /// Whether it could have answered if it were well.
    fn had_its_time(&self) -> bool {
        let waited = self.upstream.clock.ticks().saturating_sub(self.since());
        !self.flaw.is_awaited() && waited >= self.upstream.time_limit / JUDGED_AFTER
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if !self.is_over && !self.is_judged && self.flaw.problem().is_none() && self.had_its_time() {
            self.replica.abandoned(self.upstream.clock.ticks(), self.since());
        }
    }
}

enum Failure {
    NotSent(PipeError),
    NoAnswer(PipeError),
    TimedOut,
    /// The replica answered nobody, and was not waited for any longer.
    Silent,
}

impl Failure {
    /// The request for another replica: as it was if nothing of it was sent, and a copy if it may be repeated and the replica was silent.
    fn next_request(&mut self, spare: Option<&Parts>) -> Option<Request> {
        match self {
            Self::NotSent(error) => error.take_request(),
            Self::Silent => spare.map(|parts| Request::from_parts(parts.clone(), Body::empty())),
            Self::NoAnswer(_) | Self::TimedOut => None,
        }
    }
}

/// Whether a request changes nothing and has no body, so that it may be sent twice.
fn is_safe(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD) && request.body().is_end_stream()
}

/// Whether a process as a whole takes nothing: it starts, it stops, or it has no place for connections. Only then does it hang up with
/// its 503. Any other is about one route, or about the crowd, which would be no smaller elsewhere.
fn is_shut(answer: &Response) -> bool {
    answer.status() == StatusCode::SERVICE_UNAVAILABLE && headers::hangs_up(answer.headers())
}

fn inbound(mut answer: Response) -> Response {
    headers::remove_hop_by_hop(answer.headers_mut());
    answer.extensions_mut().insert(Passed);
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        // Nothing we sent asks for that.
        return Problem::of(codes::NO_ANSWER, "The service behind this answered in another protocol.")
            .into_response();
    }
    answer.map(|body| Body::new(Steady::new(body)))
}
