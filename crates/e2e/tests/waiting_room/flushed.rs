//! Redis is flushed while the queue is full: active users stay active, waiting users who return get
//! their position back, and users who join afterwards are behind them.

use std::time::Duration;

use anyhow::{bail, ensure};
use urr_e2e::{
    http::{Answer, Connection, Request},
    line::{self, Ask, Fan, ask, crowd},
    nodes::say,
    stage::Stage,
    stores::{Backend, Stores},
};
use urr_kernel::EventId;
use urr_testkit::until;

const PEOPLE: usize = 60;
const THRESHOLD: usize = 5;
/// The queue is full once all of them have joined.
const MAX_WAITING: usize = PEOPLE - THRESHOLD;
/// New users who join before any waiting user returns.
const STRANGERS: usize = 10;
/// Long enough for all users to send a request on a busy machine.
const GRACE: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_mins(2);
/// The default number of databases in Redis. Database 0 is shared.
const DATABASES: u32 = 16;

/// Deletes an event and its users from a cluster node. Other tests use the same cluster, so it is
/// not flushed.
const FORGET: &str = "local count = 0
for _, key in ipairs(redis.call('KEYS', '*')) do
  if key == 'queue:active-events' then
    redis.call('SREM', key, ARGV[1])
  end
  for _, word in ipairs(ARGV) do
    if string.find(key, word, 1, true) then
      count = count + redis.call('DEL', key)
    end
  end
end
return count";

/// What can be flushed.
enum Emptied {
    /// A database of the shared Redis, reserved for this test.
    Database { server: String, number: u32 },
    /// The nodes of the shared cluster.
    Nodes(Vec<String>),
}

impl Emptied {
    /// Reserves a database for as long as a run may last, or uses the cluster.
    async fn of(stores: &mut Stores) -> anyhow::Result<Self> {
        let mut servers: Vec<String> = stores
            .redis
            .split(',')
            .map(|url| url.trim_start_matches("redis://").trim_end_matches('/').to_owned())
            .collect();
        if servers.len() > 1 {
            return Ok(Self::Nodes(servers));
        }
        let (server, secs) = (servers.remove(0), (LIMIT.as_secs() * 3).to_string());
        for number in 1..DATABASES {
            if say(&server, &[&["SET", &taken(number), "1", "NX", "EX", &secs]]).await? == ["+OK"] {
                stores.redis = format!("redis://{server}/{number}");
                return Ok(Self::Database { server, number });
            }
        }
        bail!("every database of {server} is taken")
    }

    /// Ends the reservation.
    async fn give_back(self) -> anyhow::Result<()> {
        if let Self::Database { server, number } = self {
            say(&server, &[&["DEL", &taken(number)]]).await?;
        }
        Ok(())
    }

    async fn flush(&self, event: EventId, people: &[Fan]) -> anyhow::Result<()> {
        match self {
            Self::Database { server, number } => {
                let answers = say(server, &[&["SELECT", &number.to_string()], &["FLUSHDB"]]).await?;
                assert_eq!(answers, ["+OK", "+OK"]);
            }
            Self::Nodes(servers) => {
                let mut words = vec!["EVAL".to_owned(), FORGET.to_owned(), "0".to_owned(), event.to_string()];
                words.extend(people.iter().map(|fan| fan.user.to_string()));
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let mut forgotten = 0;
                for server in servers {
                    let answer = say(server, &[&words]).await?.remove(0);
                    // Replicas follow their primaries.
                    if !answer.starts_with("-READONLY") {
                        forgotten += answer.trim_start_matches(':').parse::<usize>()?;
                    }
                }
                ensure!(
                    forgotten > PEOPLE,
                    "expected a key per user and the room's, deleted only {forgotten}"
                );
            }
        }
        Ok(())
    }
}

/// The key that reserves a database.
fn taken(number: u32) -> String {
    format!("urr-e2e-emptied:{number}")
}

