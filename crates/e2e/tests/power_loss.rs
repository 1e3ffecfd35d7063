//! The same loop on a disk that keeps only what was synced. kill -9 alone cannot see a missing fsync: the page cache
//! outlives the process.

use urr_e2e::{
    dice::{self, setting},
    powerloss::{Disk, Syncs},
    siege::Siege,
};

/// How often the power is lost in the middle of a rush, unless `URR_E2E_POWER_CYCLES` says otherwise.
const CYCLES: u64 = 40;

/// How often the control may lose power before the loss must have been noticed.
const CONTROL_CYCLES: u64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_hold_is_lost_or_doubled_by_power_loss() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let dice = dice::of_this_run("power_loss");
    let cycles = setting("URR_E2E_POWER_CYCLES", CYCLES);
    let siege = Siege::prepare(dir.path(), Some((&disk, Syncs::All)), dice).await?;
    let report = siege.run(cycles, |_| false).await?;
    report.print("power_loss");
    report.all_kept()?;
    let done = report.tally;
    assert!(done.held > cycles * 10 && done.released > cycles && done.resolved > 0, "{done:?}");
    Ok(())
}

/// The control. The binary as it is shipped has no setting that makes it sync less, and must not get one for a test. So the library
/// that stands for the disk drops exactly the syncs that SQLite leaves out with `synchronous=NORMAL`: the same binary on the same
/// workload then keeps less than it acknowledged, and a loop that still finds everything is not looking.
#[tokio::test(flavor = "multi_thread")]
async fn the_loop_notices_synchronous_normal() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let dice = dice::of_this_run("power_loss control");
    let siege = Siege::prepare(dir.path(), Some((&disk, Syncs::AsInNormal)), dice).await?;
    let report = siege.run(CONTROL_CYCLES, |report| report.lost() > 0).await?;
    report.print("power_loss control");
    assert!(report.lost() > 0, "acknowledged holds were not synced and nobody noticed: {report:?}");
    Ok(())
}
