//! kill -9 in a loop while browsers take Tier 1 numbers: no number is given twice, each browser
//! keeps its number, and admitted ones stay admitted, on every store.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_e2e::{
    http::{Answer, Connection, Request},
    rng::{self, SeededRng, setting},
    stage::Stage,
    stores::Backend,
};
use urr_kernel::EventId;

/// Number of kills; `URR_E2E_FRONT_CYCLES` overrides it. Fewer where the lease of a killed process
/// on the Tier 2 rooms lasts another five seconds.
const CYCLES: u64 = 10;
const ON_POSTGRES: u64 = 3;
/// Concurrent connections that take numbers.
const CONNECTIONS: usize = 8;
/// Latest time of a kill, in milliseconds from the start of a rush.
const LATEST_KILL_MS: u64 = 1_200;
/// Browsers compared after every restart, and at the end.
const SAMPLE: usize = 100;
const LAST_SAMPLE: usize = 1_000;
/// Admissions per second: some in every cycle, and never all visitors.
const RATE: u32 = 40;
/// More than the number of visitors.
const EVERYBODY: u32 = 1_000_000;

/// A browser and its cookies.
#[derive(Clone, Debug)]
struct Visitor {
    number: u64,
    ticket: String,
    cookies: String,
}

/// Takes a number, or returns the one of the cookies.
async fn assign(connection: &mut Connection, event: EventId, cookies: &str) -> anyhow::Result<Visitor> {
    let path = format!("/vwr-api/vwr/assign/{event}");
    let headers = [("cookie", cookies), ("sec-fetch-site", "same-origin")];
    let request = Request { method: "POST", path: &path, headers: &headers, ..Request::default() };
    let answer = connection.send(&request).await?;
    assert_eq!(answer.status, 200, "{}", answer.show());
    let body = answer.json();
    Ok(Visitor {
        number: body["position"].as_u64().context("no number")?,
        ticket: body["requestId"].as_str().context("no ticket")?.to_owned(),
        cookies: kept(&answer),
    })
}

/// The cookies that a browser sends back.
fn kept(answer: &Answer) -> String {
    let lines = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
    lines.filter_map(|(_, line)| line.split(';').next()).collect::<Vec<_>>().join("; ")
}

async fn serving(connection: &mut Connection, event: EventId) -> anyhow::Result<Value> {
    let answer = connection.send(&Request::get(&format!("/vwr/serving/{event}"))).await?;
    assert_eq!(answer.status, 200, "{}", answer.show());
    Ok(answer.json())
}

/// New browsers take numbers until the server is down.
async fn rush(address: SocketAddr, event: EventId) -> Vec<Visitor> {
    let mut taking = JoinSet::new();
    for _ in 0..CONNECTIONS {
        taking.spawn(async move {
            let (mut connection, mut came) = (Connection::to(address), Vec::new());
            while let Ok(visitor) = assign(&mut connection, event, "").await {
                came.push(visitor);
            }
            came
        });
    }
    taking.join_all().await.into_iter().flatten().collect()
}

/// Polls the serving counter until the server is down. Returns the highest value.
async fn watch(address: SocketAddr, event: EventId) -> u64 {
    let (mut connection, mut farthest) = (Connection::to(address), 0);
    while let Ok(line) = serving(&mut connection, event).await {
        let now = line["servingCounter"].as_u64().unwrap();
        assert!(now >= farthest, "the serving counter fell from {farthest} to {now}");
        farthest = now;
    }
    farthest
}

/// All responses, to be compared with the server's state.
#[derive(Default)]
struct ObservedPositions {
    by_number: HashMap<u64, Visitor>,
    highest: u64,
    farthest: u64,
}

impl ObservedPositions {
    /// New numbers are unique, and higher than any before the last restart.
    fn hear(&mut self, came: Vec<Visitor>, farthest: u64) {
        let before = self.highest;
        for visitor in came {
            let number = visitor.number;
            assert!(number > before, "{number} was given after a restart, and {before} before it");
            self.highest = self.highest.max(number);
            assert!(self.by_number.insert(number, visitor).is_none(), "{number} was given twice");
        }
        self.farthest = self.farthest.max(farthest);
    }

