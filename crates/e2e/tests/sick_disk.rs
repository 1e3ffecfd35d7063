//! Full and failing disks: what was not written is not acknowledged, and what was acknowledged
//! survives.

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

/// Concurrent holds: enough that some share a commit.
const CROWD: usize = 24;

/// Time limit until the seat map shows the holds.
const SHOWS: Duration = Duration::from_secs(10);

/// Time limit for the process to end after a fatal error.
const ENDS: Duration = Duration::from_secs(10);

/// A server on a disk with injected faults, an event on sale and its buyers.
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

    /// All buyers hold a seat each at once. `None` if there was no response.
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

    /// Simulates a power loss and restarts: only synced data is left.
    async fn restart(&mut self, disk: &Disk) -> anyhow::Result<()> {
        disk.power_back()?;
        self.stage.running = self.stage.launch.up().await?;
        Ok(())
    }

    /// The number of held seats, by reservations and by the seat map, which may be a second old.
    async fn held(&self) -> anyhow::Result<usize> {
        let (mut connection, mut held) = (self.stage.connect(), 0);
        for buyer in &self.crowd {
            held += shop::live_reservations(&mut connection, &buyer.token).await?.len();
        }
        until(SHOWS, async || {
            let map = shop::seat_map(&mut connection, self.event).await.expect("reads work on a full disk");
            assert_eq!(map.len(), self.seats.len());
            map.iter().filter(|(_, state)| state != "available").count() == held
        })
        .await;
        Ok(held)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_refuses_the_whole_batch_with_503() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let mut story = Story::begin(&disk).await?;

    disk.fall_sick(Sickness::Full)?;
    for answer in story.rush().await? {
        let answer = answer.expect("a response of 503");
        assert_eq!(answer.status, 503, "{}", answer.show());
        assert!(answer.header("retry-after").is_some(), "{}", answer.show());
    }
    assert_eq!(story.held().await?, 0, "the map can be read, and no seat is held");

    disk.recover(Sickness::Full)?;
    for answer in story.rush().await? {
        Reservation::from_answer(&answer.expect("the disk has space again"))?;
    }
    story.stage.running.kill().await?;
    story.restart(&disk).await?;
    assert_eq!(story.held().await?, CROWD, "acknowledged holds survive");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_sync_aborts_the_process_without_acknowledging() -> anyhow::Result<()> {
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

    // The power loss also removes the fault.
    story.restart(&disk).await?;
    assert_eq!(story.held().await?, 0);
    for answer in story.rush().await? {
        Reservation::from_answer(&answer.expect("the disk works again"))?;
    }
    assert_eq!(story.held().await?, CROWD);
    Ok(())
}
