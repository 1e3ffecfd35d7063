//! `urr stampede queue`: a crowd that waits for hours, in minutes, against the program as it is shipped.
//!
//! What is real: the process, its files, its disk, every request and every answer. What is not: the wall clock of the server, which runs
//! `--speed` times as fast (`clock_speed`), so that an hour of waiting takes an hour divided by that, and the server carries as many
//! times the load per second that it would. Fans live by the same clock: told to come back in sixty seconds they do so after sixty of its
//! seconds. Nothing else is scaled; time limits of requests and measurements are real.
//!
//! The room is paused while the fans come, as it is before a sale begins, so that the places they are told at first are exactly
//! the order in which they came; then it opens, and lets in as many each second as it takes for the last to wait as long as
//! `--minutes` says.

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
    fans::{Fans, Place},
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

/// Requests per fan that a line of five hours should not exceed.
const AIM: f64 = 15.0;

/// Requests a second that two cores answer beside everything else they do here; the speed is chosen by it. Whoever gets to ask a second
/// too late is late by `--speed` seconds of the server's clock, and at the front of the line nobody may be silent for more than ten minutes.
const ANSWERED_PER_SECOND: u32 = 5_000;

/// How often those ask who are far from their turn.
const FAR_SECS: u32 = 3_600;

/// Requests of a fan who is no longer far from their turn.
const NEAR_REQUESTS: u32 = 10;

/// The server's clock runs no faster: each of its seconds ends with people let in, and that on disk.
const MAX_SPEED: u32 = 100;

/// How many seconds of the clock somebody who is in takes to buy.
const STAY: Duration = Duration::from_mins(2);

/// Slots for so many seconds of admissions: a stay, and the time until somebody notices that it is their turn.
const SLOTS_SECS: u32 = 300;

/// However slow the machine is, a stampede ends after this many times the time it should take, and this long.
const PATIENCE: u32 = 4;
const PATIENCE_MORE: Duration = Duration::from_mins(10);

/// How a crowd is let loose.
#[derive(Debug, Args)]
pub struct StampedeArgs {
    /// How many come
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    fans: u32,
    /// How long the last of them waits, in minutes of the server's clock
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=1_200))]
    minutes: u32,
    /// How many times as fast the server's clock runs; chosen by the number of fans when left out
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    speed: Option<u32>,
    /// Connections over which the fans ask
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    connections: u16,
    /// Where the server's files are made and removed again
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl StampedeArgs {
    /// How long the last one waits, by the server's clock.
    fn span(&self) -> Duration {
        Duration::from_mins(self.minutes.into())
    }

    /// How fast the clock may run for everybody to be answered in time. Those who are far ask once an hour, and those who are near more
    /// and more often.
    fn speed(&self) -> u32 {
        let far = self.fans / FAR_SECS;
        let near = self.pace() * NEAR_REQUESTS;
        self.speed.unwrap_or_else(|| (ANSWERED_PER_SECOND / (far + near)).clamp(1, MAX_SPEED))
    }

    /// People let in each second.
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

/// Starts a server, lets the crowd loose on it, and reports what happened. SIGINT and SIGTERM end the run early: the server
/// and its files are removed, and the report is about what happened until then.
pub fn run(args: &StampedeArgs) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.context("the runtime did not start")?;
    let ran = runtime.block_on(async {
        let interrupted = interrupted()?;
        let dir = WorkDir::in_dir(&args.dir)?;
        let stampede = Stampede::prepare(args, &dir)?;
        // It returns after the server has ended: nothing writes into the directory any more when it is removed.
        stampede.run(interrupted).await
    });
    runtime.shutdown_background();
    ran
}

/// The first signal that asks to stop. From this call on the process does not die of them.
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

/// A run that was prepared.
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
        let place = Place { address: launch.listen, speed: args.speed(), stay: STAY };
        let fans = Arc::new(Fans::new(place, &secret, &clock, &ids)?);
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
        // After an error or a signal. Its files are removed with it, so it need not drain.
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

    /// Checks the journal with the command that operators use, on files that no other process has open.
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
        // Fans who were still on their way when a signal came are not missing.
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
        // They count by real minutes, in which fans ask many times as often.
        .set("limits.enabled", "false")
        .set("clock_speed", args.speed().to_string())
        .set("queue.max_waiting", args.fans.to_string())
        .set("queue.batch", args.pace().to_string())
        .set("queue.threshold", threshold.to_string()))
}
