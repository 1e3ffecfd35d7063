//! Stores that fail, hang and recover while the real binary serves.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_e2e::{
    http::{Answer, Connection, Request},
    line::{self, Ask, Fan, ask},
    shop::{self, Buyer, Reservation},
    stage::Stage,
    stores::{Stores, through_proxy},
};
use urr_kernel::{Clock, EventId, SeatId};
use urr_testkit::{Proxy, until};

/// Maximum time of a response while PostgreSQL is down, and half a second more for a machine that
/// is busy with other tests.
const PROMISED: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_millis(500);

/// Concurrent requests, and the time this machine may take to send and read so many.
const CROWD: usize = 300;
const CROWD_SLACK: Duration = Duration::from_secs(1);

/// Time limit for recovery once the store is back: two periods of a circuit breaker.
const COMES_BACK: Duration = Duration::from_secs(20);

/// How long a process caches the state of a slot, and a little more.
const REMEMBERED: Duration = Duration::from_millis(1_100);

/// A server, an event on sale, and a new buyer per seat.
struct Story {
    stage: Stage,
    connection: Connection,
    event: EventId,
    seats: Vec<SeatId>,
    asked: usize,
}

impl Story {
    async fn begin(stage: Stage) -> anyhow::Result<Self> {
        let (event, seats) = stage.event(-60).await?;
        Ok(Self { connection: stage.connect(), stage, event, seats, asked: 0 })
    }

    /// A new buyer holds the next seat.
    async fn hold(&mut self) -> anyhow::Result<Answer> {
        let buyer = self.stage.buyer().await?;
        self.asked += 1;
        let seats = &self.seats[self.asked - 1..self.asked];
        Ok(shop::hold(&mut self.connection, &buyer.token, self.event, seats, "k").await?)
    }

    async fn ready(&mut self) -> anyhow::Result<Answer> {
        Ok(self.connection.send(&Request::get("/health/ready")).await?)
    }
}

/// Cuts the store off, or makes it hang.
async fn go_wrong(proxy: &mut Proxy, how: &str) {
    if how == "cut" {
        proxy.cut().await;
    } else {
        proxy.stall().await;
    }
}

/// More concurrent holds for one event than fit into a batch: requests queued behind an unreachable
/// database must not wait for the timeout a second time.
async fn refuses_a_crowd_in_time(story: &Story, crowd: &[Buyer]) -> anyhow::Result<()> {
    let clock = Clock::system();
    let mut asking = JoinSet::new();
    for (at, seat) in story.seats.iter().enumerate().take(CROWD) {
        let (mut connection, event, seats) = (story.stage.connect(), story.event, [*seat]);
        let (buyer, clock, key) = (crowd[at % crowd.len()].clone(), clock.clone(), format!("crowd-{at}"));
        asking.spawn(async move {
            let answer = shop::hold(&mut connection, &buyer.token, event, &seats, &key).await?;
            anyhow::Ok((answer, clock.ticks()))
        });
    }
    while let Some(asked) = asking.join_next().await {
        let (answer, took) = asked??;
        assert_eq!(answer.status, 503, "{}", answer.show());
        assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
        assert!(took < PROMISED + CROWD_SLACK, "the response took {took:?}");
    }
    Ok(())
}

async fn refuses_in_time(story: &mut Story) -> anyhow::Result<()> {
    for _ in 0..5 {
        let buyer = story.stage.buyer().await?;
        let clock = Clock::system();
        let seats = &story.seats[..1];
        let answer = shop::hold(&mut story.connection, &buyer.token, story.event, seats, "k").await?;
        let took = clock.ticks();
        assert_eq!(answer.status, 503, "{}", answer.show());
        assert!(
            answer.header("retry-after").is_some_and(|secs| secs.parse::<u32>().is_ok()),
            "{:?}",
            answer.headers
        );
        assert!(took < PROMISED + SLACK, "the response took {took:?}");
    }
    let ready = story.ready().await?;
    assert_eq!(ready.status, 503, "{}", ready.show());
    assert!(
        String::from_utf8_lossy(&ready.body).contains("tickets"),
        "it names the missing store: {}",
        ready.show()
    );
    Ok(())
}

