//! What the waiting room in front of an event does per second with a thousand, a hundred thousand and a million waiting, what each of
//! them costs in memory, and how long a start takes that finds them all.

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

use clap::Args;
use urr_contracts::queue::{CheckIn, Queue};
use urr_gateway::{Gateway, table::Service};
use urr_jobs::Tasks;
use urr_kernel::{Actor, EventId, Role, UserId};
use urr_rpc::{Ctx, REQUEST_BUDGET};

use self::noop::Answer;
use super::{
    Progress, Runtimes,
    disk::Bench,
    goods::{self, Tokens},
    load::{self, Client, Deck, Pace, Wire},
    report::{Measured, named, thousands},
    scenes,
    turns::{Scene, Turns, Words, serve},
};
use crate::{
    config::Config,
    failure::Failure,
    gateway,
    say::say,
    serve::prepare,
    served::Served,
    stores::Databases,
    wire::{self, Domains, Ground},
};

/// How many wait in each room.
const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// People of a room who ask over HTTP, spread evenly over its line: enough that no cache holds all of them.
const ASKING: usize = 50_000;

/// People who join at the same time in process. Whoever joins waits for the disk, so it takes many to keep it busy.
const JOINERS: usize = 1_000;

/// Joins over HTTP prepared per second: more than there have ever been.
const JOINS_PER_SECOND: f64 = 40_000.0;

const TARGET_PERCENT: f64 = 85.0;
const TARGET_GROWTH: f64 = 1.3;
const TARGET_JOINS: f64 = 30_000.0;
const TARGET_BYTES: f64 = 150.0;
const TARGET_ANSWER: Duration = Duration::from_millis(300);
const TARGET_REBUILD: Duration = Duration::from_secs(3);

/// What the rooms need: nobody is let in, everybody has room, and nobody is sent away while others are measured.
const SETTINGS: [(&str, &str); 3] =
    [("queue.threshold", "0"), ("queue.max_waiting", "10000000"), ("queue.waiting_idle_secs", "86400")];

/// How the waiting room is measured.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    turns: Turns,
    /// Measure rooms in this Redis instead, beside the bare scripts; it is filled and not cleaned up: use one you can flush
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// Where the benchmark's files are made and removed again: on the disk that matters to you
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: std::path::PathBuf,
}

/// A room and some of the people who wait in it.
struct Line {
    event: EventId,
    waiting: usize,
    asking: Vec<UserId>,
}

/// Measures and prints.
pub(super) fn run(args: &QueueArgs) -> Result<(), Failure> {
    let bench = Bench::in_dir(&args.dir)?;
    if let Some(url) = &args.redis {
        return redis::run(&args.turns, url, &bench);
    }
    let (ground, data_dir) = (scenes::ground(), bench.path("queue"));
    // Tier 1 is another benchmark's, and without it nobody needs its pass.
    let settings: Vec<_> = SETTINGS.into_iter().chain([("roles", "auth,catalog,queue,tickets")]).collect();
    let (_, mut config) = scenes::setup(&data_dir, &settings, &ground.ids)?;
    // The few who ask do so more often than people may.
    config.limits.enabled = false;
    let disk = bench.describe()?;
    let (mut lines, joins) = fill(&config, &ground)?;
    let started = start(&bench, &data_dir, &ground)?;
    let (rates, rebuilt) = answers(&args.turns, &config, &ground, &mut lines)?;
    say!("");
    tell(&rates, &joins, &started, rebuilt);
    say!("disk     {disk}");
    Ok(())
}

/// Lets everybody join, in process. What that took is the measurement of durable joins.
fn fill(config: &Config, ground: &Ground) -> Result<(Vec<Line>, Vec<Measured>), Failure> {
    let runtimes = Runtimes::new()?;
    let filled = runtimes.server.block_on(async {
        let (databases, tasks) = (Databases::open(config)?, Tasks::new());
        prepare(config, &databases, &ground.clock).await?;
        let (queue, events, _) = open(config, &databases, ground, &tasks).await?;
        let (mut lines, mut joins) = (Vec::new(), Vec::new());
        for (event, waiting) in events.into_iter().zip(SIZES) {
            let people: Vec<UserId> = (0..waiting).map(|_| ground.ids.next()).collect();
            let progress = Progress::start(&format!("joining, {}", named(waiting)));
            joins.push(join(&queue, event, &people, ground, &progress).await);
            progress.end();
            let asking = people.iter().step_by(waiting.div_ceil(ASKING)).copied().collect();
            lines.push(Line { event, waiting, asking });
        }
        // What does not end in time ends with its runtime.
        let _ = tasks.shutdown(scenes::STOP).await;
        Ok((lines, joins))
    });
    runtimes.stop();
    filled
}

