//! Start, stop and restart; one process per data directory.

use std::time::Duration;

use urr_e2e::{
    http::Request,
    program::{self, free_address},
    rng,
    shop::{self, Reservation},
    siege::{End, Siege},
    stage::Stage,
};

/// Number of SIGTERM signals in the middle of a rush.
const CYCLES: u64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_drains_and_no_acknowledged_hold_is_lost() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let rng = rng::of_this_run("sigterm");
    // The siege fails if a process exits with anything but 0 after SIGTERM.
    let siege = Siege::prepare(dir.path(), None, rng).await?.ending(End::Terminate);
    let report = siege.run(CYCLES, |_| false).await?;
    report.print("sigterm");
    report.all_kept()?;
    assert!(report.tally.held > CYCLES * 10, "{:?}", report.tally);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn second_process_on_the_same_data_exits_and_names_the_cause() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let stage = Stage::embedded(dir.path()).await?;
    let mut launch = stage.launch.clone();
    launch.listen = free_address();
    let second = launch.start();
    let mut second = second?;
    let status = second.ended(Duration::from_secs(20)).await?;
    assert!(!status.success());
    let said = second.log_tail();
    let data_dir = stage.launch.data_dir.to_string_lossy();
    assert!(said.contains(&*data_dir) && said.contains("another process"), "{said}");
    let ready = stage.connect().send(&Request::get("/health/ready")).await?;
    assert_eq!(ready.status, 200, "{}", ready.show());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_survives_a_clean_restart() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let stage = Stage::embedded(dir.path()).await?;
    let (event, seats) = stage.event(-60).await?;
    let buyer = stage.buyer().await?;
    let held = shop::hold(&mut stage.connect(), &buyer.token, event, &seats[..2], "k").await?;
    let held = Reservation::from_answer(&held)?;
    let Stage { launch, running, .. } = stage;
    assert!(running.terminate().await?.success());

    let running = launch.up().await?;
    let mut connection = urr_e2e::http::Connection::to(running.address);
    let found = shop::reservation(&mut connection, &buyer.token, held.id).await?;
    assert_eq!(Reservation::from_answer(&found)?, held);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn first_start_creates_demo_events_once() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let launch = program::launch(&dir.path().join("data"))?.set("demo", "true");
    let mut listed = Vec::new();
    for _ in 0..2 {
        let running = launch.up().await?;
        let mut connection = urr_e2e::http::Connection::to(running.address);
        let answer = connection.send(&Request::get("/api/events?status=on_sale&limit=100")).await?;
        assert_eq!(answer.status, 200, "{}", answer.show());
        let events = answer.json()["events"].as_array().cloned().unwrap_or_default();
        let seated = events.iter().filter(|event| !event["seat_layout_id"].is_null()).count();
        assert!(
            seated >= 2 && events.len() > seated,
            "two seated and one standing event are on sale: {events:?}"
        );
        listed.push(events);
        assert!(running.terminate().await?.success());
    }
    assert_eq!(listed[0], listed[1]);
    Ok(())
}
