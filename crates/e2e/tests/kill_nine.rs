//! kill -9 in a loop on the real binary while eight clients hold seats: no acknowledged hold is
//! lost or doubled.

use urr_e2e::{
    rng::{self, setting},
    siege::Siege,
};

/// Number of kills in the middle of a rush; `URR_E2E_KILL_CYCLES` overrides it.
const CYCLES: u64 = 40;

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_hold_is_lost_or_doubled_by_kill_nine() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let rng = rng::of_this_run("kill_nine");
    let cycles = setting("URR_E2E_KILL_CYCLES", CYCLES);
    let report = Siege::prepare(dir.path(), None, rng).await?.run(cycles, |_| false).await?;
    report.print("kill_nine");
    report.all_kept()?;
    // The run must have had enough of each kind of request to prove something.
    let done = report.tally;
    assert!(done.held > cycles * 10, "{done:?}");
    assert!(done.released > cycles && done.refused > cycles && done.unanswered > cycles, "{done:?}");
    assert!(done.resolved > 0 && done.repeated > 0, "{done:?}");
    Ok(())
}
