//! The cost of the gateway: the same handler behind all guards, and behind a token check alone.

use std::sync::Arc;

use axum::{
    Router, extract,
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde::Serialize;
use urr_http::{Caller, Json, Problem, Respond, Routes, StatusCode, USER};
use urr_jobs::Tasks;
use urr_kernel::{Clock, Role, UserId};
use urr_passes::{
    Secret,
    access::{self, Verifier},
};

use super::{
    Bench, Runtimes,
    holds::FAST,
    load::RequestSource,
    turns::{BenchRow, Turns, Words, serve},
};
use crate::{http::Request, report::Report};

/// A route for signed-in users with the general rate limit: 3,000 a minute for each.
const PATH: &str = "/api/reservations/my";

/// Maximum requests of one user in the whole run: a third of the rate limit per minute.
const ASKS: usize = 1_000;

/// The share of the bare token check that the full gateway should reach.
const TARGET_PERCENT: f64 = 85.0;

/// The response of both rows.
#[derive(Serialize)]
struct Answer {
    user: UserId,
    reservations: [(); 0],
}

async fn noop(caller: Caller) -> Result<Json<Answer>, Problem> {
    Ok(Json(Answer { user: caller.user()?, reservations: [] }))
}

/// The handler behind a bearer token check alone.
struct TokenCheckOnly {
    keys: Verifier,
    clock: Clock,
    router: Router,
}

impl TokenCheckOnly {
    fn new(secret: &str, clock: &Clock) -> anyhow::Result<Self> {
        let keys = Verifier::new([access::key(&Secret::new(secret)?)]);
        Ok(Self { keys, clock: clock.clone(), router: Router::new().route(PATH, get(noop)) })
    }
}

impl Respond for TokenCheckOnly {
    async fn respond(&self, mut request: extract::Request) -> Response {
        let header = request.headers().get("authorization").and_then(|header| header.to_str().ok());
        let token = header.and_then(|header| header.strip_prefix("Bearer "));
        match token.map(|token| self.keys.verify(token, self.clock.now())) {
            Some(Ok(verified)) => {
                request.extensions_mut().insert(verified.access.actor());
                self.router.respond(request).await
            }
            _ => StatusCode::UNAUTHORIZED.into_response(),
        }
    }
}

pub(super) fn run(turns: &Turns, bench: &Bench<'_>) -> anyhow::Result<Report> {
    let installed = bench.install("gateway", &[])?;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let seconds = usize::try_from(turns.asked().as_secs() + 1).expect("a run takes minutes");
    let users = (seconds * FAST).div_ceil(ASKS);
    let request = |_| {
        let token = installed.tokens.of(bench.ids.next(), Role::User);
        Request::get(PATH).by(&token).bytes("127.0.0.1")
    };
    let source = RequestSource::endless((0..users).map(request).collect());
    let bare = TokenCheckOnly::new(&installed.secret, &bench.clock)?;
    let bare = serve(&runtimes, &tasks, bare, installed.app.limits())?;
    let routes = Routes::new().get(PATH, USER, noop);
    let whole = runtimes.server.block_on(installed.app.serve_behind_gateway("tickets", routes, &tasks))?;
    let rows = [
        BenchRow { name: "bare token check".to_owned(), address: bare, source: Arc::clone(&source) },
        BenchRow { name: "whole front door".to_owned(), address: whole, source },
    ];
    let words = Words {
        title: "front door".to_owned(),
        command: "gateway",
        first: "bare check",
        judged: 1,
        target_percent: TARGET_PERCENT,
    };
    let mut report = Report::default();
    turns.run(runtimes, &tasks, &rows, &bench.clock, &words, &mut report)?;
    Ok(report)
}
