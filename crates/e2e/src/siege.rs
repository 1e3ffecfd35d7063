//! Buy, kill, restart, compare: the loop of the kill -9 and power-loss tests.

use std::{collections::BTreeSet, path::Path, time::Duration};

use anyhow::{Context as _, ensure};
use urr_kernel::Clock;

use urr_stampede::buyers::{Buyers, SeatSale, Tally, ledger::Violation};

use crate::{
    http::Connection,
    powerloss::{Disk, Syncs},
    program::{self, Launch, Running},
    rng::SeededRng,
    shop::{self, Buyer, NewEvent},
};

/// Concurrent clients.
const CLIENTS: usize = 8;

/// Buyers in all. Each holds at most 4 seats, so 96 of them can hold 384.
const BUYERS: usize = 96;

/// Seats on sale: about twice what the buyers can hold, so that many requests succeed and many
/// fail.
const SEATS: usize = 800;

/// Latest time of a kill, in milliseconds from the start of the rush.
const LATEST_KILL_MS: u64 = 350;

/// Latest time of a kill during recovery, in milliseconds from the start of the process.
const LATEST_EARLY_KILL_MS: u64 = 60;

/// Percentage of recoveries that are killed too, and the maximum in a row.
const EARLY_KILLS: u64 = 25;
const MAX_EARLY_KILLS: usize = 3;

/// Older holds compared after every restart. All are compared at the end.
const OLDER_PER_CYCLE: usize = 40;

/// How the process ends in the middle of a rush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// kill -9.
    Kill,
    /// SIGTERM, after which it must drain and exit with 0.
    Terminate,
}

/// The result of a siege.
#[derive(Debug, Default)]
pub struct Report {
    /// Kills in the middle of a rush.
    pub kills: u64,
    /// Kills during a start.
    pub early_kills: u64,
    /// Requests by outcome.
    pub tally: Tally,
    /// Comparisons of acknowledged holds with the server's state, over all restarts.
    pub compared: u64,
    /// Time until ready of each start.
    pub starts: Vec<Duration>,
    /// Total duration.
    pub took: Duration,
    /// The violations found.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Acknowledged holds that are gone.
    pub fn lost(&self) -> usize {
        self.violations.iter().filter(|found| matches!(found, Violation::Lost { .. })).count()
    }

    /// Prints the figures.
    pub fn print(&self, test: &str) {
        let Tally { held, refused, released, repeated, unanswered, resolved } = self.tally;
        let mut starts = self.starts.clone();
        starts.sort_unstable();
        let start = |percent: usize| starts.get(starts.len() * percent / 100).copied().unwrap_or_default();
        eprintln!(
            "{test}: {} kills and {} during recovery in {:.1?}: {held} holds and {released} releases acknowledged, \
             {refused} refused, {repeated} repeated, {unanswered} unanswered, {resolved} held on retry; {} comparisons, \
             {} violations, {} of them lost holds; ready after p50 {:.0?}, p99 {:.0?}",
            self.kills,
            self.early_kills,
            self.took,
            self.compared,
            self.violations.len(),
            self.lost(),
            start(50),
            start(99),
        );
    }

    /// Returns the first few violations as an error.
    pub fn all_kept(&self) -> anyhow::Result<()> {
        let first: Vec<String> = self.violations.iter().take(10).map(ToString::to_string).collect();
        ensure!(first.is_empty(), "{} violations, such as:\n{}", self.violations.len(), first.join("\n"));
        Ok(())
    }
}

/// A server under siege.
#[derive(Debug)]
pub struct Siege<'d> {
    launch: Launch,
    disk: Option<&'d Disk>,
    crowd: Buyers,
    rng: SeededRng,
    clock: Clock,
    end: End,
    report: Report,
}

