//! Two processes admit users, on PostgreSQL and on one Redis or a cluster. Each in turn is
//! suspended at a random moment of its work, and resumes long after the room was emptied and filled
//! again.

use std::time::Duration;

use anyhow::ensure;
use urr_e2e::{
    line::{self, Ask, Fan, crowd},
    program::{Signal, free_address},
    rng,
    stage::Stage,
    stores::Backend,
};
use urr_kernel::EventId;
use urr_testkit::until;

const PEOPLE: usize = 300;
const THRESHOLD: u32 = 40;
/// A room is filled in two runs of a worker, one of which may be the last before it is suspended.
const BATCH: u32 = THRESHOLD / 2;
/// Number of suspensions. Each time all active users leave, and as many join.
const SLEEPS: usize = 4;
/// Interval of the workers, in milliseconds.
const RUN_MS: u64 = 1_000;
const LIMIT: Duration = Duration::from_secs(30);

/// Whether the room is full, as this process sees it. It is never above the threshold. A process
/// that has just resumed refuses requests until it has fresh revocations.
async fn is_full(stage: &Stage, event: EventId) -> bool {
    let Ok(room) = line::room(&mut stage.connect(), &stage.admin.token, event).await else { return false };
    assert!(room["currentUsers"].as_u64().unwrap() <= u64::from(THRESHOLD), "{room}");
    room["currentUsers"] == THRESHOLD
}

/// All active users leave. Returns their number.
async fn empty(stage: &Stage, event: EventId, people: &[Fan]) -> usize {
    let answers = line::ask_all(stage.running.address, people, event, Ask::Status).await;
    let inside = answers.into_iter().filter(|(_, answer)| answer["status"] == "active");
    let inside: Vec<Fan> = inside.map(|(fan, _)| fan).collect();
    line::ask_all(stage.running.address, &inside, event, Ask::Leave).await.len()
}

async fn suspended_worker_admits_no_user_twice_or_too_many(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(launch) = backend.launch(dir.path()).await? else { return Ok(()) };
    let mut rng = rng::of_this_run("frozen");
    let launch = line::with_crowd(launch)
        .set("queue.threshold", "0")
        .set("queue.batch", BATCH.to_string())
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
    line::set_threshold(&mut first.connect(), &first.admin.token, event, THRESHOLD).await?;
    until(LIMIT, async || is_full(&second, event).await).await;
    for (asleep, awake) in [(&first, &second), (&second, &first)].into_iter().cycle().take(SLEEPS) {
        // Both workers have users to admit, and one is suspended meanwhile.
        ensure!(empty(awake, event, &people).await == THRESHOLD as usize, "the room was not full");
        tokio::time::sleep(Duration::from_millis(rng.below(RUN_MS))).await;
        asleep.running.signal(Signal::STOP)?;
        until(LIMIT, async || is_full(awake, event).await).await;
        asleep.running.signal(Signal::CONT)?;
        until(LIMIT, async || is_full(asleep, event).await && is_full(awake, event).await).await;
    }
    // The process that resumed last has had a run, without admitting too many.
    tokio::time::sleep(Duration::from_millis(RUN_MS)).await;
    until(LIMIT, async || is_full(&first, event).await && is_full(&second, event).await).await;
    let report = line::verify(&launch, event).await?;
    assert!(report.contains("fair ") && report.contains(&format!("{THRESHOLD} in")), "{report}");
    ensure!(first.running.terminate().await?.success() && second.running.terminate().await?.success());
    Ok(())
}

on_backends! { suspended_worker_admits_no_user_twice_or_too_many: redis Redis, cluster Cluster }
