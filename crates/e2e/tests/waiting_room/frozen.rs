//! Two processes let people in, on PostgreSQL and on one Redis or a cluster; one of them is frozen in the middle and comes back much later.

use std::time::Duration;

use anyhow::ensure;
use urr_e2e::{
    line::{self, Ask, crowd},
    program::free_address,
    stage::Stage,
    stores::Backend,
};
use urr_testkit::until;

const PEOPLE: usize = 300;
const THRESHOLD: u32 = 40;
/// How many are let in while the first process sleeps.
const MEANWHILE: usize = 80;

async fn a_worker_that_sleeps_and_wakes_lets_nobody_in_twice_and_nobody_too_many(
    backend: Backend,
) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(launch) = backend.launch(dir.path()).await? else { return Ok(()) };
    let launch = line::with_crowd(launch)
        .set("queue.threshold", THRESHOLD.to_string())
        .set("queue.batch", "7")
        .set("redis.deadline_ms", "2000")
        .set("internal.token", "0123456789abcdef0123456789abcdef")
        .set("auth.index_key", "0123456789abcdef0123456789abcdef");
    let first = Stage::up(launch.clone()).await?;
    let mut other = launch.clone();
    other.listen = free_address();
    let second = Stage::up(other).await?;
    let (event, _) = first.event(-60).await?;

    let people = crowd(PEOPLE);
    for (part, stage) in people.chunks(PEOPLE / 2).zip([&first, &second]) {
        let joined = line::ask_all(stage.running.address, part, event, Ask::Check).await;
        ensure!(joined.len() == part.len(), "{} of {} joined", joined.len(), part.len());
    }
    let full = async |stage: &Stage| {
        let room = line::room(&mut stage.connect(), &stage.admin.token, event).await.unwrap();
        assert!(room["currentUsers"].as_u64().unwrap() <= u64::from(THRESHOLD), "{room}");
        room["currentUsers"] == THRESHOLD
    };
    until(Duration::from_secs(30), async || full(&second).await).await;

    first.running.signal("STOP").await?;
    let mut gone = 0;
    while gone < MEANWHILE {
        // Whoever is in goes, and the next come in, let in by the process that is awake.
        let answers = line::ask_all(second.running.address, &people, event, Ask::Status).await;
        let inside: Vec<_> = answers
            .into_iter()
            .filter(|(_, answer)| answer["status"] == "active")
            .map(|(fan, _)| fan)
            .collect();
        gone += line::ask_all(second.running.address, &inside, event, Ask::Leave).await.len();
        until(Duration::from_secs(30), async || full(&second).await).await;
    }
    first.running.signal("CONT").await?;
    let answers = line::ask_all(second.running.address, &people, event, Ask::Status).await;
    let inside: Vec<_> =
        answers.into_iter().filter(|(_, answer)| answer["status"] == "active").map(|(fan, _)| fan).collect();
    assert_eq!(inside.len(), THRESHOLD as usize);
    line::ask_all(first.running.address, &inside, event, Ask::Leave).await;
    until(Duration::from_secs(30), async || full(&first).await && full(&second).await).await;
    let report = line::verify(&launch, event).await?;
    assert!(report.contains("fair ") && report.contains(&format!("{THRESHOLD} in")), "{report}");
    ensure!(first.running.terminate().await?.success() && second.running.terminate().await?.success());
    Ok(())
}

on_backends! { a_worker_that_sleeps_and_wakes_lets_nobody_in_twice_and_nobody_too_many: redis Redis, cluster Cluster }
