//! The waiting room of an event with 1,000, 100,000 and 1,000,000 users waiting: requests per
//! second, memory per user, and the time to start with a full room.

mod noop;
mod redis;

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use urr_contracts::queue::{CheckIn, Queue};
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, EventId, Ids, Role, UserId};
use urr_rpc::{Ctx, REQUEST_BUDGET};

use self::noop::Answer;
use super::{
    Bench, Installed, Progress, Runtimes, hold_requests,
    load::{self, Client, Pace, RequestSource},
    table::{Measured, named, thousands},
    turns::{BenchRow, STOP, Turns, Words},
};
use crate::{
    host::Domains,
    http::{Connection, Request},
    program::Launch,
    report::Report,
};

/// Users waiting in each room.
const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// Users per room who poll over HTTP, spread evenly over the queue: more than CPU caches hold.
const ASKING: usize = 50_000;

/// Concurrent joins in process. A join waits for an fsync, so it takes many to keep the disk busy.
const JOINERS: usize = 1_000;

/// Joins over HTTP prepared per second: more than any run has completed.
const JOINS_PER_SECOND: f64 = 40_000.0;

const TARGET_PERCENT: f64 = 85.0;
const TARGET_GROWTH: f64 = 1.3;
const TARGET_JOINS: f64 = 30_000.0;
const TARGET_BYTES: f64 = 150.0;
const TARGET_ANSWER: Duration = Duration::from_millis(300);
const TARGET_REBUILD: Duration = Duration::from_secs(3);

/// Settings of the rooms: no admissions, room for all users, and no idle timeout within a run.
const SETTINGS: [(&str, &str); 3] =
    [("queue.threshold", "0"), ("queue.max_waiting", "10000000"), ("queue.waiting_idle_secs", "86400")];

/// Options of `urr bench queue`.
#[derive(Debug, Args)]
pub struct QueueArgs {
    #[command(flatten)]
    turns: Turns,
    /// Measure rooms in this Redis instead; it is filled and not cleaned up: use one you can flush
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// Directory for temporary files: choose one on the disk to be measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) dir: std::path::PathBuf,
}

/// A room and some of its waiting users.
struct Line {
    event: EventId,
    waiting: usize,
    asking: Vec<UserId>,
}

pub(super) fn run(args: &QueueArgs, bench: &Bench<'_>) -> anyhow::Result<Report> {
    if let Some(url) = &args.redis {
        return redis::run(&args.turns, url, bench);
    }
    // Without Tier 1 no pass is needed. A few users send all requests, more than the limits allow.
    let own = [("roles", "auth,catalog,queue,tickets"), ("limits.enabled", "false")];
    let settings: Vec<_> = SETTINGS.into_iter().chain(own).collect();
    let installed = bench.install("queue", &settings)?;
    let disk = bench.dir.describe()?;
    let (mut lines, joins) = fill(bench, &installed)?;
    let started = start(bench, &bench.dir.path("queue"))?;
    let mut report = Report::default();
    let (rates, rebuilt) = answers(&args.turns, bench, &installed, &mut lines, &mut report)?;
    report.line("");
    tell(&mut report, &rates, &joins, &started, rebuilt);
    report.line(format_args!("disk     {disk}"));
    Ok(report)
}

/// Fills the rooms in process. The time this takes is the measurement of durable joins.
fn fill(bench: &Bench<'_>, installed: &Installed) -> anyhow::Result<(Vec<Line>, Vec<Measured>)> {
    let runtimes = Runtimes::new()?;
    let filled = runtimes.server.block_on(async {
        let tasks = Tasks::new();
        let (domains, events, _) = open(bench, installed, &tasks).await?;
        let (mut lines, mut joins) = (Vec::new(), Vec::new());
        for (event, waiting) in events.into_iter().zip(SIZES) {
            let people: Vec<UserId> = (0..waiting).map(|_| bench.ids.next()).collect();
            let progress = Progress::start(&format!("joining, {}", named(waiting)));
            joins.push(join(domains.queue(), event, &people, bench, &progress).await);
            progress.end();
            let asking = people.iter().step_by(waiting.div_ceil(ASKING)).copied().collect();
            lines.push(Line { event, waiting, asking });
        }
        // A task that does not stop in time is dropped with its runtime.
        let _ = tasks.shutdown(STOP).await;
        Ok((lines, joins))
    });
    runtimes.stop();
    filled
}

