//! What the front door costs: the same handler behind all of it, and behind nothing but the check of a token.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde::Serialize;
use urr_gateway::Gateway;
use urr_http::{Caller, Json, Problem, Respond, Routes, StatusCode, USER};
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids, UserId};
use urr_passes::access::Verifier;

use super::{
    Runtimes,
    disk::Bench,
    goods::Tokens,
    load::Deck,
    scenes::{self, FAST},
    turns::{Scene, Turns, Words, serve},
};
use crate::{
    config::Config,
    failure::Failure,
    gateway::{self, Memory},
    wire::{self, Ground},
};

/// A route for whoever is signed in, counted as general: 3,000 a minute for each.
const PATH: &str = "/api/reservations/my";

/// How often somebody asks in the whole run, at most: a third of what the limit allows in a minute.
const ASKS: usize = 1_000;

/// The share of the bare check that the whole door should reach.
const TARGET_PERCENT: f64 = 85.0;

/// What both rows answer.
#[derive(Serialize)]
struct Answer {
    user: UserId,
    reservations: [(); 0],
}

async fn noop(caller: Caller) -> Result<Json<Answer>, Problem> {
    Ok(Json(Answer { user: caller.user()?, reservations: [] }))
}

/// The handler behind everything that stands before a domain.
fn whole(config: &Config, ground: &Ground) -> impl Respond + use<> {
    let guards = gateway::guards(config, &Memory::brand_new(config, &ground.clock), ground);
    let api = Gateway::new(guards).local(&urr_tickets::ROLE, Routes::new().get(PATH, USER, noop)).finish();
    wire::public(config, api, ground)
}

/// The handler behind the check of a bearer token.
struct Bare {
    keys: Verifier,
    clock: Clock,
    router: Router,
}

impl Bare {
    fn new(config: &Config, ground: &Ground) -> Self {
        let keys = Verifier::new(wire::access_keys(config));
        Self { keys, clock: ground.clock.clone(), router: Router::new().route(PATH, get(noop)) }
    }
}

impl Respond for Bare {
    async fn respond(&self, mut request: Request) -> Response {
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

fn requests(people: usize, config: &Config, clock: &Clock, ids: &Ids) -> Vec<Vec<u8>> {
    let tokens = Tokens::new(config, clock, ids);
    let request = |_| {
        let token = tokens.of(ids.next());
        format!("GET {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\r\n")
            .into_bytes()
    };
    (0..people).map(request).collect()
}

/// Measures and prints one table.
pub(super) fn run(turns: &Turns) -> Result<(), Failure> {
    let bench = Bench::in_dir(".".as_ref())?;
    let ground = scenes::ground();
    let (_, config) = scenes::setup(&bench.path("gateway"), &[], &ground.ids)?;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let seconds = usize::try_from(turns.asked().as_secs() + 1).expect("a run is short");
    let people = (seconds * FAST).div_ceil(ASKS);
    let deck = Deck::endless(requests(people, &config, &ground.clock, &ground.ids));
    let bare = serve(&runtimes, &tasks, Bare::new(&config, &ground), &config)?;
    let whole = serve(&runtimes, &tasks, whole(&config, &ground), &config)?;
    let scenes = [
        Scene { name: "bare token check".to_owned(), address: bare, deck: Arc::clone(&deck) },
        Scene { name: "whole front door".to_owned(), address: whole, deck },
    ];
    let words = Words {
        title: "front door".to_owned(),
        command: "gateway",
        first: "bare check",
        judged: 1,
        target_percent: TARGET_PERCENT,
    };
    turns.run(runtimes, &tasks, &scenes, &ground.clock, &words).map(drop)
}
