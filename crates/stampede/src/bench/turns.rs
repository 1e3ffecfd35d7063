//! Rows that take turns, so that whatever else the machine does meanwhile happens to all of them.

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
    load::{Deck, Pace},
    table::{self, Measured, Row},
};
use crate::report::Report;

/// How long background work may take to end.
pub(super) const STOP: Duration = Duration::from_secs(5);

/// Not measured at the start of each round.
const WARM_UP: Duration = Duration::from_millis(500);

/// How rows that take turns are measured.
#[derive(Debug, Args)]
pub struct Turns {
    /// Seconds each round of each row is measured
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(super) seconds: u64,
    /// Turns; the rows take turns, and many short ones say more on a shared machine than a few long ones
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub(super) rounds: u16,
    /// Clients at the same time, each with a connection of its own
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
}

/// One kind of request and what answers it.
pub(super) struct Scene {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) deck: Arc<Deck>,
}

/// What is said about the rows.
pub(super) struct Words {
    /// What was measured.
    pub(super) title: String,
    /// The command after `urr bench`.
    pub(super) command: &'static str,
    /// What the first row is.
    pub(super) first: &'static str,
    /// Which row is judged, from zero.
    pub(super) judged: usize,
    /// The share of the first row that it should reach.
    pub(super) target_percent: f64,
}

impl Turns {
    /// For how long each row is asked in all, measured or not.
    pub(super) fn asked(&self) -> Duration {
        (WARM_UP + Duration::from_secs(self.seconds)) * u32::from(self.rounds)
    }

    /// Measures every row in every round, adds one table to the report, and stops what serves the rows. Returns the
    /// rate of each row.
    pub(super) fn run(
        &self,
        runtimes: Runtimes,
        tasks: &Tasks,
        scenes: &[Scene],
        clock: &Clock,
        words: &Words,
        report: &mut Report,
    ) -> anyhow::Result<Vec<f64>> {
        let names: Vec<String> = scenes.iter().map(|scene| scene.name.clone()).collect();
        let sums = self.rounds(&names, words.judged, |row, pace, done| {
            let scene = &scenes[row];
            runtimes.send(&scene.deck, scene.address, clock, pace, done)
        });
        // What does not end in time ends with its runtime.
        let _ = runtimes.server.block_on(tasks.shutdown(STOP));
        runtimes.stop();
        Ok(self.tell(words, names, sums?, report))
    }

    /// Measures every row in every round. Answers with the sum of each row, and with the share of the first row that the judged one
    /// reached in each round.
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

/// Serves a row on a port of its own.
pub(super) fn serve(
    runtimes: &Runtimes,
    tasks: &Tasks,
    service: impl Respond,
    limits: Limits,
) -> anyhow::Result<SocketAddr> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = runtimes.server.block_on(Server::bind(listen)).context("a row cannot be served")?;
    let (address, token) = (server.local_addr()?, tasks.token());
    runtimes.server.block_on(async {
        tasks.spawn("bench.row", async move {
            // The only error is the listener's; then requests fail and the row says so.
            let _ = server.serve(service, limits, token).await;
        });
    });
    Ok(address)
}