async fn comes_back(story: &mut Story) -> anyhow::Result<()> {
    let buyer = story.stage.buyer().await?;
    story.asked += 1;
    let (event, seats) = (story.event, story.seats[story.asked - 1..story.asked].to_vec());
    let connection = &mut story.connection;
    until(COMES_BACK, async || {
        // Always the same key: whatever became of earlier attempts, this buyer gets this seat once.
        let answer = shop::hold(connection, &buyer.token, event, &seats, "again").await;
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    until(COMES_BACK, async || story.ready().await.is_ok_and(|answer| answer.status == 200)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_down_is_503_with_retry_after_and_recovers_by_itself() -> anyhow::Result<()> {
    let Some(stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let (mut proxy, postgres) = through_proxy(&stores.postgres).await;
    let launch = Stores { postgres, ..stores }.launch(dir.path()).await?;
    let mut story = Story::begin(Stage::up(launch).await?).await?;
    let buyer = story.stage.buyer().await?;
    let seats = story.seats[story.seats.len() - 2..].to_vec();
    let held = shop::hold(&mut story.connection, &buyer.token, story.event, &seats, "before").await?;
    let held = Reservation::from_answer(&held)?;
    let crowd = story.stage.buyers(CROWD / 10).await?;

    for how in ["cut", "stall"] {
        go_wrong(&mut proxy, how).await;
        refuses_a_crowd_in_time(&story, &crowd).await?;
        refuses_in_time(&mut story).await?;
        proxy.restore().await;
        comes_back(&mut story).await?;
    }
    let found = shop::reservation(&mut story.connection, &buyer.token, held.id).await?;
    assert_eq!(Reservation::from_answer(&found)?, held, "the earlier hold is unchanged");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn server_started_before_postgres_serves_once_it_is_up() -> anyhow::Result<()> {
    let Some(stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let (mut proxy, postgres) = through_proxy(&stores.postgres).await;
    let launch = Stores { postgres, ..stores }.launch(dir.path()).await?;
    proxy.cut().await;
    let mut running = launch.start()?;
    until(COMES_BACK, async || running.log_tail().contains("waiting for the server")).await;
    proxy.restore().await;
    running.ready().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_work_without_redis() -> anyhow::Result<()> {
    let Some(stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let (mut proxy, redis) = through_proxy(&stores.redis).await;
    let launch = Stores { redis, ..stores }.launch(dir.path()).await?;
    let mut story = Story::begin(Stage::up(launch).await?).await?;
    assert_eq!(story.hold().await?.status, 200);

    for how in ["cut", "stall"] {
        go_wrong(&mut proxy, how).await;
        for _ in 0..10 {
            let clock = Clock::system();
            let answer = story.hold().await?;
            assert_eq!(answer.status, 200, "{how}: {}", answer.show());
            assert!(clock.ticks() < PROMISED + SLACK, "{how}: the response took {:?}", clock.ticks());
        }
        let buyer = story.stage.buyer().await?;
        let (event, first) = (story.event, story.seats[..1].to_vec());
        let taken = shop::hold(&mut story.connection, &buyer.token, event, &first, "k").await?;
        assert_eq!((taken.status, taken.code().as_str()), (409, "tickets.seats_taken"), "{how}");
        proxy.restore().await;
        assert_eq!(story.hold().await?.status, 200, "{how}: after recovery");
    }
    Ok(())
}

/// An event with a threshold of one and guarded seats.
struct Guarded {
    stage: Stage,
    event: EventId,
    seats: Vec<SeatId>,
}

impl Guarded {
    /// Guards and rate limits are on, but the limit of polls is out of reach.
    async fn begin(stores: &Stores, dir: &Path) -> anyhow::Result<Self> {
        let launch = line::with_crowd(stores.launch(dir).await?).set("limits.enabled", "true");
        let launch = launch.set("limits.queue", "1000000").set("queue.threshold", "1");
        let stage = Stage::up(launch.set("queue.guard", "true")).await?;
        let (event, seats) = stage.event(-60).await?;
        Ok(Self { stage, event, seats })
    }

    async fn ask(&self, fan: &Fan, what: Ask) -> anyhow::Result<Answer> {
        Ok(ask(&mut self.stage.connect(), fan, self.event, what).await?)
    }

    /// Repeats a request until the user has this status.
    async fn stands(&self, fan: &Fan, what: Ask, status: &str) -> Value {
        let mut found = Value::Null;
        until(COMES_BACK, async || {
            let answer = self.ask(fan, what).await.ok().filter(|answer| answer.status == 200);
            found = answer.map_or(Value::Null, |answer| answer.json());
            found["status"] == status
        })
        .await;
        found
    }

    /// Holds a seat with an entry token or without one, after the cached state of the slot has
    /// expired.
    async fn hold(&self, fan: &Fan, seat: usize, entry: &str) -> anyhow::Result<Answer> {
        tokio::time::sleep(REMEMBERED).await;
        let body = json!({ "eventId": self.event, "seatIds": [self.seats[seat]], "idempotencyKey": format!("k{seat}") });
        let headers = [("x-queue-entry-token", entry)];
        let request = Request { headers: &headers, ..Request::post("/api/seats/reserve", &body) };
        let (mut connection, clock) = (self.stage.connect(), Clock::system());
        let answer = connection.send(&request.by(&fan.token)).await?;
        assert!(clock.ticks() < PROMISED + SLACK, "the response took {:?}", clock.ticks());
        Ok(answer)
    }

    /// Asserts that a hold is refused for this reason.
    async fn assert_refused(&self, fan: &Fan, entry: &str, reason: &str) -> anyhow::Result<()> {
        let answer = self.hold(fan, self.seats.len() - 1, entry).await?;
        let told = (answer.status, answer.code(), answer.json()["reason"].clone());
        assert_eq!(told, (403, "queue.entry_required".to_owned(), json!(reason)), "{}", answer.show());
        Ok(())
    }
}

fn entry_of(place: &Value) -> anyhow::Result<String> {
    Ok(place["entryToken"].as_str().context("an admitted user has no entry token")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_outage_keeps_active_buyers_and_stops_admissions() -> anyhow::Result<()> {
    let Some(stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let (mut proxy, redis) = through_proxy(&stores.redis).await;
    let sale = Guarded::begin(&Stores { redis, ..stores }, dir.path()).await?;
    let [first, second, third] = <[Fan; 3]>::try_from(line::crowd(3)).expect("three fans");
    let entry = entry_of(&sale.stands(&first, Ask::Check, "active").await)?;
    sale.stands(&second, Ask::Check, "queued").await;

    for (seat, how) in ["cut", "stall"].into_iter().enumerate() {
        go_wrong(&mut proxy, how).await;
        let held = sale.hold(&first, seat, &entry).await?;
        assert_eq!(held.status, 200, "{how}: {}", held.show());
        for fan in [&second, &third] {
            let told = sale.ask(fan, Ask::Check).await?;
            assert_eq!(
                (told.status, told.code().as_str()),
                (503, "http.unavailable"),
                "{how}: {}",
                told.show()
            );
            sale.assert_refused(fan, "", "missing").await?;
        }
        sale.assert_refused(&second, &entry, "other_user").await?;
        proxy.restore().await;
        let place = sale.stands(&second, Ask::Status, "queued").await;
        assert_eq!(place["position"], 1, "{how}: {place}");
    }

    // A user who left can hold nothing more, also while only the journal can be checked.
    until(COMES_BACK, async || sale.ask(&first, Ask::Leave).await.is_ok_and(|left| left.status == 200)).await;
    let next = entry_of(&sale.stands(&second, Ask::Status, "active").await)?;
    proxy.cut().await;
    sale.assert_refused(&first, &entry, "slot_over").await?;
    let held = sale.hold(&second, 2, &next).await?;
    assert_eq!(held.status, 200, "{}", held.show());
    proxy.restore().await;
    sale.stands(&second, Ask::Status, "active").await;
    let report = line::verify(&sale.stage.launch, sale.event).await?;
    assert!(report.contains("fair "), "{report}");
    Ok(())
}
