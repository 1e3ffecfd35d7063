//! The way of a buyer: queue, slot, seats. Holds without a slot are refused.

use std::time::Duration;

use serde_json::{Value, json};
use urr_e2e::{
    http::Request,
    line::{self, Ask, ask, crowd},
    program,
    stage::Stage,
};
use urr_testkit::until;

#[tokio::test(flavor = "multi_thread")]
async fn holds_require_a_slot() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let launch = line::with_crowd(program::launch(&dir.path().join("data"))?);
    let stage = Stage::up(launch.set("queue.guard", "true").set("queue.threshold", "1")).await?;
    let (event, seats) = stage.event(-60).await?;
    let people = crowd(2);
    let mut connection = stage.connect();
    let mut buy = async |fan: &line::Fan, seat: usize, entry: &str| -> anyhow::Result<(u16, Value)> {
        let body =
            json!({ "eventId": event, "seatIds": [seats[seat]], "idempotencyKey": format!("k{seat}") });
        let headers = [("x-queue-entry-token", entry)];
        let request = Request { headers: &headers, ..Request::post("/api/seats/reserve", &body) };
        let answer = connection.send(&request.by(&fan.token)).await?;
        Ok((answer.status, answer.json()))
    };
    let mut line = stage.connect();
    let (status, refused) = buy(&people[0], 0, "").await?;
    assert_eq!((status, &refused["code"]), (403, &json!("queue.entry_required")), "{refused}");
    let first = ask(&mut line, &people[0], event, Ask::Check).await?.json();
    let entry = first["entryToken"].as_str().unwrap().to_owned();
    let second = ask(&mut line, &people[1], event, Ask::Check).await?.json();
    assert_eq!(second["status"], "queued", "{second}");
    assert_eq!(buy(&people[1], 1, &entry).await?.1["reason"], "other_user");
    let (status, held) = buy(&people[0], 0, &entry).await?;
    assert_eq!(status, 200, "{held}");

    ask(&mut line, &people[0], event, Ask::Leave).await?;
    until(Duration::from_secs(10), async || {
        let answer = ask(&mut stage.connect(), &people[1], event, Ask::Status).await.unwrap();
        answer.json()["status"] == "active"
    })
    .await;
    // A guard caches the state of a slot for at most a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(buy(&people[0], 2, &entry).await?.1["reason"], "slot_over");
    let second = ask(&mut line, &people[1], event, Ask::Status).await?.json();
    let (status, held) = buy(&people[1], 1, second["entryToken"].as_str().unwrap()).await?;
    assert_eq!(status, 200, "{held}");
    Ok(())
}
