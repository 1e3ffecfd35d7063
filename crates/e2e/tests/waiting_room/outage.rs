//! Redis goes away while people wait: they keep waiting and see it, nobody is let in, and it heals by itself.

use std::time::Duration;

use urr_e2e::{
    line::{self, Ask, ask, crowd},
    stage::Stage,
    stores::{Stores, through_proxy},
};
use urr_testkit::until;

const PEOPLE: usize = 20;
/// Two pauses of a breaker.
const COMES_BACK: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn people_keep_waiting_while_the_store_is_away() -> anyhow::Result<()> {
    let Some(mut stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let (mut proxy, url) = through_proxy(&stores.redis).await;
    stores.redis = url;
    let launch = line::with_crowd(stores.launch(dir.path()).await?)
        .set("queue.threshold", "5")
        .set("redis.deadline_ms", "2000");
    let stage = Stage::up(launch).await?;
    let (event, _) = stage.event(-60).await?;
    let people = crowd(PEOPLE);
    let mut connection = stage.connect();
    let mut places = Vec::new();
    for fan in &people {
        let answer = ask(&mut connection, fan, event, Ask::Check).await?;
        assert_eq!(answer.status, 200, "{}", answer.show());
        places.push(answer.json()["position"].as_u64());
    }
    assert_eq!(places.iter().filter(|place| place.is_none()).count(), 5, "five are in");

    proxy.cut().await;
    for what in [Ask::Status, Ask::Check] {
        for fan in [&people[0], &people[7], &crowd(1)[0]] {
            let answer = ask(&mut connection, fan, event, what).await?;
            assert_eq!(
                (answer.status, answer.code()),
                (503, "queue.unavailable".to_owned()),
                "{}",
                answer.show()
            );
            assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
        }
    }
    proxy.restore().await;
    until(COMES_BACK, async || {
        ask(&mut stage.connect(), &people[7], event, Ask::Status)
            .await
            .is_ok_and(|answer| answer.status == 200)
    })
    .await;
    for (fan, place) in people.iter().zip(&places) {
        let answer = ask(&mut connection, fan, event, Ask::Status).await?.json();
        assert_eq!(answer["position"].as_u64(), *place, "{answer}");
    }
    let report = line::verify(&stage.launch, event).await?;
    assert!(report.contains("fair "), "{report}");
    Ok(())
}