impl<'d> Siege<'d> {
    /// Creates an event and the buyers with a first, undisturbed start. With `disk`, later starts
    /// discard what was not synced, and only the fsyncs it names take effect.
    pub async fn prepare(
        dir: &Path,
        disk: Option<(&'d Disk, Syncs)>,
        mut rng: SeededRng,
    ) -> anyhow::Result<Self> {
        let data_dir = disk.map_or_else(|| dir.join("data"), |(disk, _)| disk.root().to_owned());
        let mut launch = program::launch(&data_dir)?;
        let with_disk = |mut launch: Launch, syncs: Syncs| {
            for (key, value) in disk.iter().flat_map(|(disk, _)| disk.env(syncs)) {
                launch = launch.env(key, value);
            }
            launch
        };
        let running = with_disk(launch.clone(), Syncs::All).up().await?;
        let admin = Buyer::new(&launch, "admin").await?;
        let buyers = Buyer::many(&launch, BUYERS).await?;
        let mut connection = Connection::to(running.address);
        let event = NewEvent { seats: SEATS as u64, opens_in_secs: -60 };
        let event = shop::create_event(&mut connection, &admin, event).await?;
        let mut seats: Vec<_> =
            shop::seat_map(&mut connection, event).await?.into_iter().map(|(seat, _)| seat).collect();
        seats.truncate(SEATS);
        drop(connection);
        ensure!(running.terminate().await?.success(), "the first server did not exit with 0");
        if let Some((disk, syncs)) = disk {
            disk.power_back()?;
            launch = with_disk(launch, syncs);
        }
        let crowd = Buyers::new(dir, CLIENTS, &buyers, SeatSale { event, seats }, &mut rng)?;
        let report = Report::default();
        Ok(Self {
            launch,
            disk: disk.map(|(disk, _)| disk),
            crowd,
            rng,
            clock: Clock::system(),
            end: End::Kill,
            report,
        })
    }

    /// Sets how the process ends.
    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Runs `cycles` rounds of buying, killing and comparing, or fewer once `enough` returns true.
    /// Then compares everything.
    pub async fn run(mut self, cycles: u64, enough: impl Fn(&Report) -> bool) -> anyhow::Result<Report> {
        let began = self.clock.ticks();
        let mut running = self.recover().await?;
        while self.report.kills < cycles && !enough(&self.report) {
            running =
                self.cycle(running).await.with_context(|| format!("cycle {}", self.report.kills + 1))?;
            if self.report.kills.is_multiple_of(50) {
                eprintln!("… {} kills, {} violations", self.report.kills, self.report.violations.len());
            }
        }
        self.compare_everything(&running).await?;
        ensure!(running.terminate().await?.success(), "the last server did not exit with 0");
        self.report.tally = self.crowd.tally();
        self.report.took = self.clock.ticks().saturating_sub(began);
        Ok(self.report)
    }

    async fn cycle(&mut self, mut running: Running) -> anyhow::Result<Running> {
        let moment = Duration::from_millis(self.rng.below(LATEST_KILL_MS));
        let end = self.end;
        let stop = async {
            tokio::time::sleep(moment).await;
            match end {
                End::Kill => running.kill().await,
                End::Terminate => {
                    let status = running.terminate().await?;
                    ensure!(status.success(), "after SIGTERM it ended with {status}");
                    Ok(())
                }
            }
        };
        self.crowd.rush(self.launch.listen, stop).await??;
        self.report.kills += 1;
        let (touched, broken) = self.crowd.read_journals()?;
        self.report.violations.extend(broken);
        self.power_back()?;
        let running = self.recover().await?;
        self.compare(&running, touched).await?;
        Ok(running)
    }

    /// Starts the server; sometimes kills it before it is ready and starts it again.
    async fn recover(&mut self) -> anyhow::Result<Running> {
        for _ in 0..MAX_EARLY_KILLS {
            if !self.rng.chance(EARLY_KILLS) {
                break;
            }
            let mut starting = self.launch.start()?;
            tokio::time::sleep(Duration::from_millis(self.rng.below(LATEST_EARLY_KILL_MS))).await;
            starting.kill().await?;
            self.report.early_kills += 1;
            self.power_back()?;
        }
        let mut running = self.launch.start()?;
        self.report.starts.push(running.ready().await?);
        Ok(running)
    }

    fn power_back(&self) -> anyhow::Result<()> {
        if let Some(disk) = self.disk {
            disk.power_back()?;
        }
        Ok(())
    }

    /// Compares what this cycle touched, and a sample of older holds.
    async fn compare(&mut self, running: &Running, mut touched: BTreeSet<String>) -> anyhow::Result<()> {
        let all: Vec<&String> = self.crowd.ledger().holds().map(|(key, _)| key).collect();
        for _ in 0..OLDER_PER_CYCLE.min(all.len()) {
            touched.insert(all[self.rng.index(all.len())].clone());
        }
        self.report.compared += touched.len() as u64;
        let broken = self.crowd.verify(running.address, touched).await?;
        self.report.violations.extend(broken);
        Ok(())
    }

    async fn compare_everything(&mut self, running: &Running) -> anyhow::Result<()> {
        self.crowd.settle(running.address).await?;
        let (_, broken) = self.crowd.read_journals()?;
        self.report.violations.extend(broken);
        let all: Vec<String> = self.crowd.ledger().holds().map(|(key, _)| key.clone()).collect();
        self.report.compared += all.len() as u64;
        let mut broken = self.crowd.verify(running.address, all).await?;
        broken.extend(self.crowd.ledger().doubled());
        broken.extend(self.crowd.verify_map(running.address).await?);
        broken.extend(self.crowd.verify_count(running.address).await?);
        self.report.violations.extend(broken);
        Ok(())
    }
}
