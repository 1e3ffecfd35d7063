//! Requests per second of Tier 1: checks compared with a no-op handler, and new visitors.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail};
use axum::{Router, routing::get};
use serde::Serialize;
use urr_contracts::vwr::{Assign, GiveOrder, Order, Vwr};
use urr_http::Json;
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, VisitorId};
use urr_passes::{
    Secret,
    visitor::{self, Marks},
};
use urr_rpc::Ctx;

use super::{
    Bench, Installed, Progress, Runtimes, hold_requests,
    load::{self, Client, Pace, RequestSource},
    table::named,
    turns::{BenchRow, Turns, Words, serve},
};
use crate::{http::Request, report::Report};

/// Visitors waiting in each room.
const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// Visitors per room who poll, spread evenly over the queue.
const ASKING: usize = 50_000;

/// Visitors who take a number concurrently while a room is filled.
const COMING: usize = 256;

/// The share of the no-op handler that a check should reach.
const TARGET_PERCENT: f64 = 75.0;

/// A response as large as that of a check.
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

pub(super) fn run(turns: &Turns, bench: &Bench<'_>) -> anyhow::Result<Report> {
    // All clients share one address, and rate limits are not measured here.
    let installed = bench.install("vwr", &[("limits.enabled", "false")])?;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let domains = runtimes.server.block_on(installed.app.open(&tasks))?;
    let (checks, assign) = runtimes.server.block_on(fill_rooms(bench, &installed, &domains.vwr()))?;
    let limits = || installed.app.limits();
    let nothing = Router::new().route("/vwr/check/{id}/{ticket}", get(noop));
    let nothing = serve(&runtimes, &tasks, nothing, limits())?;
    let bare = serve(&runtimes, &tasks, Router::from(domains.vwr_routes()), limits())?;
    let whole = runtimes.server.block_on(domains.serve())?;
    let sources: Vec<Arc<RequestSource>> = checks.into_iter().map(RequestSource::endless).collect();
    let (largest, assigns) = (&sources[SIZES.len() - 1], RequestSource::endless(vec![assign]));
    let row = |name: &str, address, source: &Arc<RequestSource>| BenchRow {
        name: name.to_owned(),
        address,
        source: Arc::clone(source),
    };
    // The same request bytes as a check, so that parsing costs the same.
    let mut rows = vec![row("no-op handler", nothing, largest)];
    for (waiting, source) in SIZES.iter().zip(&sources) {
        rows.push(row(&format!("check, {}", named(*waiting)), bare, source));
    }
    rows.push(row("check behind the front door", whole, largest));
    rows.push(row("assign", bare, &assigns));
    let words = Words {
        title: "Tier 1 of the waiting room".to_owned(),
        command: "vwr",
        first: "no-op handler",
        judged: SIZES.len(),
        target_percent: TARGET_PERCENT,
    };
    let mut report = Report::default();
    turns.run(runtimes, &tasks, &rows, &bench.clock, &words, &mut report)?;
    Ok(report)
}

/// Opens a room of each size and fills it. Returns the checks of each, and the request of a new
/// visitor to the last.
async fn fill_rooms(
    bench: &Bench<'_>,
    installed: &Installed,
    vwr: &Arc<dyn Vwr>,
) -> anyhow::Result<(Vec<Vec<Vec<u8>>>, Vec<u8>)> {
    let marks = Marks::new([visitor::key(&Secret::new(installed.secret.as_str())?)]);
    let (mut checks, mut assign) = (Vec::with_capacity(SIZES.len()), Vec::new());
    for waiting in SIZES {
        let event: EventId = bench.ids.next();
        let ctx = Ctx::system(&bench.ids, &bench.clock);
        let order = Order::Activate { rate: Some(0), fail_open: None };
        vwr.order(&ctx, GiveOrder { event, order }).await.context("could not open a room")?;
        checks.push(fill(vwr, event, waiting, &marks, bench).await?);
        let path = format!("/vwr/assign/{event}");
        assign = Request { method: "POST", ..Request::get(&path) }.bytes("127.0.0.1");
    }
    Ok((checks, assign))
}

/// Fills a room. Returns the checks of some of its visitors.
async fn fill(
    vwr: &Arc<dyn Vwr>,
    event: EventId,
    waiting: usize,
    marks: &Marks,
    bench: &Bench<'_>,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let (next, places) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let comer = |_| ArrivingVisitor {
        vwr: Arc::clone(vwr),
        event,
        waiting,
        next: Arc::clone(&next),
        places: Arc::clone(&places),
        clock: bench.clock.clone(),
        ids: bench.ids.clone(),
    };
    // The run ends when all visitors have a number.
    let pace = Pace { clients: COMING, warm_up: Duration::ZERO, span: Duration::from_hours(1) };
    let progress = Progress::start(&format!("coming, {waiting} waiting"));
    let came = load::run((0..COMING).map(comer).collect(), pace, &bench.clock, &progress.done).await;
    progress.end();
    if let Some(why) = came.first_failure {
        bail!("{} visitors got no number: {why}", came.failed);
    }
    let mut places = std::mem::take(&mut *places.lock().unwrap_or_else(PoisonError::into_inner));
    hold_requests::shuffle(&mut places, &bench.ids);
    let check = |(visitor, ticket): (VisitorId, String)| {
        let (name, mark) = (visitor::cookie(event), marks.sign(visitor));
        let (path, cookie) = (format!("/vwr/check/{event}/{ticket}"), format!("{name}={mark}"));
        Request { headers: &[("cookie", &cookie)], ..Request::get(&path) }.bytes("127.0.0.1")
    };
    Ok(places.into_iter().map(check).collect())
}

/// Takes numbers until the room is full, and stores the tickets of the visitors who will poll.
struct ArrivingVisitor {
    vwr: Arc<dyn Vwr>,
    event: EventId,
    waiting: usize,
    next: Arc<AtomicUsize>,
    places: Arc<Mutex<Vec<(VisitorId, String)>>>,
    clock: Clock,
    ids: Ids,
}

impl Client for ArrivingVisitor {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let nth = self.next.fetch_add(1, Ordering::Relaxed);
        if nth >= self.waiting {
            return None;
        }
        let (visitor, ctx) = (self.ids.next(), Ctx::system(&self.ids, &self.clock));
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
