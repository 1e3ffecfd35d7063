//! Reverse proxy to roles in other processes. Bodies are streamed in both directions.
//!
//! The upstream is the public listener of that role, with its own gateway: it receives the caller's
//! token and verifies it. It trusts one header, because it is signed: the client address, and that
//! the request is counted.

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
    body::{Flaw, IdleTimeoutBody, Watched},
    replicas::{Replica, ReplicaPermit, Replicas},
};
use crate::{codes, compress::Passed};

/// Retry delay after a refused connection or a busy service: replicas restart within seconds.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A wait counts against a replica once it alone has been waited for this fraction of the time
/// limit: 10 of 30 seconds, so that clients who leave a hung replica early count too. A healthy
/// replica responds within it. A request that may be repeated waits no longer than this for a
/// silent replica and is then sent to another.
const JUDGED_AFTER: u32 = 3;

/// A role that runs in other processes.
#[derive(Debug)]
pub struct Upstream {
    role: &'static RoleRoutes,
    replicas: Replicas,
    clock: Clock,
    signer: Signer,
    time_limit: Duration,
}

impl Upstream {
    /// Creates a role from the base URLs of its replicas' public listeners. `signer` marks
    /// forwarded requests.
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

    /// Overrides the role's time limit for the start of a response.
    pub fn within(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Returns the role.
    pub fn role(&self) -> &'static RoleRoutes {
        self.role
    }

    pub(crate) fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Returns the response of a replica, or an error response.
    pub(crate) async fn pass(&self, mut request: Request) -> Response {
        let mark = self.signer.sign(ClientAddress::of(request.extensions()).0, self.clock.now());
        if let Err(problem) = headers::outbound(&mut request, &mark) {
            return problem.into_response();
        }
        self.answer(request).await.unwrap_or_else(Problem::into_response)
    }

    /// Tries each replica once, until one has received a part of the request. After that it is sent
    /// to another only if it is safe to repeat.
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
            let permit = match (self.replicas.choose(now, &tried), &last) {
                (Ok(permit), _) => permit,
                (Err(_wait), Some(failure)) => return Err(self.problem(failure)),
                (Err(wait), None) => return Err(self.is_away(wait)),
            };
            let mut failure = match self.attempt(&permit, request, (left, is_safe), &flaw).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            if let Some(problem) = flaw.problem() {
                return Err(problem);
            }
            request = failure.next_request(spare.as_ref()).ok_or_else(|| self.problem(&failure))?;
            tried.push(permit.replica);
            last = Some(failure);
        }
    }

    /// One attempt at one replica, up to the head of the response.
    async fn attempt(
        &self,
        permit: &ReplicaPermit<'_>,
        request: Request,
        (left, is_safe): (Duration, bool),
        flaw: &Flaw,
    ) -> Result<Response, Failure> {
        let replica = permit.replica;
        let path = request.uri().path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let started = self.clock.ticks();
        let mut wait = Wait { upstream: self, replica, flaw, started, is_judged: false, is_over: false };
        let mut answer = pin!(replica.pipe.send(path, request));
        let judged_after = left.min(self.time_limit / JUDGED_AFTER);
        let mut outcome = timeout(judged_after, answer.as_mut()).await;
        // A silent replica is judged now, so that other requests avoid it. A request that changes
        // state keeps waiting: it may have been executed, so it must not be sent to another
        // replica.
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
        Problem::of(urr_http::codes::UNAVAILABLE, self.role.unavailable)
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

/// A wait for a replica. Its end is always reported to the replica, also when the client
/// disconnects and this is dropped.
struct Wait<'w> {
    upstream: &'w Upstream,
    replica: &'w Replica,
    flaw: &'w Flaw,
    started: Duration,
    /// Whether this wait has already counted against the replica.
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
        // A broken or slow request body says nothing about the replica.
        if self.flaw.problem().is_none() && is_its_own {
            let now = self.upstream.clock.ticks();
            match failure {
                Failure::TimedOut => self.replica.timed_out(now, self.since()),
                _ => self.replica.failed(now, self.started),
            }
        }
    }

    /// Whether the replica has been silent for the judging time. If so, counts that against it.
    fn is_in_vain(&mut self) -> bool {
        let is_silent = self.had_its_time() && self.replica.is_silent_since(self.since());
        if is_silent && self.flaw.problem().is_none() {
            self.replica.timed_out(self.upstream.clock.ticks(), self.since());
            self.is_judged = true;
        }
        self.is_judged
    }

    /// When waiting for the replica alone began.
    fn since(&self) -> Duration {
        self.started.max(self.flaw.fed())
    }

    /// Whether a healthy replica would have responded by now.
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
    /// The replica was silent for the judging time; the attempt was abandoned.
    Silent,
}

impl Failure {
    /// Returns the request for another replica: the original if nothing was sent, a copy if it is
    /// safe and the replica was silent.
    fn next_request(&mut self, spare: Option<&Parts>) -> Option<Request> {
        match self {
            Self::NotSent(error) => error.take_request(),
            Self::Silent => spare.map(|parts| Request::from_parts(parts.clone(), Body::empty())),
            Self::NoAnswer(_) | Self::TimedOut => None,
        }
    }
}

/// Whether a request has a safe method and no body, so that it may be repeated.
fn is_safe(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD) && request.body().is_end_stream()
}

/// Whether the whole process rejects requests: it is starting, stopping or out of connections. Only
/// then does it close the connection with its 503. Any other 503 is about one route or about load,
/// which another replica would not reduce.
fn is_shut(answer: &Response) -> bool {
    answer.status() == StatusCode::SERVICE_UNAVAILABLE && headers::hangs_up(answer.headers())
}

fn inbound(mut answer: Response) -> Response {
    headers::remove_hop_by_hop(answer.headers_mut());
    answer.extensions_mut().insert(Passed);
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        // Our requests never ask for an upgrade.
        return Problem::of(codes::NO_ANSWER, "The service behind this answered in another protocol.")
            .into_response();
    }
    answer.map(|body| Body::new(IdleTimeoutBody::new(body)))
}
