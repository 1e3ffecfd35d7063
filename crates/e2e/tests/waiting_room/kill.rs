//! kill -9 in a loop while thousands of users join and are admitted: every acknowledged position is
//! unchanged after every restart, on every store.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::ensure;
use urr_e2e::{
    line::{self, Ask, Fan, crowd},
    rng::{self, SeededRng, setting},
    stage::Stage,
    stores::Backend,
};
use urr_kernel::{EventId, UserId};
use urr_testkit::until;

/// Number of users, overridden by `URR_E2E_WAITING`, and number of kills: on SQLite; on servers,
/// which are slower; and where the lease of a killed process on the rooms lasts another five
/// seconds.
const PEOPLE: u64 = 10_000;
const KILLS: usize = 10;
const ON_SERVERS: (u64, usize) = (PEOPLE / 5, 6);
const ON_POSTGRES: (u64, usize) = (PEOPLE / 5, 3);
/// Acknowledged positions compared after every restart. All are compared at the end.
const SAMPLE: usize = 200;
/// Longer than it takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(30);
/// Users admitted at the end, who must be the first in line.
const LET_IN: u32 = 100;
/// A fifth of them at a time, so that a kill falls between two batches.
const BATCH: u32 = LET_IN / 5;
/// Latest time of that kill, in milliseconds from the change of the threshold.
const LATEST_KILL_MEANWHILE_MS: u64 = 4_000;

/// Acknowledged positions. Users neither leave nor are admitted, so a position never changes.
#[derive(Default)]
struct AcknowledgedPositions(HashMap<UserId, u64>);

impl AcknowledgedPositions {
    fn hear(&mut self, answers: &[(Fan, serde_json::Value)]) -> anyhow::Result<()> {
        for (fan, answer) in answers {
            ensure!(answer["status"] == "queued", "a user is not waiting: {answer}");
            let position = answer["position"].as_u64().unwrap();
            let before = *self.0.entry(fan.user).or_insert(position);
            ensure!(before == position, "{} had position {before} and has position {position}", fan.user);
        }
        Ok(())
    }
}

async fn compare(
    stage: &Stage,
    event: EventId,
    told: &mut AcknowledgedPositions,
    fans: &[Fan],
) -> anyhow::Result<()> {
    let answers = line::ask_all(stage.running.address, fans, event, Ask::Status).await;
    ensure!(answers.len() == fans.len(), "{} of {} got a response", answers.len(), fans.len());
    told.hear(&answers)
}

/// Users join in waves, and the process is killed in the middle of each. Users without a response
/// join again at the end.
async fn come(
    stage: &mut Stage,
    event: EventId,
    told: &mut AcknowledgedPositions,
    rng: &mut SeededRng,
    waves: impl Iterator<Item = &[Fan]>,
) -> anyhow::Result<()> {
    let (mut acknowledged, mut unanswered): (Vec<Fan>, Vec<Fan>) = (Vec::new(), Vec::new());
    for wave in waves {
        let (answered, moment) = (Arc::new(AtomicUsize::new(0)), rng.index(wave.len()));
        let kill = async {
            until(LIMIT, async || answered.load(Ordering::Relaxed) >= moment).await;
            stage.running.kill().await
        };
        let address = stage.launch.listen;
        let coming = line::ask_all_counted(address, wave, event, Ask::Check, &answered);
        let (answers, killed) = tokio::join!(coming, kill);
        killed?;
        told.hear(&answers)?;
        acknowledged.extend(answers.into_iter().map(|(fan, _)| fan));
        unanswered.extend(wave.iter().filter(|fan| !told.0.contains_key(&fan.user)).cloned());
        stage.running = stage.launch.up().await?;
        if !acknowledged.is_empty() {
            let sample: Vec<Fan> =
                (0..SAMPLE).map(|_| acknowledged[rng.index(acknowledged.len())].clone()).collect();
            compare(stage, event, told, &sample).await?;
        }
    }
    eprintln!(
        "waiting_room_kill: {} positions acknowledged, {} without a response",
        acknowledged.len(),
        unanswered.len()
    );
    ensure!(!acknowledged.is_empty() && !unanswered.is_empty(), "no kill fell into a wave");
    told.hear(&line::ask_all(stage.launch.listen, &unanswered, event, Ask::Check).await)
}

/// Exactly the first users are admitted, although the process is killed meanwhile.
async fn let_in(
    stage: &mut Stage,
    event: EventId,
    told: &AcknowledgedPositions,
    rng: &mut SeededRng,
    waiting: &[Fan],
) -> anyhow::Result<()> {
    line::set_threshold(&mut stage.connect(), &stage.admin.token, event, LET_IN).await?;
    tokio::time::sleep(Duration::from_millis(rng.below(LATEST_KILL_MEANWHILE_MS))).await;
    stage.running.kill().await?;
    stage.running = stage.launch.up().await?;
    until(LIMIT, async || {
        let room = line::room(&mut stage.connect(), &stage.admin.token, event).await.unwrap();
        room["currentUsers"] == LET_IN
    })
    .await;
    let answers = line::ask_all(stage.running.address, waiting, event, Ask::Status).await;
    ensure!(answers.len() == waiting.len(), "{} of {} got a response", answers.len(), waiting.len());
    for (fan, answer) in answers {
        let first = told.0[&fan.user] <= u64::from(LET_IN);
        assert_eq!(answer["status"] == "active", first, "position {}: {answer}", told.0[&fan.user]);
    }
    Ok(())
}

async fn kill_nine_keeps_acknowledged_positions(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(launch) = backend.launch(dir.path()).await? else { return Ok(()) };
    let mut rng = rng::of_this_run("waiting_room_kill");
    let (people, kills) = match backend {
        Backend::Embedded => (setting("URR_E2E_WAITING", PEOPLE), KILLS),
        Backend::Postgres => ON_POSTGRES,
        Backend::Redis | Backend::Cluster => ON_SERVERS,
    };
    let people = crowd(usize::try_from(people)?);
    let launch = line::with_crowd(launch)
        .set("queue.threshold", "0")
        .set("queue.batch", BATCH.to_string())
        .set("redis.deadline_ms", "5000");
    let mut stage = Stage::up(launch).await?;
    let (event, _) = stage.event(-60).await?;
    let mut told = AcknowledgedPositions::default();
    let waves = people.chunks(people.len().div_ceil(kills));
    come(&mut stage, event, &mut told, &mut rng, waves).await?;
    compare(&stage, event, &mut told, &people).await?;
    let_in(&mut stage, event, &told, &mut rng, &people).await?;
    ensure!(stage.running.terminate().await?.success(), "the last server did not exit with 0");
    let report = line::verify(&stage.launch, event).await?;
    assert!(report.contains("fair "), "{report}");
    assert!(report.contains(&format!("joined    {}\n", people.len())), "{report}");
    Ok(())
}

on_backends! { kill_nine_keeps_acknowledged_positions: embedded Embedded, postgres Postgres, redis Redis }
