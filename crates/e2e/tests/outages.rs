//! Stores that go away, hang and come back while the real binary serves.

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

/// What a buyer waits at most when PostgreSQL does not answer. Half a second more is for a machine that is busy with the
/// other tests.
const PROMISED: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_millis(500);

/// How many ask at once, and how long it may take this machine to send and read so much.
const CROWD: usize = 300;
const CROWD_SLACK: Duration = Duration::from_secs(1);

/// How long it may take until everything works again once the store is back: two pauses of a breaker.
const COMES_BACK: Duration = Duration::from_secs(20);

/// How long a process believes what it was last told of a slot, and a little.
const REMEMBERED: Duration = Duration::from_millis(1_100);

/// A server, an event on sale, and a buyer who takes one seat at a time.
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

    /// A new buyer asks for the next seat.
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

/// What is behind the proxy goes away, or hangs.
async fn go_wrong(proxy: &mut Proxy, how: &str) {
    if how == "cut" {
        proxy.cut().await;
    } else {
        proxy.stall().await;
    }
}

/// Many at once for seats of one event, more than are claimed together: whoever stands in line behind those who find out that the
/// database is away does not wait as long again.
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
        assert!(took < PROMISED + CROWD_SLACK, "the answer took {took:?}");
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
        assert!(took < PROMISED + SLACK, "the answer took {took:?}");
    }
    let ready = story.ready().await?;
    assert_eq!(ready.status, 503, "{}", ready.show());
    assert!(
        String::from_utf8_lossy(&ready.body).contains("tickets"),
        "it names what is missing: {}",
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
        // Always the same key: whatever became of the attempts before, this buyer gets this seat once.
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
    assert_eq!(Reservation::from_answer(&found)?, held, "what was held before is held still");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_before_postgres_is_up_serves_once_it_is() -> anyhow::Result<()> {
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
async fn without_redis_holds_go_through_the_database_alone() -> anyhow::Result<()> {
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
            assert!(clock.ticks() < PROMISED + SLACK, "{how}: the answer took {:?}", clock.ticks());
        }
        let buyer = story.stage.buyer().await?;
        let (event, first) = (story.event, story.seats[..1].to_vec());
        let taken = shop::hold(&mut story.connection, &buyer.token, event, &first, "k").await?;
        assert_eq!((taken.status, taken.code().as_str()), (409, "tickets.seats_taken"), "{how}");
        proxy.restore().await;
        assert_eq!(story.hold().await?.status, 200, "{how}: and when it is back");
    }
    Ok(())
}

/// An event with room for one, and a guard before its seats.
struct Guarded {
    stage: Stage,
    event: EventId,
    seats: Vec<SeatId>,
}

impl Guarded {
    /// Everything that counts requests or keeps people waiting is on. Whoever polls is not held up by it.
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

    /// Asks until the line answers and somebody stands like this.
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

    /// Somebody asks for a seat, with or without the token of a slot. Whatever a process remembers of slots is forgotten by then.
    async fn hold(&self, fan: &Fan, seat: usize, entry: &str) -> anyhow::Result<Answer> {
        tokio::time::sleep(REMEMBERED).await;
        let body = json!({ "eventId": self.event, "seatIds": [self.seats[seat]], "idempotencyKey": format!("k{seat}") });
        let headers = [("x-queue-entry-token", entry)];
        let request = Request { headers: &headers, ..Request::post("/api/seats/reserve", &body) };
        let (mut connection, clock) = (self.stage.connect(), Clock::system());
        let answer = connection.send(&request.by(&fan.token)).await?;
        assert!(clock.ticks() < PROMISED + SLACK, "the answer took {:?}", clock.ticks());
        Ok(answer)
    }

    /// Somebody gets no seat, for this reason.
    async fn assert_refused(&self, fan: &Fan, entry: &str, reason: &str) -> anyhow::Result<()> {
        let answer = self.hold(fan, self.seats.len() - 1, entry).await?;
        let told = (answer.status, answer.code(), answer.json()["reason"].clone());
        assert_eq!(told, (403, "queue.entry_required".to_owned(), json!(reason)), "{}", answer.show());
        Ok(())
    }
}

fn entry_of(place: &Value) -> anyhow::Result<String> {
    Ok(place["entryToken"].as_str().context("whoever is in has an entry token")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_whoever_is_in_goes_on_buying_and_nobody_else_comes_in() -> anyhow::Result<()> {
    let Some(stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let (mut proxy, redis) = through_proxy(&stores.redis).await;
    let sale = Guarded::begin(&Stores { redis, ..stores }, dir.path()).await?;
    let [first, second, third] = <[Fan; 3]>::try_from(line::crowd(3)).expect("three people");
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
                (503, "queue.unavailable"),
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

    // Whoever has left buys nothing more, also while nobody can be asked but the journal.
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
