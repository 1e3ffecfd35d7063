//! `urr bench`: one table per run, with a baseline from the same run, such as a no-op handler behind the same gateway.

mod bare;
mod gateway;
mod goods;
mod holds;
mod load;
mod logins;
mod noop;
mod queue;
mod table;
mod turns;
mod vwr;

use std::{
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use tokio::runtime::Runtime;
use urr_kernel::{Clock, Ids};

use self::{
    holds::Scene,
    load::{Deck, HttpClient, Pace},
    table::{Measured, Row},
    turns::Turns,
};
use crate::{
    disk::WorkDir,
    host::{Host, Installation},
    report::Report,
    tokens::{self, Tokens},
};

pub(crate) use self::table::thousands;

/// Not measured: connections, caches and the allocator settle within it.
const WARM_UP: Duration = Duration::from_secs(1);

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Two seats held for a new buyer, durable, again and again
    ///
    /// Every row is measured for the same time with the same number of clients, each of which sends its next request when
    /// the last one was answered. The load comes from the same process, so it takes its share of the machine.
    Holds(HoldsArgs),
    /// What the front door costs: the same handler behind all of it and behind the check of a token alone
    ///
    /// The rows take turns, so that whatever else the machine does meanwhile happens to both.
    Gateway(Turns),
    /// Thousands sign in at once: who gets in, what it takes in memory, and whether others notice
    Logins(logins::LoginsArgs),
    /// The waiting room in front of an event: status beside a handler that does nothing, joins, memory, and the start with a full room
    ///
    /// With 1,000, 100,000 and 1,000,000 waiting. The rows take turns, so that whatever else the machine does meanwhile happens to
    /// all.
    Queue(queue::QueueArgs),
    /// Tier 1 of the waiting room: checks beside a handler that does nothing, and people who take a number
    ///
    /// The rows take turns, so that whatever else the machine does meanwhile happens to all.
    Vwr(Turns),
}

/// How holds are measured.
#[derive(Debug, Args)]
pub struct HoldsArgs {
    /// Seconds each row is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Clients at the same time, each with a connection of its own
    #[arg(long, default_value_t = 192, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
    /// Also measure on this PostgreSQL database, which is filled and not cleaned up: use one you can drop
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Only the baseline and the rows whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Where the benchmark's files are made and removed again: on the disk that matters to you
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl HoldsArgs {
    /// The command that measures the same again, without the password of the database.
    fn command(&self) -> String {
        let postgres = if self.postgres.is_some() { " --postgres \"$URL\"" } else { "" };
        let only = if self.only.is_empty() { String::new() } else { format!(" --only '{}'", self.only) };
        format!("urr bench holds --seconds {} --clients {}{postgres}{only}", self.seconds, self.clients)
    }
}

/// Measures.
pub fn run(command: &BenchCommand, host: &dyn Host) -> anyhow::Result<Report> {
    match command {
        BenchCommand::Holds(args) => holds(args, &Bench::in_dir(&args.dir, host)?),
        BenchCommand::Gateway(turns) => gateway::run(turns, &Bench::here(host)?),
        BenchCommand::Logins(args) => logins::run(args, &Bench::here(host)?),
        BenchCommand::Queue(args) => queue::run(args, &Bench::in_dir(&args.dir, host)?),
        BenchCommand::Vwr(turns) => vwr::run(turns, &Bench::here(host)?),
    }
}

/// What every benchmark starts from.
struct Bench<'h> {
    host: &'h dyn Host,
    dir: WorkDir,
    clock: Clock,
    ids: Ids,
}

impl<'h> Bench<'h> {
    fn here(host: &'h dyn Host) -> anyhow::Result<Self> {
        Self::in_dir(Path::new("."), host)
    }

    fn in_dir(dir: &Path, host: &'h dyn Host) -> anyhow::Result<Self> {
        let clock = Clock::system();
        Ok(Self { host, dir: WorkDir::in_dir(dir)?, ids: Ids::random(clock.clone()), clock })
    }

    /// An installation with files of its own.
    fn install(&self, name: &str, settings: &[(&str, &str)]) -> anyhow::Result<Installed> {
        let (secret, data_dir) = (tokens::random_secret(&self.ids), self.dir.path(name));
        let data_dir = data_dir.to_string_lossy();
        let own = [
            ("data_dir", &*data_dir),
            ("listen", "127.0.0.1:0"),
            ("demo", "false"),
            // `urr bench queue` measures the waiting room; the others measure what is behind it.
            ("queue.guard", "false"),
            ("security.secret", &secret),
        ];
        let settings: Vec<(&str, &str)> = own.iter().chain(settings).copied().collect();
        let tokens = Tokens::new(&secret, &self.clock, &self.ids)?;
        Ok(Installed { app: self.host.configure(&settings)?, secret, tokens })
    }
}