    /// A sample of numbers: the newest, which a server would lose first, and random others.
    fn sample(&self, size: usize, rng: &mut SeededRng) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.by_number.keys().copied().collect();
        numbers.sort_unstable();
        let newest = numbers.iter().rev().take(size / 2).copied();
        let any = (0..(size / 2).min(numbers.len())).map(|_| numbers[rng.index(numbers.len())]);
        newest.chain(any).collect()
    }

    /// The serving counter has not decreased, and these browsers have their numbers.
    async fn compare(&self, stage: &Stage, event: EventId, numbers: &[u64]) -> anyhow::Result<()> {
        let mut connection = stage.connect();
        let line = serving(&mut connection, event).await?;
        let (now, tail) = (line["servingCounter"].as_u64().unwrap(), line["totalInQueue"].as_u64().unwrap());
        assert!(
            now >= self.farthest,
            "the serving counter was {} and is {now} after a restart",
            self.farthest
        );
        assert!(now <= tail && self.highest <= tail, "{line}, and {} was given", self.highest);
        for number in numbers {
            let visitor = &self.by_number[number];
            let again = assign(&mut connection, event, &visitor.cookies).await?;
            assert_eq!(again.number, *number, "a browser's number changed");
            let path = format!("/vwr-api/vwr/check/{event}/{}", visitor.ticket);
            let headers = [("cookie", visitor.cookies.as_str())];
            let turn = connection.send(&Request { headers: &headers, ..Request::get(&path) }).await?;
            let (status, turn) = (turn.status, turn.json());
            assert_eq!((status, turn["position"].as_u64()), (200, Some(*number)), "{turn}");
            assert!(turn["admitted"] == true || *number > self.farthest, "{number} was let on: {turn}");
        }
        Ok(())
    }
}

async fn operate(stage: &Stage, event: EventId, what: &str, body: Value) -> anyhow::Result<()> {
    let path = format!("/api/admin/vwr/{what}/{event}");
    let answer = stage.connect().send(&Request::post(&path, &body).by(&stage.admin.token)).await?;
    ensure!(answer.status == 200, "{what}: {}", answer.show());
    Ok(())
}

async fn kill_nine_neither_repeats_nor_loses_a_number(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(launch) = backend.launch(dir.path()).await? else { return Ok(()) };
    let mut rng = rng::of_this_run("front_kill");
    let mut stage = Stage::up(launch.set("redis.deadline_ms", "5000")).await?;
    let (event, _) = stage.event(-60).await?;
    operate(&stage, event, "activate", json!({ "rate": RATE })).await?;
    let cycles =
        setting("URR_E2E_FRONT_CYCLES", if backend == Backend::Postgres { ON_POSTGRES } else { CYCLES });
    let mut observed = ObservedPositions::default();
    for _ in 0..cycles {
        let moment = Duration::from_millis(rng.below(LATEST_KILL_MS));
        let kill = async {
            tokio::time::sleep(moment).await;
            stage.running.kill().await
        };
        let address = stage.launch.listen;
        let (came, farthest, killed) = tokio::join!(rush(address, event), watch(address, event), kill);
        killed?;
        observed.hear(came, farthest);
        stage.running = stage.launch.up().await?;
        observed.compare(&stage, event, &observed.sample(SAMPLE, &mut rng)).await?;
    }
    let given = observed.by_number.len();
    eprintln!(
        "front_kill: {cycles} kills, {given} numbers up to {}, {} admitted",
        observed.highest, observed.farthest
    );
    ensure!(given > 500 && observed.farthest > 0, "too few numbers were taken to prove anything");
    ensure!(observed.farthest < observed.highest, "all visitors were admitted before the end");

    operate(&stage, event, "advance", json!({ "batchSize": EVERYBODY })).await?;
    observed.farthest = observed.highest;
    observed.compare(&stage, event, &observed.sample(LAST_SAMPLE, &mut rng)).await?;
    ensure!(stage.running.terminate().await?.success(), "the last server did not exit with 0");
    Ok(())
}

on_backends! { kill_nine_neither_repeats_nor_loses_a_number: embedded Embedded, postgres Postgres, redis Redis }
