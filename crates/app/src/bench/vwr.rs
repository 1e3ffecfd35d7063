//! What Tier 1 of the waiting room does per second: how a check compares with a handler that does nothing, and how many take a number.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::get};
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
    goods,
    load::{self, Client, Deck, Pace},
    report::named,
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

/// How many wait in each room.
const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// People of a room who ask again and again, spread evenly over its line.
const ASKING: usize = 50_000;

/// People who take a number at the same time while a room fills.
const COMING: usize = 256;

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
    config.limits.enabled = false;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let stage = runtimes.server.block_on(set_up(&config, &ground, &tasks))?;
    let scenes = stage.into_scenes(&runtimes, &tasks, &config)?;
    let words = Words {
        title: "Tier 1 of the waiting room".to_owned(),
        command: "vwr",
        first: "no-op handler",
        judged: SIZES.len(),
        target_percent: TARGET_PERCENT,
    };
    turns.run(runtimes, &tasks, &scenes, &ground.clock, &words).map(drop)
}

/// Serves the whole front door. What it is made of has no name.
type Whole = Box<dyn FnOnce(&Runtimes, &Tasks, &Config) -> Result<SocketAddr, Failure>>;

/// Rooms with people in them.
struct Stage {
    bare: Router,
    whole: Whole,
    /// Of each room.
    checks: Vec<Vec<Vec<u8>>>,
    assigns: Vec<Vec<u8>>,
}

async fn set_up(config: &Config, ground: &Ground, tasks: &Tasks) -> Result<Stage, Failure> {
    let databases = Databases::open(config)?;
    prepare(config, &databases, &ground.clock).await?;
    let domains = Domains::build(config, &databases, &ground.clock, &ground.ids, tasks)?;
    let vwr = domains.vwr.clone().expect("the benchmark runs every role");
    let marks = Marks::new(wire::secrets(config).iter().map(visitor::key));
    let (mut checks, mut last) = (Vec::with_capacity(SIZES.len()), None);
    for waiting in SIZES {
        let event: EventId = ground.ids.next();
        let ctx = Ctx::system(&ground.ids, &ground.clock);
        let order = Order::Activate { rate: Some(0), fail_open: None };
        let opened = vwr.order(&ctx, GiveOrder { event, order }).await;
        opened.map_err(|error| Failure::because("the waiting room", &error))?;
        checks.push(fill(&vwr, event, waiting, &marks, ground).await?);
        last = Some(event);
    }
    let event = last.expect("there are rooms");
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

/// Lets people take their numbers. Answers with the checks of some of them.
async fn fill(
    vwr: &Arc<urr_vwr::Service>,
    event: EventId,
    waiting: usize,
    marks: &Marks,
    ground: &Ground,
) -> Result<Vec<Vec<u8>>, Failure> {
    let (next, places) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let comer = |_| Comer {
        vwr: Arc::clone(vwr),
        event,
        waiting,
        next: Arc::clone(&next),
        places: Arc::clone(&places),
        ground: ground.clone(),
    };
    // It ends when everybody has come.
    let pace = Pace { clients: COMING, warm_up: Duration::ZERO, span: Duration::from_hours(1) };
    let progress = Progress::start(&format!("coming, {waiting} waiting"));
    let came = load::run((0..COMING).map(comer).collect(), pace, &ground.clock, &progress.done).await;
    progress.end();
    if let Some(why) = came.first_failure {
        return Err(Failure::new(format!("{} people got no number: {why}", came.failed)));
    }
    let mut places = std::mem::take(&mut *places.lock().unwrap_or_else(PoisonError::into_inner));
    goods::shuffle(&mut places, &ground.ids);
    let check = |(visitor, ticket): (VisitorId, String)| {
        let (name, mark) = (visitor::cookie(event), marks.sign(visitor));
        format!(
            "GET /vwr/check/{event}/{ticket} HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: {name}={mark}\r\n\r\n"
        )
        .into_bytes()
    };
    Ok(places.into_iter().map(check).collect())
}

/// Takes numbers until everybody has one, and keeps the tickets of those who will ask.
struct Comer {
    vwr: Arc<urr_vwr::Service>,
    event: EventId,
    waiting: usize,
    next: Arc<AtomicUsize>,
    places: Arc<Mutex<Vec<(VisitorId, String)>>>,
    ground: Ground,
}

impl Client for Comer {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let nth = self.next.fetch_add(1, Ordering::Relaxed);
        if nth >= self.waiting {
            return None;
        }
        let (visitor, ctx) = (self.ground.ids.next(), Ctx::system(&self.ground.ids, &self.ground.clock));
        let request = Assign { event: self.event, visitor, ticket: None };
        let place = match self.vwr.assign(&ctx, request).await {
            Ok(place) => place,
            Err(error) => return Some(Err(error.to_string())),
        };
        if nth.is_multiple_of(self.waiting.div_ceil(ASKING)) {
            self.places.lock().unwrap_or_else(PoisonError::into_inner).push((visitor, place.ticket));
        }
        Some(Ok(()))
    }
}

impl Stage {
    fn into_scenes(self, runtimes: &Runtimes, tasks: &Tasks, config: &Config) -> Result<Vec<Scene>, Failure> {
        let nothing = Router::new().route("/vwr/check/{id}/{ticket}", get(noop));
        let nothing = serve(runtimes, tasks, nothing, config)?;
        let bare = serve(runtimes, tasks, self.bare, config)?;
        let whole = (self.whole)(runtimes, tasks, config)?;
        let decks: Vec<Arc<Deck>> = self.checks.into_iter().map(Deck::endless).collect();
        let (largest, assigns) = (&decks[SIZES.len() - 1], Deck::endless(self.assigns));
        let scene = |name: &str, address, deck: &Arc<Deck>| Scene {
            name: name.to_owned(),
            address,
            deck: Arc::clone(deck),
        };
        // The same bytes as a check, so that reading a request costs the same.
        let mut scenes = vec![scene("no-op handler", nothing, largest)];
        for (waiting, deck) in SIZES.iter().zip(&decks) {
            scenes.push(scene(&format!("check, {}", named(*waiting)), bare, deck));
        }
        scenes.push(scene("check behind the front door", whole, largest));
        scenes.push(scene("assign", bare, &assigns));
        Ok(scenes)
    }
}