/// The rooms as `urr serve` opens them, an event for each, and how long it took to open them.
async fn open(
    config: &Config,
    databases: &Databases,
    ground: &Ground,
    tasks: &Tasks,
) -> Result<(Arc<urr_queue::Service>, Vec<EventId>, Duration), Failure> {
    let domains = Domains::build(config, databases, &ground.clock, &ground.ids, tasks)?;
    let (queue, catalog) = (domains.queue.clone(), domains.catalog.clone());
    let queue = queue.expect("the benchmark runs the role");
    let catalog = catalog.expect("the benchmark runs the role");
    let began = ground.clock.ticks();
    queue.open(tasks).await.map_err(|error| Failure::because("the rooms", &error))?;
    let took = ground.clock.ticks().saturating_sub(began);
    let events = goods::events(&*catalog, SIZES.len(), &ground.clock, &ground.ids).await?;
    Ok((queue, events, took))
}

async fn join(
    queue: &Arc<urr_queue::Service>,
    event: EventId,
    people: &[UserId],
    ground: &Ground,
    progress: &Progress,
) -> Measured {
    let (people, next) = (Arc::<[UserId]>::from(people), Arc::new(AtomicUsize::new(0)));
    let joiner = |_| Joiner {
        queue: Arc::clone(queue),
        event,
        people: Arc::clone(&people),
        next: Arc::clone(&next),
        ground: ground.clone(),
    };
    // It ends when everybody has joined.
    let pace = Pace { clients: JOINERS, warm_up: Duration::ZERO, span: Duration::from_hours(1) };
    load::run((0..JOINERS).map(joiner).collect(), pace, &ground.clock, &progress.done).await
}

/// Calls the service as a route handler would.
struct Joiner {
    queue: Arc<urr_queue::Service>,
    event: EventId,
    people: Arc<[UserId]>,
    next: Arc<AtomicUsize>,
    ground: Ground,
}

impl Client for Joiner {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let user = *self.people.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        let Ground { ids, clock, .. } = &self.ground;
        let ctx =
            Ctx::new(ids.next(), Actor::User { id: user, role: Role::User }, clock.clone(), REQUEST_BUDGET);
        let request =
            CheckIn { event: self.event, ticket: None, pass: None, line_since: None, only_resume: false };
        Some(self.queue.check(&ctx, request).await.map(drop).map_err(|error| error.to_string()))
    }
}

/// What a start showed.
struct Started {
    /// With nobody in line, and with everybody: until the first answer, and until it was ready.
    took: [(Duration, Duration); 2],
    /// What each of those who wait costs, in bytes.
    bytes: f64,
}

/// Starts the program as it is shipped, on empty rooms and on full ones.
fn start(bench: &Bench, full: &Path, ground: &Ground) -> Result<Started, Failure> {
    let empty = bench.path("empty");
    std::fs::create_dir(&empty).map_err(|error| Failure::because(empty.display(), &error))?;
    let settings: Vec<_> = SETTINGS.into_iter().chain([("demo", "false"), ("log.filter", "warn")]).collect();
    let mut seen = Vec::new();
    for dir in [&*empty, full] {
        // The first start also makes files.
        Served::start(dir, &settings, &[], &ground.clock)?.stop(&ground.clock)?;
        let served = Served::start(dir, &settings, &[], &ground.clock)?;
        seen.push(((served.answered, served.took), served.meter().bytes()));
        served.stop(&ground.clock)?;
    }
    let [(empty, before), (full, after)] = seen[..] else { unreachable!("two directories") };
    let people: usize = SIZES.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "memory and people are far below 2^52")]
    let bytes = after.saturating_sub(before) as f64 / people as f64;
    Ok(Started { took: [empty, full], bytes })
}

/// What one of those in line is told.
async fn typical(rooms: SocketAddr, line: &Deck) -> Result<Answer, Failure> {
    let broken = |error: std::io::Error| Failure::because("a status", &error);
    let request = line.draw().expect("somebody waits in every line");
    let mut wire = Wire::connect(rooms).await.map_err(broken)?;
    Answer::read(&wire.ask(request).await.map_err(broken)?.body)
}

