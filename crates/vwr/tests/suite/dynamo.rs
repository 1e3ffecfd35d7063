//! The fixture on DynamoDB.

use std::time::Duration;

use urr_aws::{AwsConfig, Dynamo};
use urr_kernel::{Clock, Ids};
use urr_testkit::{DbKind, Transport, services};
use urr_vwr::{Counters, DOMAIN};
use uuid::Uuid;

use super::world::World;

impl World {
    pub(crate) async fn on_dynamo_db(transport: Transport) -> Option<Self> {
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let config =
            AwsConfig { deadline: Duration::from_secs(10), ..AwsConfig::local(services::dynamodb()?) };
        let dynamo = Dynamo::connect(config, clock.clone()).unwrap();
        let prefix = format!("test-{}", ids.next::<Uuid>());
        urr_vwr::create_table(&dynamo, &prefix).await.unwrap();
        let (_, db) = DbKind::Postgres.open(&DOMAIN).await?;
        let (rows, time) = (db.clone(), clock.clone());
        let counters = move || {
            Counters::dynamo_db(dynamo.clone(), &prefix, Some(rows.clone()), time.clone(), ids.clone())
        };
        Some(Self::of(counters, db, transport, clock).await)
    }
}
