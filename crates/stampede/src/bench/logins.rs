//! A burst of sign-ins: how many succeed, how many are refused, the memory used, and the latency of
//! other requests meanwhile.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use tokio::{sync::Barrier, task::JoinSet, time::sleep};
use urr_kernel::Clock;

use super::{Bench, Progress, Runtimes, load, table::Measured};
use crate::{
    http::{Connection, Lost, Request},
    machine, people,
    report::Report,
};

/// The path of the other requests.
const STATUS: &str = "/api/time";

/// Number of clients that send other requests, and the pause of each: 200 requests per second.
const OTHERS: usize = 4;
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Target for the p99 latency of the other requests.
const TARGET: Duration = Duration::from_millis(50);

/// Accounts. Each allows ten attempts a minute, so 2,000 clients reach every rate limit.
const ACCOUNTS: usize = 100;

/// Accounts created concurrently: as many as hash at a time, and one that waits.
const MAKERS: usize = 3;

/// Options of `urr bench logins`.
#[derive(Debug, Args)]
pub struct LoginsArgs {
    /// Clients that sign in concurrently, each with its own connection and address
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    clients: u16,
    /// Duration in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
}

/// Number of responses by status and error code.
type Answers = BTreeMap<(u16, String), u64>;

/// The measurements.
struct LoginResults {
    answers: Answers,
    status: Measured,
    /// Resident memory in MiB: before, peak, and at the end.
    memory: [u64; 3],
}

pub(super) fn run(args: &LoginsArgs, bench: &Bench<'_>) -> anyhow::Result<Report> {
    // Each client sends its own forwarded address, so that rate limits see as many addresses as
    // clients.
    let installed = bench.install("logins", &[("http.trusted_proxies", "127.0.0.1")])?;
    let runtimes = Runtimes::new()?;
    let running = runtimes.server.block_on(installed.app.serve())?;
    let progress = Progress::start("sign-ins");
    let seen = runtimes.load.block_on(flood(running.address(), args, &bench.clock));
    progress.end();
    runtimes.server.block_on(running.stop())?;
    runtimes.stop();
    Ok(tell(args, &seen?))
}

async fn flood(address: SocketAddr, args: &LoginsArgs, clock: &Clock) -> anyhow::Result<LoginResults> {
    make_accounts(address).await?;
    let before = machine::memory_mib();
    let until = clock.ticks() + Duration::from_secs(args.seconds);
    let (mut clients, mut others) = (JoinSet::new(), JoinSet::new());
    let start = Arc::new(Barrier::new(usize::from(args.clients)));
    for number in 0..u32::from(args.clients) {
        clients.spawn(client(address, number, until, clock.clone(), Arc::clone(&start)));
    }
    for _ in 0..OTHERS {
        others.spawn(other(address, until, clock.clone()));
    }
    let mut peak = before;
    while clock.ticks() < until {
        sleep(ASK_EVERY).await;
        peak = peak.max(machine::memory_mib());
    }
    let (mut answers, mut status) = (Answers::new(), Measured::default());
    while let Some(part) = clients.join_next().await {
        for (answer, count) in part?? {
            *answers.entry(answer).or_default() += count;
        }
    }
    while let Some(part) = others.join_next().await {
        status.add(part??);
    }
    status.latencies.sort_unstable();
    Ok(LoginResults { answers, status, memory: [before, peak, machine::memory_mib()] })
}

async fn make_accounts(address: SocketAddr) -> anyhow::Result<()> {
    let mut makers = JoinSet::new();
    for maker in 0..MAKERS {
        makers.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for number in (maker..ACCOUNTS).step_by(MAKERS) {
                let from = format!("192.0.2.{number}");
                let headers = [("x-forwarded-for", from.as_str())];
                people::register_with(&mut connection, &email(number), &headers).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(made) = makers.join_next().await {
        made??;
    }
    Ok(())
}

fn email(number: usize) -> String {
    format!("bench{number}@example.com")
}

/// Signs in repeatedly, and waits as long as `retry-after` says.
async fn client(
    address: SocketAddr,
    number: u32,
    until: Duration,
    clock: Clock,
    start: Arc<Barrier>,
) -> Result<Answers, Lost> {
    let from = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + number).to_string();
    let account = email(usize::try_from(number).expect("a few thousand clients") % ACCOUNTS);
    let mut connection = Connection::open(address).await.map_err(Lost::NotSent)?;
    start.wait().await;
    let mut answers = Answers::new();
    while clock.ticks() < until {
        let headers = [("x-forwarded-for", from.as_str())];
        let answer = people::login_with(&mut connection, &account, people::PASSWORD, &headers).await?;
        *answers.entry((answer.status, answer.code())).or_default() += 1;
        let wait = answer.retry_after().unwrap_or_default();
        sleep(wait.min(until.saturating_sub(clock.ticks()))).await;
    }
    Ok(answers)
}

/// Requests the time periodically.
async fn other(address: SocketAddr, until: Duration, clock: Clock) -> Result<Measured, Lost> {
    let mut connection = Connection::open(address).await.map_err(Lost::NotSent)?;
    let (mut measured, began) = (Measured::default(), clock.ticks());
    while clock.ticks() < until {
        let sent = clock.ticks();
        let answer = connection.send(&Request::get(STATUS)).await?;
        if answer.status == 200 {
            measured.latencies.push(clock.ticks().saturating_sub(sent));
        } else {
            measured.failed += 1;
        }
        sleep(ASK_EVERY).await;
    }
    measured.took = clock.ticks().saturating_sub(began);
    Ok(measured)
}

fn tell(args: &LoginsArgs, seen: &LoginResults) -> Report {
    let (LoginsArgs { clients, seconds }, mut report) = (args, Report::default());
    report.line(format_args!(
        "sign-ins: {clients} clients at once for {seconds} s, each from its own address, waiting as told"
    ));
    report.conditions(format_args!("urr bench logins --clients {clients} --seconds {seconds}"));
    report.line("");
    let mut unexpected = 0;
    for ((status, code), count) in &seen.answers {
        report.line(format_args!("{count:>8}  {status} {code}"));
        if !matches!(status, 200 | 429 | 503) {
            unexpected += count;
        }
    }
    let [before, peak, after] = seen.memory;
    report.line("");
    report.line(format_args!(
        "memory   {before} MiB before, {peak} MiB at most, {after} MiB at the end, server and clients together"
    ));
    let (p50, p99) = (seen.status.percentile(50), seen.status.percentile(99));
    let verdict = if p99 < TARGET { "met" } else { "missed" };
    report.line(format_args!(
        "status   GET {STATUS} answered {} times meanwhile: p50 {:.1} ms, p99 {:.1} ms; the target of {} ms is {verdict}",
        seen.status.latencies.len(),
        load::millis(p50),
        load::millis(p99),
        TARGET.as_millis(),
    ));
    let failed = seen.status.failed;
    if unexpected + failed > 0 {
        report
            .faults
            .push(format!("{unexpected} sign-ins and {failed} status requests got an unexpected answer"));
    }
    report
}
