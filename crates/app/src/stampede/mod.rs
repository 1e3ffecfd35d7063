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

mod crowd;
mod fans;
mod show;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use urr_kernel::{Clock, Ids};

use self::{
    crowd::{Crowd, Tally},
    fans::{Fans, Place},
    show::Show,
};
use crate::{
    bench::{disk::Bench, machine::Machine, report::thousands},
    cli::Flags,
    failure::Failure,
    say::say,
    served::{self, Served},
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
pub(crate) struct StampedeArgs {
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

/// Lets the crowd loose, waits for its end and tells what happened.
pub(crate) fn run(args: &StampedeArgs, flags: &Flags) -> Result<(), Failure> {
    if flags.config.is_some() || !flags.settings().is_empty() {
        return Err(Failure::new(
            "a stampede is for a server of its own on loopback and for no other: it takes no settings",
        ));
    }
    let bench = Bench::in_dir(&args.dir)?;
    let (data_dir, clock) = (bench.path("data"), Clock::system());
    std::fs::create_dir(&data_dir).map_err(|error| Failure::because(data_dir.display(), &error))?;
    let ids = Ids::random(clock.clone());
    let secret =
        format!("{:032x}{:032x}", u128::from_le_bytes(ids.bytes()), u128::from_le_bytes(ids.bytes()));
    let served = serve(args, &data_dir, &secret, &clock)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("the runtime did not start", &error))?;
    let place = Place { address: served.address, speed: args.speed(), stay: STAY };
    let fans = Arc::new(Fans::new(place, &secret, &clock, &ids)?);
    let crowd = Arc::new(Crowd::new(args.fans));
    let limit = (args.span() / args.speed()) * PATIENCE + PATIENCE_MORE;
    let show = Show::start(&crowd, &served, args.speed(), &clock);
    let ran = runtime.block_on(Arc::clone(&fans).run(Arc::clone(&crowd), args.connections.into(), limit));
    show.end();
    runtime.shutdown_background();
    let (event, opened) = ran?;
    let (tally, took) = (crowd.tally(), clock.ticks());
    let peak = served.peak_memory();
    served.stop(&clock)?;
    tell(args, &tally, (opened, took), peak)?;
    // The journal is judged by the same command that an operator would use, after everybody else has let go of it.
    let verify = served::command(
        &data_dir.canonicalize().unwrap_or(data_dir),
        &["queue", "verify", &event.to_string()],
    )
    .and_then(|mut command| command.status());
    match verify {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if status.code() == Some(1) => {
            Err(Failure::new("urr queue verify found that the room was not fair"))
        }
        Ok(status) => Err(Failure::new(format!("urr queue verify could not tell: {status}"))),
        Err(error) => Err(Failure::because("urr queue verify cannot be run", &error)),
    }
}

fn serve(
    args: &StampedeArgs,
    data_dir: &std::path::Path,
    secret: &str,
    clock: &Clock,
) -> Result<Served, Failure> {
    let (speed, pace) = (args.speed().to_string(), args.pace().to_string());
    let fans = args.fans.to_string();
    let threshold = (args.pace() * SLOTS_SECS).min(1_000_000).to_string();
    let settings = [
        ("demo", "false"),
        ("log.filter", "warn"),
        // They count by real minutes, in which fans ask many times as often.
        ("limits.enabled", "false"),
        ("clock_speed", &speed),
        ("queue.max_waiting", &fans),
        ("queue.batch", &pace),
        ("queue.threshold", &threshold),
    ];
    Served::start(data_dir, &settings, &[("URR_SECURITY_SECRET", secret)], clock)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of requests are far below 2^52")]
fn tell(
    args: &StampedeArgs,
    tally: &Tally,
    (opened, took): (Duration, Duration),
    peak: u64,
) -> Result<(), Failure> {
    let StampedeArgs { fans, minutes, .. } = args;
    say!("stampede: {} fans, the last of whom waits {minutes} minutes", thousands((*fans).into()));
    for line in Machine::here().lines() {
        say!("{line}");
    }
    say!("again    {}", args.command());
    say!("");
    let waited = took.saturating_sub(opened) * args.speed();
    say!(
        "time     {:.0} s of coming, then {:.0} s by the server's clock in {:.0} real ones: it ran {} times as fast",
        opened.as_secs_f64(),
        waited.as_secs_f64(),
        took.saturating_sub(opened).as_secs_f64(),
        args.speed()
    );
    let each = tally.requests as f64 / f64::from(*fans);
    let verdict = if each <= AIM { "met" } else { "missed" };
    say!(
        "requests {} in all, {:.0} a second; {each:.1} per fan on average and {} at most; the aim of {AIM} for five hours is {verdict}",
        thousands(tally.requests as f64),
        tally.requests as f64 / took.as_secs_f64(),
        tally.most
    );
    say!(
        "answers  {:.1} ms on average, {:.0} ms at most; {} were told to come again later",
        tally.answered.as_secs_f64() * 1_000.0 / tally.requests.max(1) as f64,
        tally.slowest.as_secs_f64() * 1_000.0,
        tally.put_off
    );
    say!("memory   urr serve used {} MiB at most", peak / (1024 * 1024));
    say!("in       {} of {fans} were let in and went", tally.gone);
    let faults = tally.faults(*fans);
    if faults.is_empty() {
        say!(
            "order    every place was given once, nobody moved back, nobody was let in before somebody ahead of them"
        );
        return Ok(());
    }
    Err(Failure(faults))
}