/// Joins with the queue ticket of the browser.
async fn knock(
    connection: &mut Connection,
    fan: &Fan,
    event: EventId,
    ticket: &str,
) -> anyhow::Result<Answer> {
    let path = format!("/api/queue/check/{event}");
    let headers = [("cookie", ticket), ("sec-fetch-site", "same-origin")];
    let request = Request { method: "POST", path: &path, headers: &headers, ..Request::default() };
    Ok(connection.send(&request.by(&fan.token)).await?)
}

/// Joins. Returns the position, which active users do not have, and the ticket.
async fn join(
    connection: &mut Connection,
    fan: &Fan,
    event: EventId,
    ticket: &str,
) -> anyhow::Result<(Option<u64>, String)> {
    let answer = knock(connection, fan, event, ticket).await?;
    assert_eq!(answer.status, 200, "{}", answer.show());
    let kept = answer.header("set-cookie").and_then(|line| line.split(';').next()).unwrap_or_default();
    Ok((answer.json()["position"].as_u64(), kept.to_owned()))
}

/// A user without a ticket is refused: the queue is full.
async fn is_full(connection: &mut Connection, event: EventId) -> anyhow::Result<()> {
    let answer = knock(connection, &crowd(1)[0], event, "").await?;
    let code = answer.code();
    assert_eq!((answer.status, code.as_str()), (503, "queue.line_full"), "{}", answer.show());
    assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
    Ok(())
}

async fn stands_at(
    connection: &mut Connection,
    fan: &Fan,
    event: EventId,
    place: Option<u64>,
) -> anyhow::Result<()> {
    let status = ask(connection, fan, event, Ask::Status).await?.json();
    assert_eq!(status["position"].as_u64(), place, "{status}");
    Ok(())
}

async fn positions_survive_a_redis_flush(backend: Backend) -> anyhow::Result<()> {
    let Some(mut stores) = Stores::of(backend).await else { return Ok(()) };
    let emptied = Emptied::of(&mut stores).await?;
    let dir = tempfile::tempdir()?;
    let launch = line::with_crowd(stores.launch(dir.path()).await?)
        .set("queue.threshold", THRESHOLD.to_string())
        .set("queue.max_waiting", MAX_WAITING.to_string())
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
    is_full(&mut connection, event).await?;
    // Steps that are only in Redis reach the database within a second; a ticket works without them.
    emptied.flush(event, &people).await?;

    // A slot is free and the queue is empty: new users get neither the slot nor a position ahead of
    // those who waited.
    ask(&mut connection, &inside[0], event, Ask::Leave).await?;
    let strangers = crowd(STRANGERS);
    for stranger in &strangers {
        assert!(join(&mut connection, stranger, event, "").await?.0.is_some(), "a new user was admitted");
    }
    for (fan, (place, ticket)) in waiting.iter().zip(&places[THRESHOLD..]).rev() {
        let status = ask(&mut connection, fan, event, Ask::Status).await?.json();
        assert_eq!(status["status"], "not_in_queue", "{status}");
        assert!(join(&mut connection, fan, event, ticket).await?.0 <= *place, "the position is not worse");
    }
    is_full(&mut connection, event).await?;
    for fan in &inside[1..] {
        let status = ask(&mut connection, fan, event, Ask::Status).await?.json();
        assert_eq!(status["status"], "active", "{status}");
    }
    for (fan, (place, _)) in waiting.iter().zip(&places[THRESHOLD..]) {
        stands_at(&mut connection, fan, event, *place).await?;
    }
    for (stranger, behind) in strangers.iter().zip(1..) {
        stands_at(&mut connection, stranger, event, Some(MAX_WAITING as u64 + behind)).await?;
    }

    // The slot goes to the first in line once the grace period is over.
    until(LIMIT, async || {
        let status = ask(&mut stage.connect(), &waiting[0], event, Ask::Status).await.unwrap().json();
        status["status"] == "active"
    })
    .await;
    stands_at(&mut connection, &waiting[1], event, Some(1)).await?;
    let report = line::verify(&stage.launch, event).await?;
    assert!(report.contains("fair ") && report.contains(&format!("{THRESHOLD} in")), "{report}");
    emptied.give_back().await
}

on_backends! { positions_survive_a_redis_flush: redis Redis, cluster Cluster }