/// Opens the rooms as `urr serve` does and creates an event for each. Also returns how long opening
/// took.
async fn open(
    bench: &Bench<'_>,
    installed: &Installed,
    tasks: &Tasks,
) -> anyhow::Result<(Box<dyn Domains>, Vec<EventId>, Duration)> {
    let domains = installed.app.open(tasks).await?;
    let began = bench.clock.ticks();
    domains.open_rooms().await?;
    let took = bench.clock.ticks().saturating_sub(began);
    let events = hold_requests::events(&*domains.catalog(), SIZES.len(), &bench.clock, &bench.ids).await?;
    Ok((domains, events, took))
}

async fn join(
    queue: Arc<dyn Queue>,
    event: EventId,
    people: &[UserId],
    bench: &Bench<'_>,
    progress: &Progress,
) -> Measured {
    let joiner = Joiner {
        queue,
        event,
        people: Arc::from(people),
        next: Arc::default(),
        clock: bench.clock.clone(),
        ids: bench.ids.clone(),
    };
    // The run ends when all users have joined.
    let pace = Pace { clients: JOINERS, warm_up: Duration::ZERO, span: Duration::from_hours(1) };
    load::run(vec![joiner; JOINERS], pace, &bench.clock, &progress.done).await
}

/// Calls the service as a route handler would.
#[derive(Clone)]
struct Joiner {
    queue: Arc<dyn Queue>,
    event: EventId,
    people: Arc<[UserId]>,
    next: Arc<AtomicUsize>,
    clock: Clock,
    ids: Ids,
}

impl Client for Joiner {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let user = *self.people.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        let actor = Actor::User { id: user, role: Role::User };
        let ctx = Ctx::new(self.ids.next(), actor, self.clock.clone(), REQUEST_BUDGET);
        let request =
            CheckIn { event: self.event, ticket: None, pass: None, line_since: None, only_resume: false };
        Some(self.queue.check(&ctx, request).await.map(drop).map_err(|error| error.to_string()))
    }
}

/// The measurements of a start.
struct Started {
    /// With empty and with full rooms: time to the first response, and time until ready.
    took: [(Duration, Duration); 2],
    /// Memory per waiting user, in bytes.
    bytes: f64,
}

/// Starts the `urr` process on empty rooms and on full ones.
fn start(bench: &Bench<'_>, full: &Path) -> anyhow::Result<Started> {
    let runtimes = Runtimes::new()?;
    let seen = runtimes.load.block_on(async {
        let mut seen = Vec::new();
        for dir in [&*bench.dir.path("empty"), full] {
            let mut launch = Launch::of_this_program(dir)?.set("demo", "false").set("log.filter", "warn");
            for (key, value) in SETTINGS {
                launch = launch.set(key, value);
            }
            // The first start also creates files.
            launch.up().await?.stop().await?;
            let mut running = launch.start()?;
            let answered = running.answers("/health/live").await?;
            let ready = running.ready().await?;
            seen.push(((answered, ready), running.memory().resident()));
            running.stop().await?;
        }
        anyhow::Ok(seen)
    });
    runtimes.stop();
    let [(empty, before), (full, after)] = seen?[..] else { unreachable!("one result per directory") };
    let people: usize = SIZES.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "memory and user counts are far below 2^52")]
    let bytes = after.saturating_sub(before) as f64 / people as f64;
    Ok(Started { took: [empty, full], bytes })
}

/// The response to a status request of a waiting user.
async fn typical(installed: &Installed, rooms: SocketAddr, line: &Line) -> anyhow::Result<Answer> {
    let user = *line.asking.first().context("the room has no waiting users")?;
    let (path, token) = (format!("/api/queue/status/{}", line.event), installed.tokens.of(user, Role::User));
    let mut connection = Connection::open(rooms).await?;
    Answer::read(&connection.send(&Request::get(&path).by(&token)).await?.text())
}

