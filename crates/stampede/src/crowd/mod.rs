//! `urr stampede queue`: a crowd that waits for hours, simulated in minutes against the real
//! binary.
//!
//! Real are the process, its files, its disk, every request and every response. Simulated is the
//! server's clock, which runs `--speed` times as fast (`clock_speed`): an hour of waiting takes an
//! hour divided by the speed, and the load per second is multiplied by it. Fans use the same clock:
//! a poll interval of sixty seconds is sixty of its seconds. Nothing else is scaled; time limits of
//! requests and measurements are in real time.
//!
//! The room is paused while the fans join, as before a sale, so that their first positions are the
//! order in which they joined. Then it opens and admits at the rate at which the last fan waits
//! `--minutes`.

mod fans;
mod progress;
mod schedule;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};
use urr_kernel::{Clock, EventId, Ids};

use self::{
    fans::{Fans, ServerUnderLoad},
    progress::Progress,
    schedule::Crowd,
};
use crate::{
    bench::thousands,
    disk::WorkDir,
    program::{Launch, Running},
    report::Report,
    tokens,
};

/// Target: requests per fan in a queue of five hours.
const AIM: f64 = 15.0;

/// Requests per second that two cores answer beside their other work; it determines the speed. A
/// request that is a second late is late by `--speed` seconds of the server's clock, and at the
/// front of the queue the idle timeout is ten minutes.
const ANSWERED_PER_SECOND: u32 = 5_000;

/// Poll interval of fans far from the front.
const FAR_SECS: u32 = 3_600;

/// Requests of a fan who is no longer far from the front.
const NEAR_REQUESTS: u32 = 10;

/// The fastest clock: each of its seconds ends with admissions that are committed to disk.
const MAX_SPEED: u32 = 100;

/// How long an admitted fan takes to buy, by the server's clock.
const STAY: Duration = Duration::from_mins(2);

/// The threshold in seconds of admissions: a stay, and the time until a fan notices the admission.
const SLOTS_SECS: u32 = 300;

/// A stampede is aborted after this many times its expected duration, plus the time below.
const PATIENCE: u32 = 4;
const PATIENCE_MORE: Duration = Duration::from_mins(10);

/// Options of `urr stampede queue`.
#[derive(Debug, Args)]
pub struct StampedeArgs {
    /// Number of fans
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    fans: u32,
    /// How long the last fan waits, in minutes of the server's clock
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=1_200))]
    minutes: u32,
    /// Speed of the server's clock; derived from the number of fans by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    speed: Option<u32>,
    /// Connections that the fans share
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    connections: u16,
    /// Directory for the server's temporary files
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl StampedeArgs {
    /// How long the last fan waits, by the server's clock.
    fn span(&self) -> Duration {
        Duration::from_mins(self.minutes.into())
    }

    /// The fastest clock at which all requests are answered in time. Fans far from the front poll
    /// once an hour, others more often the closer they are.
    fn speed(&self) -> u32 {
        let far = self.fans / FAR_SECS;
        let near = self.pace() * NEAR_REQUESTS;
        self.speed.unwrap_or_else(|| (ANSWERED_PER_SECOND / (far + near)).clamp(1, MAX_SPEED))
    }

    /// Admissions per second.
    fn pace(&self) -> u32 {
        self.fans.div_ceil(self.minutes * 60).max(1)
    }

    fn command(&self) -> String {
        let Self { fans, minutes, connections, .. } = self;
        let speed = self.speed();
        format!(
            "urr stampede queue --fans {fans} --minutes {minutes} --speed {speed} --connections {connections}"
        )
    }
}

/// Starts a server, runs the crowd against it, and reports. SIGINT and SIGTERM end the run early:
/// the server is stopped, its files are removed, and the report covers the time until then.
pub fn run(args: &StampedeArgs) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.context("could not start a runtime")?;
    let ran = runtime.block_on(async {
        let interrupted = interrupted()?;
        let dir = WorkDir::in_dir(&args.dir)?;
        let stampede = Stampede::prepare(args, &dir)?;
        // This returns after the server has ended, so nothing writes to the directory during its
        // removal.
        stampede.run(interrupted).await
    });
    runtime.shutdown_background();
    ran
}

/// The first SIGINT or SIGTERM. From this call on they do not end the process.
fn interrupted() -> anyhow::Result<impl Future<Output = Signal>> {
    let mut interrupt = unix::signal(SignalKind::interrupt())?;
    let mut terminate = unix::signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => Signal::INT,
            _ = terminate.recv() => Signal::TERM,
        }
    })
}

/// A prepared run.
struct Stampede<'a> {
    args: &'a StampedeArgs,
    launch: Launch,
    fans: Arc<Fans>,
    crowd: Arc<Crowd>,
    clock: Clock,
}

