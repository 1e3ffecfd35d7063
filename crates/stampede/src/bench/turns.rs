//! Rows that take turns, so that other load on the machine affects all of them alike.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use urr_http::{Limits, Respond, Server};
use urr_jobs::Tasks;
use urr_kernel::Clock;

use super::{
    Progress, Runtimes,
    load::{Pace, RequestSource},
    table::{self, Measured, Row},
};
use crate::report::Report;

/// Time limit for stopping background tasks.
pub(super) const STOP: Duration = Duration::from_secs(5);

/// Warm-up at the start of each round, not measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// Options of benchmarks whose rows take turns.
#[derive(Debug, Args)]
pub struct Turns {
    /// Seconds per round and row
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(super) seconds: u64,
    /// Rounds; many short ones are more reliable on a shared machine than a few long ones
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub(super) rounds: u16,
    /// Concurrent clients, each with its own connection
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
}

/// One kind of request and the server that answers it.
pub(super) struct BenchRow {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) source: Arc<RequestSource>,
}

/// The texts of the report.
pub(super) struct Words {
    /// What was measured.
    pub(super) title: String,
    /// The command after `urr bench`.
    pub(super) command: &'static str,
    /// What the first row is.
    pub(super) first: &'static str,
    /// Index of the row with the target.
    pub(super) judged: usize,
    /// The share of the first row that it should reach, in percent.
    pub(super) target_percent: f64,
}

impl Turns {
    /// Total time of requests to each row, measured or not.
    pub(super) fn asked(&self) -> Duration {
        (WARM_UP + Duration::from_secs(self.seconds)) * u32::from(self.rounds)
    }

    /// Measures every row in every round, adds one table to the report, and stops the servers.
    /// Returns the rate of each row.
    pub(super) fn run(
        &self,
        runtimes: Runtimes,
        tasks: &Tasks,
        rows: &[BenchRow],
        clock: &Clock,
        words: &Words,
        report: &mut Report,
    ) -> anyhow::Result<Vec<f64>> {
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let sums = self.rounds(&names, words.judged, |row, pace, done| {
            let row = &rows[row];
            runtimes.send(&row.source, row.address, clock, pace, done)
        });
        // A task that does not stop in time is dropped with its runtime.
        let _ = runtimes.server.block_on(tasks.shutdown(STOP));
        runtimes.stop();
        Ok(self.tell(words, names, sums?, report))
    }

    /// Measures every row in every round. Returns the sum of each row, and per round the share of
    /// the first row that the judged one reached.
    pub(super) fn rounds(
        &self,
        names: &[String],
        judged: usize,
        mut measure: impl FnMut(usize, Pace, &Arc<AtomicU64>) -> anyhow::Result<Measured>,
    ) -> anyhow::Result<(Vec<Measured>, Vec<f64>)> {
        let span = Duration::from_secs(self.seconds);
        let pace = Pace { clients: usize::from(self.clients), warm_up: WARM_UP, span };
        let mut sums: Vec<Measured> = names.iter().map(|_| Measured::default()).collect();
        let mut shares = Vec::new();
        for round in 1..=self.rounds {
            let mut rates = Vec::new();
            for (row, (name, sum)) in names.iter().zip(&mut sums).enumerate() {
                let progress = Progress::start(&format!("{name}, round {round} of {}", self.rounds));
                let measured = measure(row, pace, &progress.done);
                progress.end();
                let measured = measured?;
                rates.push(measured.rate());
                sum.add(measured);
            }
            shares.push(rates[judged] / rates[0] * 100.0);
        }
        Ok((sums, shares))
    }

    /// Adds one table to the report. Returns the rate of each row.
    pub(super) fn tell(
        &self,
        words: &Words,
        names: Vec<String>,
        (sums, mut shares): (Vec<Measured>, Vec<f64>),
        report: &mut Report,
    ) -> Vec<f64> {
        let rates = sums.iter().map(Measured::rate).collect();
        let rows = names.into_iter().zip(sums).map(|(name, sum)| Row { name, outcome: Ok(sum) });
        let mut rows: Vec<Row> = rows.collect();
        let Self { seconds, rounds, clients } = self;
        let Words { title, command, first, judged, target_percent } = words;
        report.line(format_args!(
            "{title}: {clients} clients, {rounds} rounds of {seconds} s for each row, in turns"
        ));
        report.conditions(format_args!(
            "urr bench {command} --seconds {seconds} --rounds {rounds} --clients {clients}"
        ));
        table::print(report, &mut rows);
        let each: Vec<String> = shares.iter().map(|share| format!("{share:.1}")).collect();
        shares.sort_unstable_by(f64::total_cmp);
        let median = shares[shares.len() / 2];
        report.line("");
        report.line(format_args!("by round {} %", each.join(" ")));
        let verdict = if median >= *target_percent { "met" } else { "missed" };
        let judged = &rows[*judged].name;
        report.line(format_args!(
            "median   {judged}: {median:.1} % of the {first}; the target of {target_percent} % is {verdict}"
        ));
        rates
    }
}

/// Serves a row on its own port.
pub(super) fn serve(
    runtimes: &Runtimes,
    tasks: &Tasks,
    service: impl Respond,
    limits: Limits,
) -> anyhow::Result<SocketAddr> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server =
        runtimes.server.block_on(Server::bind(listen)).context("could not open a listener for a row")?;
    let (address, token) = (server.local_addr()?, tasks.token());
    runtimes.server.block_on(async {
        tasks.spawn("bench.row", async move {
            // If the listener fails, requests fail, and the row shows it.
            let _ = server.serve(service, limits, token).await;
        });
    });
    Ok(address)
}