/// An installation, and tokens that it accepts.
struct Installed {
    app: Box<dyn Installation>,
    secret: String,
    tokens: Tokens,
}

fn holds(args: &HoldsArgs, bench: &Bench<'_>) -> anyhow::Result<Report> {
    let disk = bench.dir.describe()?;
    let mut scenes = Scene::all(args.postgres.as_deref());
    scenes.retain(|scene| matches!(scene, Scene::Noop) || scene.name().contains(&args.only));
    let mut rows = Vec::with_capacity(scenes.len());
    for scene in scenes {
        let outcome = measure(&scene, args, bench).map_err(|error| format!("{error:#}").replace('\n', "; "));
        rows.push(Row { name: scene.name().to_owned(), outcome });
    }
    let mut report = Report::default();
    report.line(format_args!(
        "two-seat holds: {} clients, {} s each after {} s of warm-up",
        args.clients,
        args.seconds,
        WARM_UP.as_secs()
    ));
    report.conditions(args.command());
    report.line(format_args!("disk     {disk}"));
    table::print(&mut report, &mut rows);
    Ok(report)
}

fn measure(scene: &Scene, args: &HoldsArgs, bench: &Bench<'_>) -> anyhow::Result<Measured> {
    let progress = Progress::start(scene.name());
    let span = Duration::from_secs(args.seconds);
    let pace = Pace { clients: usize::from(args.clients), warm_up: WARM_UP, span };
    let runtimes = Runtimes::new()?;
    let measured = scene.run(&runtimes, bench, pace, &progress.done);
    runtimes.stop();
    progress.end();
    measured
}

/// The server's threads and the load's, apart from each other as they would be on two machines.
struct Runtimes {
    server: Runtime,
    load: Runtime,
}

impl Runtimes {
    fn new() -> anyhow::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let runtime = |name: &str, threads: usize| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .thread_name(name)
                .worker_threads(threads)
                .enable_all()
                .build();
            runtime.context("the runtime did not start")
        };
        // A client does a small part of the work a server does, so half as many threads keep it busy.
        Ok(Self { server: runtime("bench-server", cores)?, load: runtime("bench-load", cores.div_ceil(2))? })
    }

    /// Lets clients send the requests of a deck.
    fn send(
        &self,
        deck: &Arc<Deck>,
        address: SocketAddr,
        clock: &Clock,
        pace: Pace,
        done: &Arc<AtomicU64>,
    ) -> anyhow::Result<Measured> {
        self.load.block_on(async {
            let clients = HttpClient::connect(pace.clients, address, deck).await;
            let clients = clients.context("the server cannot be reached")?;
            Ok(load::run(clients, pace, clock, done).await)
        })
    }

    fn stop(self) {
        const LEFT: Duration = Duration::from_secs(5);
        self.load.shutdown_timeout(LEFT);
        self.server.shutdown_timeout(LEFT);
    }
}

/// A line on stderr that moves while a row is measured, if somebody looks.
struct Progress {
    done: Arc<AtomicU64>,
    /// Dropped to end the line.
    stop: std::sync::mpsc::Sender<()>,
    shown: thread::JoinHandle<()>,
}

impl Progress {
    #[expect(
        clippy::disallowed_methods,
        reason = "progress is shown while every runtime is busy being measured"
    )]
    fn start(name: &str) -> Self {
        const EVERY: Duration = Duration::from_millis(500);
        let (done, name) = (Arc::new(AtomicU64::new(0)), name.to_owned());
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let counted = Arc::clone(&done);
        let shown = thread::spawn(move || {
            let (clock, live) = (Clock::system(), std::io::stderr().is_terminal());
            let show = |end: &str| {
                let (secs, done) = (clock.ticks().as_secs(), counted.load(Ordering::Relaxed));
                // A closed stderr is not an error.
                let _ = write!(std::io::stderr().lock(), "\r{name}: {secs} s, {done} done{end}");
            };
            while stopped.recv_timeout(EVERY) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                if live {
                    show("");
                }
            }
            show("\n");
        });
        Self { done, stop, shown }
    }

    fn end(self) {
        drop(self.stop);
        // A thread that panicked has already said so.
        let _ = self.shown.join();
    }
}
