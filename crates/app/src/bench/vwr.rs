//! What Tier 1 of the waiting room does per second: how a check compares with a handler that does nothing, and how many take a number.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use clap::Args;
use serde::Serialize;
use urr_contracts::vwr::{Assign, GiveOrder, Order, Vwr as _};
use urr_http::Json;
use urr_jobs::Tasks;
use urr_kernel::{EventId, VisitorId};
use urr_passes::visitor::{self, Marks};
use urr_rpc::Ctx;

use super::{
    Progress, Runtimes,
    disk::Bench,
    gateway::serve,
    load::{Deck, Pace},
    machine::Machine,
    report::{self, Measured, Row},
    scenes,
};
use crate::{
    config::Config,
    failure::Failure,
    say::say,
    serve::prepare,
    stores::Databases,
    wire::{self, Domains, Ground},
};

/// People who wait and ask again and again.
const PEOPLE: usize = 1_000;

/// Not measured at the start of each round.
const WARM_UP: Duration = Duration::from_millis(500);

/// The share of the handler that does nothing which a check should reach.
const TARGET_PERCENT: f64 = 75.0;

/// How Tier 1 is measured.
#[derive(Debug, Args)]
pub(crate) struct VwrArgs {
    /// Seconds each round of each row is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Rounds; the rows take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=50))]
    rounds: u16,
    /// Clients at the same time, each with a connection of its own
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
}

/// As much as a check answers.
#[derive(Serialize)]
struct Answer {
    admitted: bool,
    position: u64,
    serving_counter: u64,
    total_in_queue: u64,
    ahead: u64,
    estimated_wait: u64,
    next_poll: u64,
    paused: bool,
}

async fn noop() -> Json<Answer> {
    Json(Answer {
        admitted: false,
        position: 500,
        serving_counter: 0,
        total_in_queue: 1_000,
        ahead: 499,
        estimated_wait: 3_600,
        next_poll: 2,
        paused: false,
    })
}

/// One kind of request and what answers it.
struct Scene {
    name: &'static str,
    address: SocketAddr,
    deck: Arc<Deck>,
    sum: Measured,
}

/// Measures and prints one table.
pub(super) fn run(args: &VwrArgs) -> Result<(), Failure> {
    let bench = Bench::in_dir(".".as_ref())?;
    let ground = scenes::ground();
    let (_, mut config) = scenes::setup(&bench.path("vwr"), &[], &ground.ids)?;
    // Everybody comes from one address.
    config.door.limits = None;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let mut scenes = runtimes
        .server
        .block_on(set_up(&config, &ground, &tasks))?
        .into_scenes(&runtimes, &tasks, &config)?;
    let pace = Pace {
        clients: usize::from(args.clients),
        warm_up: WARM_UP,
        span: Duration::from_secs(args.seconds),
    };
    let mut shares = Vec::new();
    for round in 1..=args.rounds {
        let mut rates = Vec::new();
        for scene in &mut scenes {
            let progress = Progress::start(&format!("{}, round {round} of {}", scene.name, args.rounds));
            let measured =
                scenes::send(&runtimes, &scene.deck, scene.address, &ground.clock, pace, &progress.done);
            progress.end();
            let measured = measured?;
            rates.push(measured.rate());
            scene.sum.add(measured);
        }
        shares.push(rates[1] / rates[0] * 100.0);
    }
    // What does not end in time ends with its runtime.
    let _ = runtimes.server.block_on(tasks.shutdown(scenes::STOP));
    runtimes.stop();
    let rows = scenes.into_iter().map(|scene| Row { name: scene.name.to_owned(), outcome: Ok(scene.sum) });
    tell(args, rows.collect(), shares)
}

/// Serves the whole front door. What it is made of has no name.
type Whole = Box<dyn FnOnce(&Runtimes, &Tasks, &Config) -> Result<SocketAddr, Failure>>;

/// A room with people in it.
struct Stage {
    bare: Router,
    whole: Whole,
    checks: Vec<Vec<u8>>,
    assigns: Vec<Vec<u8>>,
}

