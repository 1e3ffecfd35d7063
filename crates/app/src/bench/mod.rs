//! `urr bench`: how fast this machine is, beside what it could be at best. One table per run: the same work on every kind of
//! storage, and a handler that does nothing behind the same edge, measured in the same run.

mod bare;
pub(crate) mod disk;
mod gateway;
mod goods;
pub(crate) mod load;
mod logins;
pub(crate) mod machine;
mod noop;
mod queue;
pub(crate) mod report;
mod scenes;
mod turns;
mod vwr;

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use clap::{Args, Subcommand};
use tokio::runtime::Runtime;
use urr_kernel::Clock;

use self::{
    disk::Bench,
    load::Pace,
    machine::Machine,
    report::{Measured, Row},
    scenes::Scene,
    turns::Turns,
};
use crate::{failure::Failure, say::say};

/// Not measured: connections, caches and the allocator settle within it.
const WARM_UP: Duration = Duration::from_secs(1);

/// What can be measured.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
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
pub(crate) struct HoldsArgs {
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
    /// What to type to measure the same again. A password stays with whoever knows it.
    fn command(&self) -> String {
        let postgres = if self.postgres.is_some() { " --postgres \"$URL\"" } else { "" };
        let only = if self.only.is_empty() { String::new() } else { format!(" --only '{}'", self.only) };
        format!("urr bench holds --seconds {} --clients {}{postgres}{only}", self.seconds, self.clients)
    }
}

/// Measures and prints.
pub(crate) fn run(command: &BenchCommand) -> Result<(), Failure> {
    match command {
        BenchCommand::Holds(args) => holds(args),
        BenchCommand::Gateway(args) => gateway::run(args),
        BenchCommand::Logins(args) => logins::run(args),
        BenchCommand::Queue(args) => queue::run(args),
        BenchCommand::Vwr(args) => vwr::run(args),
    }
}

fn holds(args: &HoldsArgs) -> Result<(), Failure> {
    let bench = Bench::in_dir(&args.dir)?;
    let disk = bench.describe()?;
    let mut scenes = Scene::all(args.postgres.as_deref());
    scenes.retain(|scene| matches!(scene, Scene::Noop) || scene.name().contains(&args.only));
    let mut rows = Vec::with_capacity(scenes.len());
    for scene in scenes {
        let outcome = measure(&scene, args, &bench);
        rows.push(Row {
            name: scene.name().to_owned(),
            outcome: outcome.map_err(|Failure(lines)| lines.join("; ")),
        });
    }
    say!(
        "two-seat holds: {} clients, {} s each after {} s of warm-up",
        args.clients,
        args.seconds,
        WARM_UP.as_secs()
    );
    for line in Machine::here().lines() {
        say!("{line}");
    }
    say!("disk     {disk}");
    say!("again    {}", args.command());
    say!("");
    say!("{}", report::table(&mut rows).trim_end());
    let broken = rows.iter().filter(|row| row.outcome.as_ref().map_or(true, |measured| measured.failed > 0));
    let broken: Vec<String> = broken.map(|row| format!("{} did not work as it should", row.name)).collect();
    if broken.is_empty() { Ok(()) } else { Err(Failure(broken)) }
}

fn measure(scene: &Scene, args: &HoldsArgs, bench: &Bench) -> Result<Measured, Failure> {
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
    fn new() -> Result<Self, Failure> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let runtime = |name: &str, threads: usize| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .thread_name(name)
                .worker_threads(threads)
                .enable_all()
                .build();
            runtime.map_err(|error| Failure::because("the runtime did not start", &error))
        };
        // A client does a small part of the work a server does, so half as many threads keep it busy.
        Ok(Self { server: runtime("bench-server", cores)?, load: runtime("bench-load", cores.div_ceil(2))? })
    }

    fn stop(self) {
        /// Everything was waited for before; what is left has nothing to say.
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
                // Nobody is left to be told when stderr is closed.
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
