//! kill -9 in a loop while ten thousand people come: whoever was told a place has it, exactly, after every restart.

use std::{collections::HashMap, time::Duration};

use anyhow::ensure;
use urr_e2e::{
    dice::{Dice, setting},
    line::{self, Ask, Fan, crowd},
    program::{Launch, Program},
    stage::Stage,
};
use urr_kernel::{EventId, UserId};

/// How many come, unless `URR_E2E_WAITING` says otherwise.
const PEOPLE: u64 = 10_000;
/// People who come between two kills at most.
const WAVE: usize = 2_000;
/// The latest moment of a kill, in milliseconds from the start of a wave.
const LATEST_KILL_MS: u64 = 900;
/// Acknowledged places looked at after every restart. All of them are at the end.
const SAMPLE: usize = 200;
/// More waves than it takes on the slowest machine.
const MAX_WAVES: usize = 400;
/// At the end so many are let in, and must be the first.
const LET_IN: u32 = 100;

/// What people were told: nobody leaves and nobody is let in, so a place never changes.
#[derive(Default)]
struct Told(HashMap<UserId, u64>);

impl Told {
    fn hear(&mut self, answers: &[(Fan, serde_json::Value)]) -> anyhow::Result<()> {
        for (fan, answer) in answers {
            ensure!(answer["status"] == "queued", "somebody was let in: {answer}");
            let position = answer["position"].as_u64().unwrap();
            let before = *self.0.entry(fan.user).or_insert(position);
            ensure!(before == position, "{} had place {before} and has place {position}", fan.user);
        }
        Ok(())
    }
}

async fn compare(stage: &Stage, event: EventId, told: &mut Told, fans: &[Fan]) -> anyhow::Result<()> {
    let answers = line::ask_all(stage.running.address, fans, event, Ask::Status).await;
    ensure!(answers.len() == fans.len(), "{} of {} got an answer", answers.len(), fans.len());
    told.hear(&answers)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_place_is_lost_or_moved_by_kill_nine() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut dice = Dice::of_this_run("waiting_room_kill");
    let people = crowd(usize::try_from(setting("URR_E2E_WAITING", PEOPLE))?);
    let launch = line::with_crowd(Launch::new(&Program::find()?, &dir.path().join("data"))?);
    let mut stage = Stage::up(launch.clone().set("queue.threshold", "0")).await?;
    let (event, _) = stage.event(-60).await?;
    let (mut told, mut kills) = (Told::default(), 0);
    let mut acknowledged: Vec<Fan> = Vec::new();
    let mut to_come = people;
    for _ in 0..MAX_WAVES {
        if to_come.is_empty() {
            break;
        }
        let wave: Vec<Fan> = to_come[..WAVE.min(to_come.len())].to_vec();
        let moment = Duration::from_millis(dice.below(LATEST_KILL_MS));
        let kill = async {
            tokio::time::sleep(moment).await;
            stage.running.kill().await
        };
        let address = stage.launch.listen;
        let (answers, killed) = tokio::join!(line::ask_all(address, &wave, event, Ask::Check), kill);
        killed?;
        kills += 1;
        told.hear(&answers)?;
        let known: std::collections::HashSet<UserId> = answers.iter().map(|(fan, _)| fan.user).collect();
        to_come.retain(|fan| !known.contains(&fan.user));
        acknowledged.extend(answers.into_iter().map(|(fan, _)| fan));
        stage.running = stage.launch.up().await?;
        if !acknowledged.is_empty() {
            let sample: Vec<Fan> =
                (0..SAMPLE).map(|_| acknowledged[dice.index(acknowledged.len())].clone()).collect();
            compare(&stage, event, &mut told, &sample).await?;
        }
    }
    ensure!(to_come.is_empty(), "{} people were never answered", to_come.len());
    compare(&stage, event, &mut told, &acknowledged).await?;
    eprintln!("waiting_room_kill: {kills} kills, {} places kept", acknowledged.len());
    assert!(kills >= 3, "a loop of {kills} kills proves little");

    // Then the first are let in, and nobody else.
    let mut connection = stage.connect();
    line::set_threshold(&mut connection, &stage.admin.token, event, LET_IN).await?;
    urr_testkit::until(Duration::from_secs(30), async || {
        let room = line::room(&mut stage.connect(), &stage.admin.token, event).await.unwrap();
        room["currentUsers"] == LET_IN
    })
    .await;
    let answers = line::ask_all(stage.running.address, &acknowledged, event, Ask::Status).await;
    for (fan, answer) in &answers {
        let first = told.0[&fan.user] <= u64::from(LET_IN);
        assert_eq!(answer["status"] == "active", first, "place {}: {answer}", told.0[&fan.user]);
    }
    ensure!(stage.running.terminate().await?.success(), "the last server did not end cleanly");
    let report = line::verify(&stage.launch, event).await?;
    assert!(report.contains("fair "), "{report}");
    Ok(())
}
