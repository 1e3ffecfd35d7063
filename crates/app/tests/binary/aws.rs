//! Commands on local substitutes of DynamoDB and SQS. Without them the tests are skipped with a
//! message.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use urr_aws::{AwsConfig, Queue};
use urr_kernel::{Clock, EventId, Ids, UserId};
use urr_testkit::{AccessTokens, services, until};
use uuid::Uuid;

use crate::process::{PATIENCE, Serving, WorkDir};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn ids() -> Ids {
    Ids::random(Clock::system())
}

#[test]
fn migrate_creates_the_dynamodb_table_of_tier_one() {
    let Some(endpoint) = services::dynamodb() else { return };
    let work_dir = WorkDir::new();
    let endpoint = format!("aws.dynamodb_endpoint={endpoint}");
    let prefix = format!("vwr.table_prefix=test-{}", ids().next::<Uuid>());
    let set = ["vwr.counters=dynamodb", "aws.region=local", "aws.deadline_ms=10000", &endpoint, &prefix]
        .map(|setting| ["--set", setting])
        .concat();
    let with = |command: &[&'static str]| -> Vec<String> {
        command.iter().chain(&set).map(|word| (*word).to_owned()).collect()
    };
    let run = |command: &[&'static str]| {
        let words = with(command);
        work_dir.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };

    let before = run(&["doctor"]);
    assert!(before.out.contains("vwr-counters: it does not exist; run `urr migrate`"), "{before:#?}");
    assert_eq!(before.code, Some(1));
    assert!(run(&["migrate"]).ok().contains("vwr-counters created"));
    assert!(run(&["migrate"]).ok().contains("vwr-counters exists"));
    assert!(run(&["doctor"]).ok().contains("vwr-counters: exists"));

    let serving = work_dir.serve(&set);
    assert_eq!(serving.get("/health/ready").status, 200);
    let unknown: EventId = ids().next();
    assert_eq!(serving.get(&format!("/vwr/serving/{unknown}")).status, 404);
    serving.stop();
}

#[test]
fn contradictory_settings_are_refused() {
    let work_dir = WorkDir::new();
    for (settings, expected) in [
        (&["vwr.counters=dynamodb"][..], "`aws.region` is not set, but vwr.counters = dynamodb needs it"),
        (&["vwr.table_prefix=shop"][..], "`vwr.table_prefix` is only for vwr.counters = dynamodb"),
        (&["aws.sqs_endpoint=http://127.0.0.1:1"][..], "`aws.sqs_endpoint` is only for queue.notices_url"),
        (&["roles=notices"][..], "`queue.notices_url` is not set, but the role notices reads it"),
        (
            &["aws.region=local", "queue.notices_url=https://sqs.example/1/standard"][..],
            "`queue.notices_url` is no FIFO queue",
        ),
        (
            &["vwr.counters=dynamodb", "aws.region=local", "aws.dynamodb_endpoint=http://10.0.0.5:8000"][..],
            "the endpoint at 10.0.0.5 is not on this machine and has no TLS",
        ),
        (
            &["vwr.counters=dynamodb", "aws.region=local", "vwr.table_prefix=a b"][..],
            "`vwr.table_prefix` may have 200 letters",
        ),
    ] {
        let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", *setting]).collect();
        let said = work_dir.run(&[&["check-config"][..], &set].concat());
        assert!(format!("{said:?}").contains(expected), "{settings:?}: {said:#?}");
        assert_ne!(said.code, Some(0), "{settings:?}");
    }
}

/// Reads, checks and deletes the next notice. Returns its user and how often it was read.
async fn next_notice(queue: &Queue, event: &str) -> (UserId, u32) {
    let mut found = Vec::new();
    until(PATIENCE, async || {
        found = queue.receive(Duration::from_secs(1)).await.expect("the queue exists");
        !found.is_empty()
    })
    .await;
    assert_eq!(found.len(), 1, "{found:?}");
    let notice: Value = serde_json::from_str(&found[0].body).expect("a notice is JSON");
    assert_eq!((notice["action"].as_str(), notice["eventId"].as_str()), (Some("admitted"), Some(event)));
    assert!(notice["slotId"].is_string() && notice["timestamp"].is_u64(), "{notice}");
    assert_eq!(queue.delete(&found).await, Ok(1));
    let user = notice["userId"].as_str().and_then(|user| user.parse().ok()).expect("a notice has a user id");
    (user, found[0].times)
}

#[tokio::test(flavor = "multi_thread")]
async fn admissions_are_sent_to_sqs_and_the_role_notices_reads_them() {
    let Some(endpoint) = services::sqs() else { return };
    let config = AwsConfig { deadline: PATIENCE, ..AwsConfig::local(endpoint.clone()) };
    let name = format!("test-{}.fifo", ids().next::<Uuid>());
    let url = Queue::create(config.clone(), &name, Clock::system()).await.unwrap();
    let queue = Queue::connect(config, url.clone(), Clock::system()).unwrap();
    let (endpoint, url) = (format!("aws.sqs_endpoint={endpoint}"), format!("queue.notices_url={url}"));
    let set = ["aws.region=local", "aws.deadline_ms=10000", &endpoint, &url];
    let set = set.map(|setting| ["--set", setting]).concat();
    let (work_dir, other_dir) = (WorkDir::new(), WorkDir::new());
    let doctor = work_dir.run(&[&["doctor"][..], &set].concat()).ok();
    assert!(doctor.contains("SQS queue of notices: exists"), "{doctor}");

    let secret = format!("security.secret={SECRET}");
    let serving = work_dir.serve(&[&["--set", &secret][..], &set].concat());
    let events = serving.get("/api/events?status=on_sale").json();
    let event = events["events"][0]["id"].as_str().unwrap();
    let come_in = || {
        let (user, token) = AccessTokens::new(SECRET).somebody();
        let bearer = format!("Bearer {token}");
        let answer =
            serving.ask("POST", &format!("/api/queue/check/{event}"), &[("authorization", &bearer)], "");
        assert_eq!(answer.json()["status"], "active", "{answer:?}");
        user
    };
    let first = come_in();
    assert_eq!(next_notice(&queue, event).await, (first, 1), "it is read for the first time");

    let second = come_in();
    until(PATIENCE, async || queue.depth().await == Ok(1)).await;
    let reading = other_dir.serve(&[&["--roles", "notices"][..], &set].concat());
    assert_eq!(reading.get("/health/ready").status, 200);
    let read = r#"urr_queue_notices_total{outcome="read"} 1"#;
    until(PATIENCE, async || reading.get("/metrics").body.contains(read)).await;
    let heard = stopped(reading);
    assert_eq!(queue.depth().await, Ok(0));
    assert!(heard.contains("user admitted") && heard.contains(&second.to_string()), "{heard}");
    // Notices of one event are read in order, so an undeleted second notice would come first. The
    // stopped process may have received the third one already; then it is delivered again.
    let third = come_in();
    assert_eq!(next_notice(&queue, event).await.0, third);
    serving.stop();
}

/// Stops the process and returns its log.
fn stopped(serving: Serving) -> String {
    serving.signal(Signal::TERM);
    let (code, log) = serving.end();
    assert_eq!(code, Some(0), "{log}");
    log
}