async fn set_up(config: &Config, ground: &Ground, tasks: &Tasks) -> Result<Stage, Failure> {
    let databases = Databases::open(config)?;
    prepare(config, &databases, &ground.clock).await?;
    let domains = Domains::build(config, &databases, &ground.clock, &ground.ids, tasks)?;
    let vwr = domains.vwr.clone().expect("the benchmark runs every role");
    let event: EventId = ground.ids.next();
    let ctx = Ctx::system(&ground.ids, &ground.clock);
    let refused = |error: urr_contracts::vwr::Error| Failure::because("the waiting room", &error);
    let order = Order::Activate { rate: Some(0), fail_open: None };
    vwr.order(&ctx, GiveOrder { event, order }).await.map_err(refused)?;
    let marks = Marks::new(wire::secrets(config).iter().map(visitor::key));
    let mut checks = Vec::with_capacity(PEOPLE);
    for _ in 0..PEOPLE {
        let visitor: VisitorId = ground.ids.next();
        let place = vwr.assign(&ctx, Assign { event, visitor, ticket: None }).await.map_err(refused)?;
        let mark = marks.sign(visitor);
        let line = format!(
            "GET /vwr/check/{event}/{} HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: urr-visitor={mark}\r\n\r\n",
            place.ticket
        );
        checks.push(line.into_bytes());
    }
    let assign = format!("POST /vwr/assign/{event} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n");
    let door = crate::gateway::door(config, &domains, ground)?;
    let whole = wire::public(config, door, ground);
    // The files stay open for as long as somebody is answered.
    tasks.spawn("bench.files", {
        let stop = tasks.token();
        async move {
            stop.cancelled().await;
            drop(databases);
        }
    });
    Ok(Stage {
        bare: urr_vwr::routes(&vwr).into(),
        whole: Box::new(move |runtimes, tasks, config| serve(runtimes, tasks, whole, config)),
        checks,
        assigns: vec![assign.into_bytes()],
    })
}

impl Stage {
    fn into_scenes(self, runtimes: &Runtimes, tasks: &Tasks, config: &Config) -> Result<Vec<Scene>, Failure> {
        let nothing = Router::new().route("/vwr/check/{id}/{ticket}", get(noop));
        let nothing = serve(runtimes, tasks, nothing, config)?;
        let bare = serve(runtimes, tasks, self.bare, config)?;
        let whole = (self.whole)(runtimes, tasks, config)?;
        // The same bytes for both, so that reading a request costs the same.
        let (checks, assigns) = (Deck::endless(self.checks), Deck::endless(self.assigns));
        let scene = |name, address, deck: &Arc<Deck>| Scene {
            name,
            address,
            deck: Arc::clone(deck),
            sum: Measured::default(),
        };
        Ok(vec![
            scene("no-op handler", nothing, &checks),
            scene("check", bare, &checks),
            scene("check behind the front door", whole, &checks),
            scene("assign", bare, &assigns),
        ])
    }
}

fn tell(args: &VwrArgs, mut rows: Vec<Row>, mut shares: Vec<f64>) -> Result<(), Failure> {
    let VwrArgs { seconds, rounds, clients } = args;
    say!(
        "Tier 1: {PEOPLE} people in line, {clients} clients, {rounds} rounds of {seconds} s for each row, in turns"
    );
    for line in Machine::here().lines() {
        say!("{line}");
    }
    say!("again    urr bench vwr --seconds {seconds} --rounds {rounds} --clients {clients}");
    say!("");
    say!("{}", report::table(&mut rows).trim_end());
    let each: Vec<String> = shares.iter().map(|share| format!("{share:.1}")).collect();
    shares.sort_unstable_by(f64::total_cmp);
    let median = shares[shares.len() / 2];
    say!("");
    say!("by round {} %", each.join(" "));
    let verdict = if median >= TARGET_PERCENT { "met" } else { "missed" };
    say!(
        "median   a check is {median:.1} % of the handler that does nothing; the target of {TARGET_PERCENT} % is {verdict}"
    );
    let failed = rows.iter().filter(|row| row.outcome.as_ref().is_ok_and(|measured| measured.failed > 0));
    let failed: Vec<String> = failed.map(|row| format!("{} did not work as it should", row.name)).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure(failed)) }
}
