//! `urr stampede`: a small crowd waits for minutes in seconds, and the large one cannot rot.

use std::time::Duration;

use anyhow::ensure;
use urr_e2e::program::Program;

/// The clock runs sixty times as fast, so ten minutes of waiting take ten seconds, and a busy machine some more.
const LIMIT: Duration = Duration::from_secs(55);

#[tokio::test]
async fn two_thousand_fans_come_in_in_the_order_in_which_they_came() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stampede = Program::find()?.command();
    stampede.args("stampede queue --fans 2000 --minutes 10 --speed 60 --connections 16 --dir".split(' '));
    let output = tokio::time::timeout(LIMIT, stampede.arg(dir.path()).output()).await??;
    let (said, complained) = (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}\n{complained}");
    for line in [
        "in       2000 of 2000 were let in and went",
        "order    every place was given once, nobody moved back",
        "joined    2000",
        "admitted  2000",
        "fair      nobody overtook",
    ] {
        assert!(said.contains(line), "no line begins with {line:?}:\n{said}");
    }
    assert!(complained.contains("gone of 2,000"), "progress is shown:\n{complained}");
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 0, "it leaves nothing behind");
    Ok(())
}

#[tokio::test]
async fn a_stampede_goes_nowhere_else() -> anyhow::Result<()> {
    for there in [["--listen", "0.0.0.0:3001"], ["--set", "redis.urls=redis://there:6379"]] {
        let refused = Program::find()?.run(&[&["stampede", "queue"][..], &there].concat()).await;
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("a server of its own on loopback"), "{why}");
    }
    Ok(())
}
