//! Redis is emptied in mid-queue: who is in stays in, and everybody who waits and asks again stands where they stood.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use urr_e2e::{
    http::{Connection, Request},
    line::{self, Ask, Fan, ask, crowd},
    stage::Stage,
    stores::Stores,
};
use urr_kernel::EventId;
use urr_testkit::{until, within};

const PEOPLE: usize = 60;
const THRESHOLD: usize = 5;
/// Long enough for everybody to ask once on a busy machine.
const GRACE: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_mins(2);

/// A database of the shared Redis that this test has for itself, so that it may empty all of it.
struct Emptied {
    server: String,
    number: u32,
}

impl Emptied {
    fn of(stores: &mut Stores) -> Self {
        let server = stores.redis.trim_start_matches("redis://").trim_end_matches('/').to_owned();
        let number = std::process::id() % 15 + 1;
        stores.redis = format!("redis://{server}/{number}");
        Self { server, number }
    }

    async fn flush(&self) -> anyhow::Result<()> {
        let mut connection = TcpStream::connect(&self.server).await?;
        connection.write_all(format!("SELECT {}\r\nFLUSHDB\r\n", self.number).as_bytes()).await?;
        let mut answer = [0; 10];
        within(LIMIT, connection.read_exact(&mut answer)).await?;
        assert_eq!(&answer, b"+OK\r\n+OK\r\n");
        Ok(())
    }
}

/// Joins with the ticket that a browser would have kept. Answers with the place and the ticket.
async fn join(
    connection: &mut Connection,
    fan: &Fan,
    event: EventId,
    ticket: &str,
) -> anyhow::Result<(Option<u64>, String)> {
    let path = format!("/api/queue/check/{event}");
    let headers = [("cookie", ticket), ("sec-fetch-site", "same-origin")];
    let request = Request { method: "POST", path: &path, headers: &headers, ..Request::default() };
    let answer = connection.send(&request.by(&fan.token)).await?;
    assert_eq!(answer.status, 200, "{}", answer.show());
    let kept = answer.header("set-cookie").and_then(|line| line.split(';').next()).unwrap_or_default();
    Ok((answer.json()["position"].as_u64(), kept.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_gets_their_place_back_after_redis_lost_everything() -> anyhow::Result<()> {
    let Some(mut stores) = Stores::fresh().await else { return Ok(()) };
    let emptied = Emptied::of(&mut stores);
    let dir = tempfile::tempdir()?;
    let launch = line::with_crowd(stores.launch(dir.path()).await?)
        .set("queue.threshold", THRESHOLD.to_string())
        .set("queue.grace_secs", GRACE.as_secs().to_string())
        .set("redis.deadline_ms", "5000");
    let stage = Stage::up(launch).await?;
    let (event, _) = stage.event(-60).await?;
    let (people, mut connection) = (crowd(PEOPLE), stage.connect());
    let mut places = Vec::new();
    for fan in &people {
        places.push(join(&mut connection, fan, event, "").await?);
    }
    let (inside, waiting) = people.split_at(THRESHOLD);
    assert!(places[..THRESHOLD].iter().all(|(place, _)| place.is_none()), "{places:?}");
    // What is in Redis alone is moved to the database within a second; a place is as good without it.
    emptied.flush().await?;

    for (fan, (place, ticket)) in waiting.iter().zip(&places[THRESHOLD..]).rev() {
        let status = ask(&mut connection, fan, event, Ask::Status).await?.json();
        assert_eq!(status["status"], "not_in_queue", "{status}");
        assert!(join(&mut connection, fan, event, ticket).await?.0 <= *place, "nobody is further back");
    }
    for fan in inside {
        let status = ask(&mut connection, fan, event, Ask::Status).await?.json();
        assert_eq!(status["status"], "active", "{status}");
    }
    for (fan, (place, _)) in waiting.iter().zip(&places[THRESHOLD..]) {
        let status = ask(&mut connection, fan, event, Ask::Status).await?.json();
        assert_eq!(status["position"].as_u64(), *place, "{status}");
    }

    // A slot that becomes free goes to whoever was first, once everybody had time to come back.
    ask(&mut connection, &inside[0], event, Ask::Leave).await?;
    until(LIMIT, async || {
        let status = ask(&mut stage.connect(), &waiting[0], event, Ask::Status).await.unwrap().json();
        status["status"] == "active"
    })
    .await;
    let second = ask(&mut stage.connect(), &waiting[1], event, Ask::Status).await?.json();
    assert_eq!(second["position"], 1, "{second}");
    let report = line::verify(&stage.launch, event).await?;
    assert!(report.contains("fair ") && report.contains(&format!("{THRESHOLD} in")), "{report}");
    Ok(())
}
