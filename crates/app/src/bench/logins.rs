//! Everybody signs in at once: who gets in, who is told to wait, what it costs in memory, and whether anybody else notices.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use serde_json::json;
use tokio::{sync::Barrier, task::JoinSet, time::sleep};
use urr_kernel::Clock;

use super::{
    Progress, Runtimes,
    disk::Bench,
    load::{self, Wire},
    machine::{self, Machine},
    report::Measured,
    scenes,
};
use crate::{failure::Failure, say::say, serve::Running};

/// What the others ask meanwhile.
const STATUS: &str = "/api/time";

/// How many others there are, and how often each of them asks: 200 questions a second.
const OTHERS: usize = 4;
const ASK_EVERY: Duration = Duration::from_millis(20);

/// What most of the others should not wait longer for.
const TARGET: Duration = Duration::from_millis(50);

/// Accounts. Each may be tried ten times a minute, so a flood of 2,000 meets every limit there is.
const ACCOUNTS: usize = 100;

/// Accounts that are made at a time: as many as hash at once, and one that waits.
const MAKERS: usize = 3;

const PASSWORD: &str = "correct horse battery staple";

/// How a flood of sign-ins is measured.
#[derive(Debug, Args)]
pub(crate) struct LoginsArgs {
    /// Clients that sign in at the same time, each with a connection and an address of its own
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    clients: u16,
    /// Seconds they keep coming
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
}

/// How often each answer was given.
type Answers = BTreeMap<(u16, String), u64>;

/// What was seen.
struct Seen {
    answers: Answers,
    status: Measured,
    /// Resident memory in MiB before, at most, and at the end.
    memory: [u64; 3],
}

/// Measures and prints.
pub(super) fn run(args: &LoginsArgs) -> Result<(), Failure> {
    let bench = Bench::in_dir(".".as_ref())?;
    let ground = scenes::ground();
    // Each client says where it comes from, so that limits see as many addresses as there are clients.
    let settings = [("http.trusted_proxies", "127.0.0.1")];
    let (values, config) = scenes::setup(&bench.path("logins"), &settings, &ground.ids)?;
    let runtimes = Runtimes::new()?;
    let running = runtimes.server.block_on(Running::start(values, config))?;
    let progress = Progress::start("sign-ins");
    let seen = runtimes.load.block_on(flood(running.public, args, &ground.clock));
    progress.end();
    runtimes.server.block_on(running.stop())?;
    runtimes.stop();
    tell(args, &seen.map_err(|error| Failure::because("the server cannot be reached", &error))?)
}

async fn flood(address: SocketAddr, args: &LoginsArgs, clock: &Clock) -> io::Result<Seen> {
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
        for (answer, count) in part.map_err(io::Error::other)?? {
            *answers.entry(answer).or_default() += count;
        }
    }
    while let Some(part) = others.join_next().await {
        status.add(part.map_err(io::Error::other)??);
    }
    status.latencies.sort_unstable();
    Ok(Seen { answers, status, memory: [before, peak, machine::memory_mib()] })
}

async fn make_accounts(address: SocketAddr) -> io::Result<()> {
    let mut makers = JoinSet::new();
    for maker in 0..MAKERS {
        makers.spawn(async move {
            let mut wire = Wire::connect(address).await?;
            for number in (maker..ACCOUNTS).step_by(MAKERS) {
                let agreed = |kind: &str| json!({ "type": kind, "agreed": true });
                let body = json!({
                    "email": email(number), "password": PASSWORD, "name": "Bench",
                    "agreements": [agreed("SERVICE"), agreed("PRIVACY")],
                });
                let from = format!("192.0.2.{number}");
                let reply = wire.ask(&post("/api/auth/register", &from, &body.to_string())).await?;
                if reply.status != 201 {
                    return Err(io::Error::other(format!("an account cannot be made: {}", reply.body)));
                }
            }
            Ok(())
        });
    }
    while let Some(made) = makers.join_next().await {
        made.map_err(io::Error::other)??;
    }
    Ok(())
}

fn email(number: usize) -> String {
    format!("bench{number}@example.com")
}

fn post(path: &str, from: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: {from}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Signs in again and again. Whoever is told to wait, waits.
async fn client(
    address: SocketAddr,
    number: u32,
    until: Duration,
    clock: Clock,
    start: Arc<Barrier>,
) -> io::Result<Answers> {
    let from = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + number).to_string();
    let account = email(usize::try_from(number).expect("a few thousand") % ACCOUNTS);
    let body = json!({ "email": account, "password": PASSWORD }).to_string();
    let request = post("/api/auth/login", &from, &body);
    let mut wire = Wire::connect(address).await?;
    start.wait().await;
    let mut answers = Answers::new();
    while clock.ticks() < until {
        let reply = wire.ask(&request).await?;
        *answers.entry((reply.status, reply.code())).or_default() += 1;
        let wait = reply.retry_after.unwrap_or_default();
        sleep(wait.min(until.saturating_sub(clock.ticks()))).await;
    }
    Ok(answers)
}

/// Wants nothing but the time.
async fn other(address: SocketAddr, until: Duration, clock: Clock) -> io::Result<Measured> {
    let mut wire = Wire::connect(address).await?;
    let request = format!("GET {STATUS} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").into_bytes();
    let (mut measured, began) = (Measured::default(), clock.ticks());
    while clock.ticks() < until {
        let sent = clock.ticks();
        let reply = wire.ask(&request).await?;
        if reply.status == 200 {
            measured.latencies.push(clock.ticks().saturating_sub(sent));
        } else {
            measured.failed += 1;
        }
        sleep(ASK_EVERY).await;
    }
    measured.took = clock.ticks().saturating_sub(began);
    Ok(measured)
}

fn tell(args: &LoginsArgs, seen: &Seen) -> Result<(), Failure> {
    let LoginsArgs { clients, seconds } = args;
    say!("sign-ins: {clients} clients at once for {seconds} s, each from its own address, waiting as told");
    for line in Machine::here().lines() {
        say!("{line}");
    }
    say!("again    urr bench logins --clients {clients} --seconds {seconds}");
    say!("");
    let mut unexpected = 0;
    for ((status, code), count) in &seen.answers {
        say!("{count:>8}  {status} {code}");
        if !matches!(status, 200 | 429 | 503) {
            unexpected += count;
        }
    }
    let [before, peak, after] = seen.memory;
    say!("");
    say!(
        "memory   {before} MiB before, {peak} MiB at most, {after} MiB at the end, server and clients together"
    );
    let (p50, p99) = (seen.status.percentile(50), seen.status.percentile(99));
    let verdict = if p99 < TARGET { "met" } else { "missed" };
    say!(
        "status   GET {STATUS} answered {} times meanwhile: p50 {:.1} ms, p99 {:.1} ms; the target of {} ms is {verdict}",
        seen.status.latencies.len(),
        load::millis(p50),
        load::millis(p99),
        TARGET.as_millis(),
    );
    if unexpected + seen.status.failed == 0 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{unexpected} sign-ins and {} questions got another answer than they should",
        seen.status.failed
    )))
}
