//! Disks that are full or fail: what was not written is not acknowledged, and what was acknowledged is there afterwards.

use std::time::Duration;

use tokio::task::JoinSet;
use urr_e2e::{
    http::Answer,
    powerloss::{Disk, Sickness, Syncs},
    program,
    shop::{self, Buyer, Reservation},
    stage::Stage,
};
use urr_kernel::{EventId, SeatId};
use urr_testkit::until;

/// How many hold a seat at the same time: enough that some share a commit.
const CROWD: usize = 24;

/// When the map shows what is held at the latest.
const SHOWS: Duration = Duration::from_secs(10);

/// How long the process may take to end once it cannot go on.
const ENDS: Duration = Duration::from_secs(10);

/// A server on a disk that can fall sick, an event on sale and a crowd.
struct Story {
    stage: Stage,
    event: EventId,
    seats: Vec<SeatId>,
    crowd: Vec<Buyer>,
}

impl Story {
    async fn begin(disk: &Disk) -> anyhow::Result<Self> {
        let mut launch = program::launch(disk.root())?;
        for (key, value) in disk.env(Syncs::All) {
            launch = launch.env(key, value);
        }
        let stage = Stage::up(launch).await?;
        let (event, seats) = stage.event(-60).await?;
        Ok(Self { crowd: stage.buyers(CROWD).await?, stage, event, seats })
    }

    /// Everybody asks for a seat of their own at once. Whoever got no answer has `None`.
    async fn rush(&self) -> anyhow::Result<Vec<Option<Answer>>> {
        let mut asking = JoinSet::new();
        for (at, buyer) in self.crowd.iter().cloned().enumerate() {
            let (mut connection, event, seats) = (self.stage.connect(), self.event, [self.seats[at]]);
            asking.spawn(
                async move { shop::hold(&mut connection, &buyer.token, event, &seats, "k").await.ok() },
            );
        }
        Ok(asking.join_all().await)
    }

    /// Takes the power away and gives it back: only what was synced is left.
    async fn restart(&mut self, disk: &Disk) -> anyhow::Result<()> {
        disk.power_back()?;
        self.stage.running = self.stage.launch.up().await?;
        Ok(())
    }

    /// How many seats are held, as their buyers say and the map does, which may be a second old.
    async fn held(&self) -> anyhow::Result<usize> {
        let (mut connection, mut held) = (self.stage.connect(), 0);
        for buyer in &self.crowd {
            held += shop::live_reservations(&mut connection, &buyer.token).await?.len();
        }
        until(SHOWS, async || {
            let map = shop::seat_map(&mut connection, self.event).await.expect("reading needs no room");
            assert_eq!(map.len(), self.seats.len());
            map.iter().filter(|(_, state)| state != "available").count() == held
        })
        .await;
        Ok(held)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_503_for_everybody_in_the_batch_and_nothing_has_happened() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let mut story = Story::begin(&disk).await?;

    disk.fall_sick(Sickness::Full)?;
    for answer in story.rush().await? {
        let answer = answer.expect("a refusal is an answer");
        assert_eq!(answer.status, 503, "{}", answer.show());
        assert!(answer.header("retry-after").is_some(), "{}", answer.show());
    }
    assert_eq!(story.held().await?, 0, "the map can be read, and nobody has a seat");

    disk.recover(Sickness::Full)?;
    for answer in story.rush().await? {
        Reservation::from_answer(&answer.expect("there is room again"))?;
    }
    story.stage.running.kill().await?;
    story.restart(&disk).await?;
    assert_eq!(story.held().await?, CROWD, "what was acknowledged is there");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_to_sync_ends_the_process_and_acknowledges_nothing() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let mut story = Story::begin(&disk).await?;

    disk.fall_sick(Sickness::Broken)?;
    for answer in story.rush().await?.into_iter().flatten() {
        assert_ne!(answer.status, 200, "{}", answer.show());
    }
    let status = story.stage.running.ended(ENDS).await?;
    assert!(!status.success(), "{status}");
    let log = story.stage.running.log_tail();
    assert!(log.contains("only recovery from disk is safe"), "{log}");

    // The flag is gone with the power.
    story.restart(&disk).await?;
    assert_eq!(story.held().await?, 0);
    for answer in story.rush().await? {
        Reservation::from_answer(&answer.expect("the same keys, and a disk that is well"))?;
    }
    assert_eq!(story.held().await?, CROWD);
    Ok(())
}
