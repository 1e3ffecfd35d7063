//! Commands on what stands in for DynamoDB and SQS. Skipped loudly where there is none.

use urr_aws::{AwsConfig, Queue};
use urr_kernel::{Clock, EventId, Ids};
use urr_testkit::services;
use uuid::Uuid;

use crate::process::Place;

fn ids() -> Ids {
    Ids::random(Clock::system())
}

#[test]
fn tier_one_counts_in_a_table_that_migrate_makes() {
    let Some(endpoint) = services::dynamodb() else { return };
    let place = Place::new();
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
        place.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };

    let before = run(&["doctor"]);
    assert!(before.out.contains("vwr-counters: it is not there; run `urr migrate`"), "{before:#?}");
    assert_eq!(before.code, Some(1));
    assert!(run(&["migrate"]).ok().contains("vwr-counters is made"));
    assert!(run(&["migrate"]).ok().contains("vwr-counters is there"));
    assert!(run(&["doctor"]).ok().contains("vwr-counters: it is there"));

    let serving = place.serve(&set);
    assert_eq!(serving.get("/health/ready").status, 200);
    let nobody: EventId = ids().next();
    assert_eq!(serving.get(&format!("/vwr/serving/{nobody}")).status, 404);
    serving.stop();
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let place = Place::new();
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
        let said = place.run(&[&["check-config"][..], &set].concat());
        assert!(format!("{said:?}").contains(expected), "{settings:?}: {said:#?}");
        assert_ne!(said.code, Some(0), "{settings:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_notices_reads_its_queue_and_stops_when_it_is_told() {
    let Some(endpoint) = services::sqs() else { return };
    let name = format!("test-{}.fifo", ids().next::<Uuid>());
    let url = Queue::create(AwsConfig::local(endpoint.clone()), &name, Clock::system()).await.unwrap();
    let (endpoint, url) = (format!("aws.sqs_endpoint={endpoint}"), format!("queue.notices_url={url}"));
    let set = ["aws.region=local", &endpoint, &url].map(|setting| ["--set", setting]).concat();
    let place = Place::new();
    let doctor = place.run(&[&["doctor"][..], &set].concat()).ok();
    assert!(doctor.contains("SQS queue of notices: it is there"), "{doctor}");
    let serving = place.serve(&[&["--roles", "notices"][..], &set].concat());
    assert_eq!(serving.get("/health/ready").status, 200);
    serving.stop();
}
