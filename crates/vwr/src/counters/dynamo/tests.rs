//! DynamoDB only: functions without a database, a lost table, an unreachable server.

use std::time::Duration;

use urr_aws::{AwsConfig, Dynamo};
use urr_contracts::vwr::{Error, Order, Room};
use urr_db::Db;
use urr_kernel::{Clock, EventId, Ids};
use urr_testkit::{Proxy, fresh_sqlite, services, until};
use uuid::Uuid;

use super::{DynamoDb, create_table};
use crate::{DOMAIN, Failure, store::CommandSource};

/// Upper bound for one test; all of them finish far sooner.
const LIMIT: Duration = Duration::from_mins(1);

const OPEN: Order = Order::Activate { rate: Some(0), fail_open: None };

struct Fixture {
    clock: Clock,
    ids: Ids,
    db: Db,
    dynamo: Dynamo,
    prefix: String,
    event: EventId,
    _files: tempfile::TempDir,
}

impl Fixture {
    async fn new(clock: Clock) -> Option<Self> {
        let ids = Ids::random(Clock::system());
        let config =
            AwsConfig { deadline: Duration::from_secs(10), ..AwsConfig::local(services::dynamodb()?) };
        let dynamo = Dynamo::connect(config, Clock::system()).unwrap();
        let prefix = format!("test-{}", ids.next::<Uuid>());
        create_table(&dynamo, &prefix).await.unwrap();
        let (files, db) = fresh_sqlite(&DOMAIN).await;
        let event = ids.next();
        Some(Self { clock, ids, db, dynamo, prefix, event, _files: files })
    }

    fn counters(&self, prefix: &str, db: Option<Db>) -> DynamoDb {
        DynamoDb::new(self.dynamo.clone(), prefix, db, self.clock.clone(), self.ids.clone())
    }

    fn by(&self) -> CommandSource {
        CommandSource { id: self.ids.next(), actor: None, at: self.clock.now() }
    }
}

fn only(rooms: &[Room]) -> Room {
    let [room] = *rooms else { panic!("{rooms:?}") };
    room
}

#[tokio::test]
async fn without_a_database_positions_are_given_and_commands_refused() {
    let Some(fixture) = Fixture::new(urr_testkit::fixed_clock()).await else { return };
    let server = fixture.counters(&fixture.prefix, Some(fixture.db.clone()));
    let function = fixture.counters(&fixture.prefix, None);
    let nobody = function.add(fixture.event, 1).await.unwrap_err();
    assert!(matches!(nobody, Failure::Refused(Error::NotActive)), "{nobody:?}");
    server.order(fixture.event, OPEN, fixture.by()).await.unwrap();
    assert_eq!(function.add(fixture.event, 3).await.unwrap().first, 1);
    assert_eq!(server.add(fixture.event, 1).await.unwrap().first, 4);
    assert_eq!(only(&function.look().await.unwrap()), only(&server.look().await.unwrap()));
    let refused = function.order(fixture.event, Order::Pause, fixture.by()).await.unwrap_err();
    assert!(matches!(refused, Failure::Failed { .. }), "{refused:?}");

    server.order(fixture.event, Order::Deactivate, fixture.by()).await.unwrap();
    assert!(!only(&function.look().await.unwrap()).active, "a closed room stays listed");
    fixture.clock.advance(super::REMEMBERED + Duration::from_secs(1));
    assert!(function.look().await.unwrap().is_empty(), "a closed room is listed for a day");
}

#[tokio::test]
async fn a_lost_room_is_reopened_and_positions_are_not_repeated() {
    let Some(fixture) = Fixture::new(urr_testkit::fixed_clock()).await else { return };
    let server = fixture.counters(&fixture.prefix, Some(fixture.db.clone()));
    server.order(fixture.event, OPEN, fixture.by()).await.unwrap();
    server.order(fixture.event, Order::Pause, fixture.by()).await.unwrap();
    server.add(fixture.event, 100).await.unwrap();
    let before = only(&server.look().await.unwrap());

    // An empty table, as after it was deleted and created again.
    let lost = format!("test-{}", fixture.ids.next::<Uuid>());
    create_table(&fixture.dynamo, &lost).await.unwrap();
    let server = fixture.counters(&lost, Some(fixture.db.clone()));
    let young = only(&server.look().await.unwrap());
    assert_eq!(young.epoch, before.epoch, "the process that opened it may not have written it yet");

    let lost = format!("test-{}", fixture.ids.next::<Uuid>());
    create_table(&fixture.dynamo, &lost).await.unwrap();
    let server = fixture.counters(&lost, Some(fixture.db.clone()));
    fixture.clock.advance(super::TOLD);
    let after = only(&server.look().await.unwrap());
    assert_eq!(
        (after.epoch, after.tail, after.serving),
        (before.epoch + 1, 0, 0),
        "earlier tickets are void"
    );
    assert_eq!((after.active, after.paused, after.rate), (true, true, 0), "operator decisions are kept");
    assert_eq!(server.add(fixture.event, 1).await.unwrap().first, 1);
}

#[tokio::test]
async fn an_unreachable_dynamodb_gives_no_positions_and_recovers() {
    let Some(fixture) = Fixture::new(Clock::system()).await else { return };
    let direct = fixture.counters(&fixture.prefix, Some(fixture.db.clone()));
    direct.order(fixture.event, OPEN, fixture.by()).await.unwrap();
    let address = services::dynamodb().unwrap();
    let mut proxy = Proxy::start(address.trim_start_matches("http://")).await;
    let config = AwsConfig::local(format!("http://{}", proxy.address()));
    let dynamo = Dynamo::connect(config, Clock::system()).unwrap();
    let counters = DynamoDb::new(dynamo, &fixture.prefix, None, Clock::system(), fixture.ids.clone());
    until(LIMIT, async || counters.add(fixture.event, 1).await.is_ok()).await;
    proxy.cut().await;
    for _ in 0..20 {
        let failed = counters.add(fixture.event, 1).await.unwrap_err();
        assert!(failed.cause().is_some_and(urr_aws::Error::is_unavailable), "{failed:?}");
    }
    let before = only(&direct.look().await.unwrap()).tail;
    proxy.restore().await;
    until(LIMIT, async || counters.add(fixture.event, 1).await.is_ok()).await;
    assert!(only(&direct.look().await.unwrap()).tail > before);
}
