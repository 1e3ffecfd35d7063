//! The same loop on a disk that keeps only what was synced. kill -9 alone does not reveal a missing
//! fsync, because the page cache survives the process.

use urr_e2e::{
    powerloss::{Disk, Syncs},
    rng::{self, setting},
    siege::Siege,
};

/// Number of power losses in the middle of a rush; `URR_E2E_POWER_CYCLES` overrides it.
const CYCLES: u64 = 40;

/// Power losses of the control, within which it must lose an acknowledged hold.
const CONTROL_CYCLES: u64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_hold_is_lost_or_doubled_by_power_loss() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let rng = rng::of_this_run("power_loss");
    let cycles = setting("URR_E2E_POWER_CYCLES", CYCLES);
    let siege = Siege::prepare(dir.path(), Some((&disk, Syncs::All)), rng).await?;
    let report = siege.run(cycles, |_| false).await?;
    report.print("power_loss");
    report.all_kept()?;
    let done = report.tally;
    assert!(done.held > cycles * 10 && done.released > cycles && done.resolved > 0, "{done:?}");
    Ok(())
}

/// The control. The binary has no setting to sync less, and must not get one for a test. So the
/// library drops exactly the fsyncs that SQLite leaves out with `synchronous=NORMAL`. The same
/// binary then loses acknowledged holds, and a loop that does not report them is broken.
#[tokio::test(flavor = "multi_thread")]
async fn control_detects_synchronous_normal() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let rng = rng::of_this_run("power_loss control");
    let siege = Siege::prepare(dir.path(), Some((&disk, Syncs::AsInNormal)), rng).await?;
    let report = siege.run(CONTROL_CYCLES, |report| report.lost() > 0).await?;
    report.print("power_loss control");
    assert!(report.lost() > 0, "the loop did not detect unsynced holds: {report:?}");
    Ok(())
}