/// Measures over HTTP, on rooms restored from the journal. Returns the rate of each row, and how
/// long restoring took.
fn answers(
    turns: &Turns,
    bench: &Bench<'_>,
    installed: &Installed,
    lines: &mut [Line],
    report: &mut Report,
) -> anyhow::Result<(Vec<f64>, Duration)> {
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let whole =
        |routes| runtimes.server.block_on(installed.app.serve_behind_gateway("queue", routes, &tasks));
    let (domains, events, rebuilt) = runtimes.server.block_on(open(bench, installed, &tasks))?;
    // As in `urr serve`, users are admitted and idle ones are removed.
    runtimes.server.block_on(async { domains.start_admission() });
    let rooms = whole(domains.queue_routes())?;
    let answer = runtimes.load.block_on(typical(installed, rooms, &lines[SIZES.len() - 1]))?;
    let nothing = whole(noop::routes(answer))?;
    let mut rows = scenes_of(turns, bench, installed, lines, rooms, events[0]);
    let longest = Arc::clone(&rows[SIZES.len() - 1].source);
    // The same request bytes for both, so that parsing costs the same.
    rows.insert(
        0,
        BenchRow { name: "no-op handler, same door".to_owned(), address: nothing, source: longest },
    );
    let words = Words {
        title: "the waiting room in front of an event".to_owned(),
        command: "queue",
        first: "no-op handler behind the same door",
        judged: SIZES.len(),
        target_percent: TARGET_PERCENT,
    };
    Ok((turns.run(runtimes, &tasks, &rows, &bench.clock, &words, report)?, rebuilt))
}

fn scenes_of(
    turns: &Turns,
    bench: &Bench<'_>,
    installed: &Installed,
    lines: &mut [Line],
    rooms: SocketAddr,
    fresh: EventId,
) -> Vec<BenchRow> {
    let request = |method: &str, verb: &str, event: EventId, user: UserId| {
        let (path, token) = (format!("/api/queue/{verb}/{event}"), installed.tokens.of(user, Role::User));
        Request { method, ..Request::get(&path).by(&token) }.bytes("127.0.0.1")
    };
    let mut rows = Vec::new();
    for line in lines {
        hold_requests::shuffle(&mut line.asking, &bench.ids);
        let asks = line.asking.iter().map(|user| request("GET", "status", line.event, *user)).collect();
        let name = format!("status, {}", named(line.waiting));
        rows.push(BenchRow { name, address: rooms, source: RequestSource::endless(asks) });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred thousand")]
    let joins = (turns.asked().as_secs_f64() * JOINS_PER_SECOND) as usize;
    let joins = (0..joins).map(|_| request("POST", "check", fresh, bench.ids.next()));
    rows.push(BenchRow {
        name: "join, durable".to_owned(),
        address: rooms,
        source: RequestSource::once(joins.collect()),
    });
    rows
}

fn tell(report: &mut Report, rates: &[f64], joins: &[Measured], started: &Started, rebuilt: Duration) {
    let verdict = |met: bool| if met { "met" } else { "missed" };
    let growth = rates[1] / rates[SIZES.len()];
    report.line(format_args!(
        "growth   a status with {} costs {growth:.2} times one with {}; the target of {TARGET_GROWTH} is {}",
        named(SIZES[2]),
        named(SIZES[0]),
        verdict(growth <= TARGET_GROWTH)
    ));
    for (waiting, joined) in SIZES.iter().zip(joins) {
        let (rate, failed) = (joined.rate(), joined.failed);
        report.line(format_args!(
            "joins    {} a second in process until there are {}, {failed} refused; the target of {} is {}",
            thousands(rate),
            named(*waiting),
            thousands(TARGET_JOINS),
            verdict(rate >= TARGET_JOINS && failed == 0)
        ));
    }
    let (bytes, [empty, full]) = (started.bytes, started.took);
    report.line(format_args!(
        "memory   {bytes:.0} bytes for each who waits, in urr serve after a start; the target of {TARGET_BYTES} is {}",
        verdict(bytes <= TARGET_BYTES)
    ));
    report.line(format_args!(
        "start    urr serve answers after {:.2} s with empty rooms and {:.2} s with {}; the target of {} ms is {}",
        empty.0.as_secs_f64(),
        full.0.as_secs_f64(),
        named(SIZES.iter().sum()),
        TARGET_ANSWER.as_millis(),
        verdict(empty.0.max(full.0) <= TARGET_ANSWER)
    ));
    report.line(format_args!(
        "ready    the line answers too after {:.2} s and {:.2} s",
        empty.1.as_secs_f64(),
        full.1.as_secs_f64()
    ));
    report.line(format_args!(
        "rebuild  those are read back in {:.2} s; the target of {} s is {}",
        rebuilt.as_secs_f64(),
        TARGET_REBUILD.as_secs(),
        verdict(rebuilt < TARGET_REBUILD)
    ));
}