/// Measures over HTTP, on rooms that were read back. Answers with what each row did per second, and how long reading took.
fn answers(
    turns: &Turns,
    config: &Config,
    ground: &Ground,
    lines: &mut [Line],
) -> Result<(Vec<f64>, Duration), Failure> {
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let memory = gateway::Memory::brand_new(config, &ground.clock);
    let whole = |routes| {
        let guards = gateway::guards(config, &memory, ground);
        wire::public(config, Gateway::new(guards).local(Service::Queue, routes).finish(), ground)
    };
    let (rooms, events, rebuilt) = runtimes.server.block_on(async {
        let databases = Databases::open(config)?;
        let (queue, events, rebuilt) = open(config, &databases, ground, &tasks).await?;
        // As in a process that serves, people are let in and the idle are looked for.
        urr_jobs::run(&tasks, urr_queue::admission(&queue), None, ground.clock.clone());
        // The files stay open for as long as somebody is answered.
        let stop = tasks.token();
        tasks.spawn("bench.files", async move {
            stop.cancelled().await;
            drop(databases);
        });
        Ok::<_, Failure>((whole(urr_queue::routes(&queue)), events, rebuilt))
    })?;
    let rooms = serve(&runtimes, &tasks, rooms, config)?;
    let mut scenes = scenes_of(turns, config, ground, lines, rooms, events[0]);
    let longest = Arc::clone(&scenes[SIZES.len() - 1].deck);
    let answer = runtimes.load.block_on(typical(rooms, &longest))?;
    let nothing = runtimes.server.block_on(async { whole(noop::routes(answer)) });
    let nothing = serve(&runtimes, &tasks, nothing, config)?;
    // The same bytes for both, so that reading a request costs the same.
    scenes.insert(0, Scene { name: "no-op handler, same door".to_owned(), address: nothing, deck: longest });
    let words = Words {
        title: "the waiting room in front of an event".to_owned(),
        command: "queue",
        first: "no-op handler behind the same door",
        judged: SIZES.len(),
        target_percent: TARGET_PERCENT,
    };
    Ok((turns.run(runtimes, &tasks, &scenes, &ground.clock, &words)?, rebuilt))
}

fn scenes_of(
    turns: &Turns,
    config: &Config,
    ground: &Ground,
    lines: &mut [Line],
    rooms: SocketAddr,
    fresh: EventId,
) -> Vec<Scene> {
    let tokens = Tokens::new(config, &ground.clock, &ground.ids);
    let request = |method: &str, verb: &str, event: EventId, user: UserId| {
        let (token, length) = (tokens.of(user), if method == "POST" { "content-length: 0\r\n" } else { "" });
        format!(
            "{method} /api/queue/{verb}/{event} HTTP/1.1\r\nhost: 127.0.0.1\r\n\
             authorization: Bearer {token}\r\n{length}\r\n"
        )
        .into_bytes()
    };
    let mut scenes = Vec::new();
    for line in lines {
        goods::shuffle(&mut line.asking, &ground.ids);
        let asks = line.asking.iter().map(|user| request("GET", "status", line.event, *user)).collect();
        let name = format!("status, {}", named(line.waiting));
        scenes.push(Scene { name, address: rooms, deck: Deck::endless(asks) });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred thousand")]
    let joins = (turns.asked().as_secs_f64() * JOINS_PER_SECOND) as usize;
    let joins = (0..joins).map(|_| request("POST", "check", fresh, ground.ids.next()));
    scenes.push(Scene {
        name: "join, durable".to_owned(),
        address: rooms,
        deck: Deck::once(joins.collect()),
    });
    scenes
}

fn tell(rates: &[f64], joins: &[Measured], started: &Started, rebuilt: Duration) {
    let verdict = |met: bool| if met { "met" } else { "missed" };
    let growth = rates[1] / rates[SIZES.len()];
    say!(
        "growth   a status with {} costs {growth:.2} times one with {}; the target of {TARGET_GROWTH} is {}",
        named(SIZES[2]),
        named(SIZES[0]),
        verdict(growth <= TARGET_GROWTH)
    );
    for (waiting, joined) in SIZES.iter().zip(joins) {
        let (rate, failed) = (joined.rate(), joined.failed);
        say!(
            "joins    {} a second in process until there are {}, {failed} refused; the target of {} is {}",
            thousands(rate),
            named(*waiting),
            thousands(TARGET_JOINS),
            verdict(rate >= TARGET_JOINS && failed == 0)
        );
    }
    let (bytes, [empty, full]) = (started.bytes, started.took);
    say!(
        "memory   {bytes:.0} bytes for each who waits, in urr serve after a start; the target of {TARGET_BYTES} is {}",
        verdict(bytes <= TARGET_BYTES)
    );
    say!(
        "start    urr serve answers after {:.2} s with empty rooms and {:.2} s with {}; the target of {} ms is {}",
        empty.0.as_secs_f64(),
        full.0.as_secs_f64(),
        named(SIZES.iter().sum()),
        TARGET_ANSWER.as_millis(),
        verdict(empty.0.max(full.0) <= TARGET_ANSWER)
    );
    say!(
        "ready    the line answers too after {:.2} s and {:.2} s",
        empty.1.as_secs_f64(),
        full.1.as_secs_f64()
    );
    say!(
        "rebuild  those are read back in {:.2} s; the target of {} s is {}",
        rebuilt.as_secs_f64(),
        TARGET_REBUILD.as_secs(),
        verdict(rebuilt < TARGET_REBUILD)
    );
}
