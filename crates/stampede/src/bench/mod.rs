//! `urr bench`: one table per run, with a baseline from the same run, such as a no-op handler
//! behind the same gateway.

mod bare;
mod gateway;
mod hold_requests;
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
    holds::HoldRow,
    load::{HttpClient, Pace, RequestSource},
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

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Durable holds of two seats, each by a new buyer
    ///
    /// Every row is measured for the same time with the same number of clients. A client sends its
    /// next request after the response to the last one. The load comes from the same process and
    /// uses part of the CPU.
    Holds(HoldsArgs),
    /// Cost of the gateway: the same handler behind all guards, and behind a token check alone
    ///
    /// The rows take turns, so that other load on the machine affects both alike.
    Gateway(Turns),
    /// Thousands of concurrent sign-ins: successes, memory, and the latency of other requests
    Logins(logins::LoginsArgs),
    /// Waiting room of an event: status requests against a no-op handler, joins, memory, start-up
    ///
    /// With 1,000, 100,000 and 1,000,000 users waiting. The rows take turns, so that other load on
    /// the machine affects all alike.
    Queue(queue::QueueArgs),
    /// Site waiting room (Tier 1): checks against a no-op handler, and new visitors
    ///
    /// The rows take turns, so that other load on the machine affects all alike.
    Vwr(Turns),
}

/// Options of `urr bench holds`.
#[derive(Debug, Args)]
pub struct HoldsArgs {
    /// Seconds per row
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Concurrent clients, each with its own connection
    #[arg(long, default_value_t = 192, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
    /// Also measure on this PostgreSQL database; it is filled and not cleaned up: use one you can
    /// drop
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Only the baseline and rows whose name contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Directory for temporary files: choose one on the disk to be measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl HoldsArgs {
    /// The command that repeats the run, without the password of the database.
    fn command(&self) -> String {
        let postgres = if self.postgres.is_some() { " --postgres \"$URL\"" } else { "" };
        let only = if self.only.is_empty() { String::new() } else { format!(" --only '{}'", self.only) };
        format!("urr bench holds --seconds {} --clients {}{postgres}{only}", self.seconds, self.clients)
    }
}

/// Runs a benchmark.
pub fn run(command: &BenchCommand, host: &dyn Host) -> anyhow::Result<Report> {
    match command {
        BenchCommand::Holds(args) => holds(args, &Bench::in_dir(&args.dir, host)?),
        BenchCommand::Gateway(turns) => gateway::run(turns, &Bench::here(host)?),
        BenchCommand::Logins(args) => logins::run(args, &Bench::here(host)?),
        BenchCommand::Queue(args) => queue::run(args, &Bench::in_dir(&args.dir, host)?),
        BenchCommand::Vwr(turns) => vwr::run(turns, &Bench::here(host)?),
    }
}

/// What every benchmark needs.
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

    /// An installation with its own files.
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

/// An installation and the signer of its tokens.
struct Installed {
    app: Box<dyn Installation>,
    secret: String,
    tokens: Tokens,
}

fn holds(args: &HoldsArgs, bench: &Bench<'_>) -> anyhow::Result<Report> {
    let disk = bench.dir.describe()?;
    let mut planned = HoldRow::all(args.postgres.as_deref());
    planned.retain(|row| matches!(row, HoldRow::Noop) || row.name().contains(&args.only));
    let mut rows = Vec::with_capacity(planned.len());
    for row in planned {
        let outcome = measure(&row, args, bench).map_err(|error| format!("{error:#}").replace('\n', "; "));
        rows.push(Row { name: row.name().to_owned(), outcome });
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

fn measure(row: &HoldRow, args: &HoldsArgs, bench: &Bench<'_>) -> anyhow::Result<Measured> {
    let progress = Progress::start(row.name());
    let span = Duration::from_secs(args.seconds);
    let pace = Pace { clients: usize::from(args.clients), warm_up: WARM_UP, span };
    let runtimes = Runtimes::new()?;
    let measured = row.run(&runtimes, bench, pace, &progress.done);
    runtimes.stop();
    progress.end();
    measured
}

/// Separate runtimes for server and load, as if they were on two machines.
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
            runtime.context("could not start a runtime")
        };
        // A client does a small part of a server's work, so half as many threads keep it busy.
        Ok(Self { server: runtime("bench-server", cores)?, load: runtime("bench-load", cores.div_ceil(2))? })
    }

    /// Sends the requests of a deck with concurrent clients.
    fn send(
        &self,
        source: &Arc<RequestSource>,
        address: SocketAddr,
        clock: &Clock,
        pace: Pace,
        done: &Arc<AtomicU64>,
    ) -> anyhow::Result<Measured> {
        self.load.block_on(async {
            let clients = HttpClient::connect(pace.clients, address, source).await;
            let clients = clients.context("could not connect to the server")?;
            Ok(load::run(clients, pace, clock, done).await)
        })
    }

    fn stop(self) {
        const LEFT: Duration = Duration::from_secs(5);
        self.load.shutdown_timeout(LEFT);
        self.server.shutdown_timeout(LEFT);
    }
}

/// A progress line on stderr, if stderr is a terminal.
struct Progress {
    done: Arc<AtomicU64>,
    /// Dropped to end the line.
    stop: std::sync::mpsc::Sender<()>,
    shown: thread::JoinHandle<()>,
}

impl Progress {
    #[expect(clippy::disallowed_methods, reason = "a thread of its own: the runtimes are being measured")]
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
        // A panic was already printed.
        let _ = self.shown.join();
    }
}
