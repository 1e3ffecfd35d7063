//! What the front door costs: the same handler behind all of it, and behind nothing but the check of a token.

use std::{net::SocketAddr, time::Duration};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse as _, Response},
    routing::get,
};
use clap::Args;
use serde::Serialize;
use urr_gateway::{Gateway, table::Service};
use urr_http::{Caller, Json, Problem, Respond, Routes, Server, StatusCode};
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids, Role, UserId};
use urr_passes::access::{self, Access, Signer, Verifier};

use super::{
    Progress, Runtimes,
    disk::Bench,
    load::{Deck, Pace},
    machine::Machine,
    report::{self, Measured, Row},
    scenes::{self, FAST},
};
use crate::{
    config::Config,
    failure::Failure,
    gateway::{self, Memory},
    say::say,
    wire::{self, Ground},
};

/// A route for whoever is signed in, counted as general: 3,000 a minute for each.
const PATH: &str = "/api/reservations/my";

/// How often somebody asks in the whole run, at most: a third of what the limit allows in a minute.
const ASKS: usize = 1_000;

/// Not measured at the start of each round.
const WARM_UP: Duration = Duration::from_millis(500);

/// The share of the bare check that the whole door should reach.
const TARGET_PERCENT: f64 = 85.0;

/// How the front door is measured.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Seconds each round of each row is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Rounds; the two rows take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=50))]
    rounds: u16,
    /// Clients at the same time, each with a connection of its own
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
}

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
    let guards = gateway::guards(config, &Memory::new(config, None, &ground.clock), ground);
    let api = Gateway::new(guards).local(Service::Tickets, Routes::new().get(PATH, noop)).finish();
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
    let secret = config.secrets().next().expect("the benchmark configures a secret");
    let signer = Signer::new(access::key(&secret.0), Duration::from_hours(1));
    let request = |_| {
        let access = Access { user: ids.next(), role: Role::User, email: None, session: ids.next() };
        let token = signer.sign(&access, ids.next(), clock.now());
        format!("GET {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\r\n")
            .into_bytes()
    };
    (0..people).map(request).collect()
}

/// Measures and prints one table.
pub(super) fn run(args: &GatewayArgs) -> Result<(), Failure> {
    let bench = Bench::in_dir(".".as_ref())?;
    let ground = scenes::ground();
    let (_, config) = scenes::setup(&bench.path("gateway"), &[], &ground.ids)?;
    let runtimes = Runtimes::new()?;
    let tasks = Tasks::new();
    let doors = [
        ("bare token check", serve(&runtimes, &tasks, Bare::new(&config, &ground), &config)?),
        ("whole front door", serve(&runtimes, &tasks, whole(&config, &ground), &config)?),
    ];
    let seconds = usize::try_from(args.seconds + 1).expect("a round is short") * usize::from(args.rounds);
    let people = (seconds * FAST).div_ceil(ASKS);
    let deck = Deck::endless(requests(people, &config, &ground.clock, &ground.ids));
    let pace = Pace {
        clients: usize::from(args.clients),
        warm_up: WARM_UP,
        span: Duration::from_secs(args.seconds),
    };
    let (mut sums, mut shares) = ([Measured::default(), Measured::default()], Vec::new());
    for round in 1..=args.rounds {
        let mut rates = [0.0; 2];
        for (at, (name, address)) in doors.iter().enumerate() {
            let progress = Progress::start(&format!("{name}, round {round} of {}", args.rounds));
            let measured = scenes::send(&runtimes, &deck, *address, &ground.clock, pace, &progress.done);
            progress.end();
            let measured = measured?;
            rates[at] = measured.rate();
            sums[at].add(measured);
        }
        shares.push(rates[1] / rates[0] * 100.0);
    }
    // What does not end in time ends with its runtime.
    let _ = runtimes.server.block_on(tasks.shutdown(scenes::STOP));
    runtimes.stop();
    let names = doors.map(|(name, _)| name.to_owned());
    tell(
        args,
        names.into_iter().zip(sums).map(|(name, sum)| Row { name, outcome: Ok(sum) }).collect(),
        shares,
    )
}

/// Serves a row on a port of its own.
pub(super) fn serve(
    runtimes: &Runtimes,
    tasks: &Tasks,
    door: impl Respond,
    config: &Config,
) -> Result<SocketAddr, Failure> {
    let failed = |error| Failure::because("a row cannot be served", &error);
    let server = runtimes.server.block_on(Server::bind(config.listen)).map_err(failed)?;
    let address = server.local_addr().map_err(failed)?;
    let (limits, token) = (wire::limits(config), tasks.token());
    runtimes.server.block_on(async {
        tasks.spawn("bench.gateway", async move {
            // The only error is the listener's, and then nobody is answered: the load says so.
            let _ = server.serve(door, limits, token).await;
        });
    });
    Ok(address)
}

fn tell(args: &GatewayArgs, mut rows: Vec<Row>, mut shares: Vec<f64>) -> Result<(), Failure> {
    let GatewayArgs { seconds, rounds, clients } = args;
    say!("front door: {clients} clients, {rounds} rounds of {seconds} s for each row, in turns");
    for line in Machine::here().lines() {
        say!("{line}");
    }
    say!("again    urr bench gateway --seconds {seconds} --rounds {rounds} --clients {clients}");
    say!("");
    say!("{}", report::table(&mut rows).trim_end());
    let each: Vec<String> = shares.iter().map(|share| format!("{share:.1}")).collect();
    shares.sort_unstable_by(f64::total_cmp);
    let median = shares[shares.len() / 2];
    say!("");
    say!("by round {} %", each.join(" "));
    let verdict = if median >= TARGET_PERCENT { "met" } else { "missed" };
    say!("median   {median:.1} % of the bare check; the target of {TARGET_PERCENT} % is {verdict}");
    let failed = rows.iter().filter(|row| row.outcome.as_ref().is_ok_and(|measured| measured.failed > 0));
    let failed: Vec<String> = failed.map(|row| format!("{} did not work as it should", row.name)).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure(failed)) }
}
