//! What Tier 1 of the waiting room does per second: how a check compares with a handler that does nothing, and how many take a number.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, routing::get};
use serde::Serialize;
use urr_contracts::vwr::{Assign, GiveOrder, Order, Vwr as _};
use urr_http::Json;
use urr_jobs::Tasks;
use urr_kernel::{EventId, VisitorId};
use urr_passes::visitor::{self, Marks};
use urr_rpc::Ctx;

use super::{
    Runtimes,
    disk::Bench,
    load::Deck,
    scenes,
    turns::{Scene, Turns, Words, serve},
};
use crate::{
    config::Config,
    failure::Failure,
    serve::prepare,
    stores::Databases,
    wire::{self, Domains, Ground},
};

/// People who wait and ask again and again.
const PEOPLE: usize = 1_000;

/// The share of the handler that does nothing which a check should reach.
const TARGET_PERCENT: f64 = 75.0;

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

/// Measures and prints one table.
pub(super) fn run(turns: &Turns) -> Result<(), Failure> {
    let bench = Bench::in_dir(".".as_ref())?;
    let ground = scenes::ground();
    let (_, mut config) = scenes::setup(&bench.path("vwr"), &[], &ground.ids)?;
    // Everybody comes from one address.
    config.door.limits = None;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let stage = runtimes.server.block_on(set_up(&config, &ground, &tasks))?;
    let scenes = stage.into_scenes(&runtimes, &tasks, &config)?;
    let words = Words {
        title: format!("Tier 1 with {PEOPLE} people in line"),
        command: "vwr",
        first: "no-op handler",
        target_percent: TARGET_PERCENT,
    };
    turns.run(runtimes, &tasks, &scenes, &ground.clock, &words)
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
        let scene = |name, address, deck: &Arc<Deck>| Scene { name, address, deck: Arc::clone(deck) };
        Ok(vec![
            scene("no-op handler", nothing, &checks),
            scene("check", bare, &checks),
            scene("check behind the front door", whole, &checks),
            scene("assign", bare, &assigns),
        ])
    }
}
