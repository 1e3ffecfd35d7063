//! Redis fails while users wait and a slot is free: they keep their positions and get 503, no user
//! is admitted, and the room recovers by itself.

use std::time::Duration;

use anyhow::ensure;
use urr_e2e::{
    http::Request,
    line::{self, Ask, Fan, ask, crowd},
    nodes::Cluster,
    stage::Stage,
    stores::{Backend, Stores, through_proxy},
};
use urr_kernel::EventId;
use urr_testkit::{Proxy, fresh_database, until};

const PEOPLE: usize = 20;
const THRESHOLD: usize = 5;
/// Two periods of a circuit breaker.
const COMES_BACK: Duration = Duration::from_secs(20);
/// Runs of the admission worker during the outage.
const RUNS: f64 = 2.0;

/// What can be cut off.
enum Cuttable {
    One(Proxy),
    Cluster(Cluster),
}

impl Cuttable {
    /// The stores of a backend with proxies in front of Redis; `None`, with a message, if one is
    /// missing.
    async fn of(backend: Backend) -> anyhow::Result<Option<(Self, Stores)>> {
        if backend == Backend::Cluster {
            // The shared cluster announces its own addresses, which bypass any proxy.
            let Some(cluster) = Cluster::start().await? else { return Ok(None) };
            let Some(database) = fresh_database(&[]).await else { return Ok(None) };
            let stores = Stores { postgres: database.url, redis: cluster.urls() };
            return Ok(Some((Self::Cluster(cluster), stores)));
        }
        let Some(mut stores) = Stores::of(backend).await else { return Ok(None) };
        let (proxy, url) = through_proxy(&stores.redis).await;
        stores.redis = url;
        Ok(Some((Self::One(proxy), stores)))
    }

    fn proxies(&mut self) -> Vec<&mut Proxy> {
        match self {
            Self::One(proxy) => vec![proxy],
            Self::Cluster(cluster) => cluster.proxies().collect(),
        }
    }

    async fn cut(&mut self) {
        for proxy in self.proxies() {
            proxy.cut().await;
        }
    }

    async fn restore(&mut self) {
        for proxy in self.proxies() {
            proxy.restore().await;
        }
    }
}

/// The sum of a metric of the process.
async fn counted(stage: &Stage, name: &str) -> anyhow::Result<f64> {
    let answer = stage.connect().send(&Request::get("/metrics")).await?;
    let text = String::from_utf8_lossy(&answer.body);
    let lines = text.lines().filter(|line| line.starts_with(name));
    Ok(lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum())
}

/// Every user gets 503 with `retry-after`.
async fn see_it(stage: &Stage, event: EventId, fans: &[&Fan]) -> anyhow::Result<()> {
    let mut connection = stage.connect();
    for what in [Ask::Status, Ask::Check] {
        for fan in fans {
            let answer = ask(&mut connection, fan, event, what).await?;
            let told = (answer.status, answer.code());
            assert_eq!(told, (503, "http.unavailable".to_owned()), "{}", answer.show());
            assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
        }
    }
    Ok(())
}

async fn redis_outage_keeps_waiting_users(backend: Backend) -> anyhow::Result<()> {
    let Some((mut store, stores)) = Cuttable::of(backend).await? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let launch = line::with_crowd(stores.launch(dir.path()).await?)
        .set("queue.threshold", THRESHOLD.to_string())
        .set("redis.deadline_ms", "2000");
    let stage = Stage::up(launch).await?;
    let (event, _) = stage.event(-60).await?;
    let (people, mut connection) = (crowd(PEOPLE), stage.connect());
    let mut places = Vec::new();
    for fan in &people {
        let answer = ask(&mut connection, fan, event, Ask::Check).await?;
        assert_eq!(answer.status, 200, "{}", answer.show());
        places.push(answer.json()["position"].as_u64());
    }
    let (inside, waiting) = people.split_at(THRESHOLD);
    assert!(places[..THRESHOLD].iter().all(Option::is_none), "five are active: {places:?}");

    // A slot is free for the first in line. If the worker runs before the cut, the user is admitted
    // already and this run shows less.
    let left = ask(&mut connection, &inside[0], event, Ask::Leave).await?;
    store.cut().await;
    ensure!(left.status == 200, "{}", left.show());
    let admitted = counted(&stage, "urr_queue_admitted").await?;
    let runs = counted(&stage, "urr_job_runs_total{job=\"queue.admission\"").await?;
    let stranger = &crowd(1)[0];
    until(COMES_BACK, async || {
        see_it(&stage, event, &[&inside[1], &waiting[0], &waiting[2], stranger]).await.unwrap();
        counted(&stage, "urr_job_runs_total{job=\"queue.admission\"").await.unwrap() >= runs + RUNS
    })
    .await;
    let now = counted(&stage, "urr_queue_admitted").await?;
    ensure!(now <= admitted, "{now} admissions, {admitted} before the outage");

    store.restore().await;
    until(COMES_BACK, async || {
        let answer = ask(&mut stage.connect(), &waiting[0], event, Ask::Status).await;
        answer.is_ok_and(|answer| answer.status == 200 && answer.json()["status"] == "active")
    })
    .await;
    for (fan, place) in people.iter().zip(&places).skip(1) {
        let answer = ask(&mut connection, fan, event, Ask::Status).await?.json();
        // All other waiting users move up by one; active users have no position.
        let expected = place.map(|place| place - 1).filter(|place| *place > 0);
        assert_eq!(answer["position"].as_u64(), expected, "{answer}");
        assert_eq!(answer["status"] == "active", expected.is_none(), "{answer}");
    }
    let report = line::verify(&stage.launch, event).await?;
    assert!(report.contains("fair ") && report.contains(&format!("{THRESHOLD} in")), "{report}");
    Ok(())
}

on_backends! { redis_outage_keeps_waiting_users: redis Redis, cluster Cluster }