impl<'a> Stampede<'a> {
    fn prepare(args: &'a StampedeArgs, dir: &WorkDir) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let secret = tokens::random_secret(&ids);
        let launch = launch(args, &dir.path("data"), &secret)?;
        let server = ServerUnderLoad { address: launch.listen, speed: args.speed(), stay: STAY };
        let fans = Arc::new(Fans::new(server, &secret, &clock, &ids)?);
        Ok(Self { args, launch, fans, crowd: Arc::new(Crowd::new(args.fans)), clock })
    }

    async fn run(&self, interrupted: impl Future<Output = Signal>) -> anyhow::Result<Report> {
        let mut running = self.launch.start()?;
        let memory = running.memory();
        let ran = tokio::select! {
            ran = self.whole(&mut running) => ran,
            signal = interrupted => {
                let mut report = self.report(memory.peak(), Some(signal));
                report.line("stopped  before the end: whether the room was fair was not checked");
                Ok(report)
            }
        };
        // After an error or a signal. Its files are removed anyway, so it need not drain.
        running.kill_if_running().await?;
        ran
    }

    async fn whole(&self, running: &mut Running) -> anyhow::Result<Report> {
        running.ready().await?;
        let args = self.args;
        let limit = (args.span() / args.speed()) * PATIENCE + PATIENCE_MORE;
        let progress = Progress::start(&self.crowd, running.memory(), args.speed(), &self.clock);
        let fans = Arc::clone(&self.fans);
        let event = fans.run(Arc::clone(&self.crowd), args.connections.into(), limit).await;
        drop(progress);
        let event = event?;
        let mut report = self.report(running.memory().peak(), None);
        running.stop().await?;
        self.verify(event, &mut report).await?;
        Ok(report)
    }

    /// Checks the journal with `urr queue verify`. No other process has the files open.
    async fn verify(&self, event: EventId, report: &mut Report) -> anyhow::Result<()> {
        let output = self.launch.command(&["queue", "verify", &event.to_string()]).output().await?;
        report.line(String::from_utf8_lossy(&output.stdout).trim_end());
        match output.status.code() {
            Some(0) => {}
            Some(1) => report.faults.push("urr queue verify found that the room was not fair".to_owned()),
            _ => {
                let why = String::from_utf8_lossy(&output.stderr);
                report.faults.push(format!("urr queue verify could not tell ({}): {why}", output.status));
            }
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of requests are far below 2^52")]
    fn report(&self, peak: u64, signal: Option<Signal>) -> Report {
        let (args, tally, mut report) = (self.args, self.crowd.tally(), Report::default());
        let took = self.clock.ticks();
        let StampedeArgs { fans, minutes, .. } = args;
        let opened = self.fans.opened().unwrap_or(took);
        report.line(format_args!(
            "stampede: {} fans, the last of whom waits {minutes} minutes",
            thousands((*fans).into())
        ));
        report.conditions(args.command());
        report.line("");
        let waited = took.saturating_sub(opened) * args.speed();
        report.line(format_args!(
            "time     {:.0} s of coming, then {:.0} s by the server's clock in {:.0} real ones: it ran {} times as fast",
            opened.as_secs_f64(),
            waited.as_secs_f64(),
            took.saturating_sub(opened).as_secs_f64(),
            args.speed()
        ));
        let each = tally.requests as f64 / f64::from(*fans);
        let verdict = if each <= AIM { "met" } else { "missed" };
        report.line(format_args!(
            "requests {} in all, {:.0} a second; {each:.1} per fan on average and {} at most; the aim of {AIM} for five hours is {verdict}",
            thousands(tally.requests as f64),
            tally.requests as f64 / took.as_secs_f64(),
            tally.most
        ));
        report.line(format_args!(
            "answers  {:.1} ms on average, {:.0} ms at most; {} were told to come again later",
            tally.answered.as_secs_f64() * 1_000.0 / tally.requests.max(1) as f64,
            tally.slowest.as_secs_f64() * 1_000.0,
            tally.put_off
        ));
        report.line(format_args!("memory   urr serve used {} MiB at most", peak / (1024 * 1024)));
        report.line(format_args!("in       {} of {fans} were let in and went", tally.gone));
        // After a signal, fans who had not joined yet are not missing.
        report.faults = tally.faults(if signal.is_some() { 0 } else { *fans });
        report.interrupted_by = signal.and_then(|signal| u8::try_from(signal.as_raw()).ok());
        if report.faults.is_empty() {
            report.line(
                "order    every place was given once, nobody moved back, nobody was let in before somebody ahead of them",
            );
        }
        report
    }
}

fn launch(args: &StampedeArgs, data_dir: &Path, secret: &str) -> anyhow::Result<Launch> {
    let threshold = (args.pace() * SLOTS_SECS).min(1_000_000);
    Ok(Launch::of_this_program(data_dir)?
        .env("URR_SECURITY_SECRET", secret)
        .set("demo", "false")
        .set("log.filter", "warn")
        // Rate limits count in real minutes, in which fans send many times as many requests.
        .set("limits.enabled", "false")
        .set("clock_speed", args.speed().to_string())
        .set("queue.max_waiting", args.fans.to_string())
        .set("queue.batch", args.pace().to_string())
        .set("queue.threshold", threshold.to_string()))
}
