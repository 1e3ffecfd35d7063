//! The fixture on DynamoDB.

use std::time::Duration;

use urr_aws::{AwsConfig, Dynamo};
use urr_kernel::{Clock, Ids};
use urr_testkit::{fresh_postgres, services};
use uuid::Uuid;

use super::{Transport, World};
use crate::{Counters, DOMAIN};

impl World {
    pub(super) async fn on_dynamo_db(transport: Transport) -> Option<Self> {
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let config =
            AwsConfig { deadline: Duration::from_secs(10), ..AwsConfig::local(services::dynamodb()?) };
        let dynamo = Dynamo::connect(config, clock.clone()).unwrap();
        let prefix = format!("test-{}", ids.next::<Uuid>());
        crate::create_table(&dynamo, &prefix).await.unwrap();
        let db = fresh_postgres(&DOMAIN).await?;
        let (store, time, names) = (db.clone(), clock.clone(), ids.clone());
        let counters = move || {
            Counters::dynamo_db(dynamo.clone(), &prefix, Some(store.clone()), time.clone(), names.clone())
        };
        let world = Self::of(counters, db, transport, (clock, ids), None).await;
        world.service.refresh().await.unwrap();
        Some(world)
    }
}
