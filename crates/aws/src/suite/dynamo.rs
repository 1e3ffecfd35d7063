//! Concurrent changes of an item, tables, and an unreachable server.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use urr_kernel::{Clock, Ids};
use urr_telemetry::Check as _;
use urr_testkit::{services, within};
use uuid::Uuid;

use crate::{AwsConfig, Change, Changed, Dynamo, Error, Item, TableState, Value};

/// Time limit of a test.
const LIMIT: Duration = Duration::from_mins(1);

struct Fixture {
    dynamo: Dynamo,
    table: String,
}

impl Fixture {
    async fn new() -> Option<Self> {
        let clock = Clock::system();
        // These tests check results, not the speed of a shared machine.
        let config =
            AwsConfig { deadline: Duration::from_secs(20), ..AwsConfig::local(services::dynamodb()?) };
        let dynamo = Dynamo::connect(config, clock.clone()).unwrap();
        let table = format!("test-{}", Ids::random(clock).next::<Uuid>());
        assert_eq!(dynamo.table(&table).await, Ok(TableState::Missing));
        assert_eq!(dynamo.create_table(&table, "name", "until").await, Ok(true));
        assert_eq!(dynamo.create_table(&table, "name", "until").await, Ok(false), "it exists already");
        assert_eq!(dynamo.table(&table).await, Ok(TableState::Ready));
        Some(Self { dynamo, table })
    }

    async fn change(&self, expression: &'static str, condition: &'static str, number: i64) -> Changed {
        let key = ("name", "one".to_owned());
        let values = vec![(":n", Value::Number(number))];
        let change = Change { table: &self.table, key, expression, condition, values };
        self.dynamo.change(change).await.unwrap()
    }
}

fn number(item: &Item) -> Option<i64> {
    item.number("tally")
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_all_count_and_one_wins() {
    let Some(fixture) = Fixture::new().await else { return };
    let fixture = Arc::new(fixture);
    let together = async {
        let mut tasks = JoinSet::new();
        for at in 0..60 {
            let fixture = Arc::clone(&fixture);
            tasks.spawn(async move {
                let counted = fixture.change("ADD tally :n", "attribute_not_exists(absent)", 1).await;
                let Changed::Yes(item) = counted else { panic!("expected the condition to hold") };
                let won = fixture.change("SET winner = :n", "attribute_not_exists(winner)", at).await;
                (number(&item).unwrap(), matches!(won, Changed::Yes(_)))
            });
        }
        tasks.join_all().await
    };
    let outcomes = within(LIMIT, together).await;
    let mut totals: Vec<i64> = outcomes.iter().map(|(total, _)| *total).collect();
    totals.sort_unstable();
    assert_eq!(totals, (1..=60).collect::<Vec<_>>(), "every number once");
    assert_eq!(outcomes.iter().filter(|(_, won)| *won).count(), 1);
}

#[tokio::test]
async fn failed_condition_returns_the_current_item_or_none() {
    let Some(fixture) = Fixture::new().await else { return };
    assert_eq!(fixture.change("SET tally = :n", "tally < :n", 5).await, Changed::No(None));
    assert_eq!(fixture.dynamo.get(&fixture.table, ("name", "one")).await, Ok(None));
    let Changed::Yes(item) = fixture.change("SET tally = :n", "attribute_not_exists(tally)", 5).await else {
        panic!("expected the change to be applied")
    };
    assert_eq!((number(&item), item.text("name"), item.flag("tally")), (Some(5), Some("one"), None));
    assert_eq!(fixture.change("SET tally = :n", "tally < :n", 5).await, Changed::No(Some(item.clone())));
    assert_eq!(fixture.dynamo.scan(&fixture.table).await, Ok(vec![item]));
}

#[tokio::test]
async fn invalid_call_is_an_error_and_does_not_open_the_breaker() {
    let Some(fixture) = Fixture::new().await else { return };
    for _ in 0..12 {
        let refused = fixture.dynamo.get("test-no-such-table", ("name", "one")).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Reply { why, .. } if why.contains("ResourceNotFound")),
            "{refused}"
        );
    }
    assert_eq!(fixture.dynamo.check().await, Ok(()));
}

#[tokio::test]
async fn unreachable_server_opens_the_breaker() {
    let deadline = Duration::from_millis(300);
    let port = urr_testkit::free_port();
    let config = AwsConfig { deadline, ..AwsConfig::local(format!("http://127.0.0.1:{port}")) };
    let dynamo = Dynamo::connect(config, Clock::system()).unwrap();
    let mut open = false;
    for _ in 0..20 {
        let error = dynamo.get("any", ("name", "one")).await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        open |= matches!(error, Error::Open { .. });
    }
    assert!(open, "the breaker is open after repeated failures");
}
