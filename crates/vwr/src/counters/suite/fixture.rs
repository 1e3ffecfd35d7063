//! Fixture: counters on a chosen store, with helpers.

use std::{sync::Arc, time::Duration};

use urr_contracts::vwr::{Order, Ordered, Room};
use urr_db::{Db, Tx, transaction};
use urr_kernel::{Clock, EventId, Ids, UserId};
use urr_kv::{Arg, Kv, KvConfig, Script};
use urr_testkit::{fresh_postgres, fresh_sqlite, redis, redis_cluster};
use uuid::Uuid;

use crate::{
    DOMAIN, Failure,
    counters::{Counters, LeaseOutcome},
    store::{self, CommandSource, Lead},
};

/// The store under test.
pub(super) enum Store {
    Memory,
    Redis(Kv),
    #[cfg(feature = "aws")]
    DynamoDb(urr_aws::Dynamo, String),
}

pub(super) struct Fixture {
    pub(super) counters: Arc<Counters>,
    pub(super) db: Db,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
    pub(super) event: EventId,
    _files: Option<tempfile::TempDir>,
}

impl Fixture {
    pub(super) async fn memory() -> Option<Self> {
        let (files, db) = fresh_sqlite(&DOMAIN).await;
        Some(Self::new(db, Store::Memory, Some(files)))
    }

    pub(super) async fn memory_on_postgres() -> Option<Self> {
        Some(Self::new(fresh_postgres(&DOMAIN).await?, Store::Memory, None))
    }

    pub(super) async fn redis() -> Option<Self> {
        Self::on(&redis()?).await
    }

    pub(super) async fn cluster() -> Option<Self> {
        Self::on(&redis_cluster()?).await
    }

    async fn on(config: &KvConfig) -> Option<Self> {
        let kv = Kv::connect(config, Clock::system()).unwrap();
        Some(Self::new(fresh_postgres(&DOMAIN).await?, Store::Redis(kv), None))
    }

    #[cfg(feature = "aws")]
    pub(super) async fn dynamo_db() -> Option<Self> {
        let local = urr_aws::AwsConfig::local(urr_testkit::services::dynamodb()?);
        // These tests check results, not latency on a shared machine.
        let config = urr_aws::AwsConfig { deadline: Duration::from_secs(10), ..local };
        let dynamo = urr_aws::Dynamo::connect(config, Clock::system()).unwrap();
        let prefix = format!("test-{}", Ids::random(Clock::system()).next::<Uuid>());
        assert_eq!(crate::create_table(&dynamo, &prefix).await, Ok(true));
        Some(Self::new(fresh_postgres(&DOMAIN).await?, Store::DynamoDb(dynamo, prefix), None))
    }

    fn new(db: Db, store: Store, files: Option<tempfile::TempDir>) -> Self {
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let counters = Arc::new(counters(&db, &store, &clock));
        let event = ids.next();
        Self { counters, db, store, clock, ids, event, _files: files }
    }

    /// Whether all processes share one store.
    pub(super) fn is_shared(&self) -> bool {
        !matches!(self.store, Store::Memory)
    }

    /// Another process on the same stores.
    pub(super) fn another(&self) -> Arc<Counters> {
        Arc::new(counters(&self.db, &self.store, &self.clock))
    }

    pub(super) async fn try_order(&self, order: Order, actor: Option<UserId>) -> Result<Ordered, Failure> {
        let by = CommandSource { id: self.ids.next(), actor, at: self.clock.now() };
        self.counters.order(self.event, order, by).await
    }

    pub(super) async fn order(&self, order: Order) -> Ordered {
        self.try_order(order, None).await.unwrap()
    }

    pub(super) async fn open(&self, rate: u32) -> Room {
        self.order(Order::Activate { rate: Some(rate), fail_open: None }).await.room
    }

    pub(super) async fn add(&self, count: u64) -> u64 {
        self.counters.add(self.event, count).await.unwrap().first
    }

    pub(super) async fn turn(&self, worker: Uuid, term: Option<u64>) -> LeaseOutcome {
        self.counters.advance(self.event, worker, term).await.unwrap()
    }

    /// The room as another process sees it.
    pub(super) async fn look(&self) -> Room {
        let rooms = self.counters.look().await.unwrap();
        rooms.into_iter().find(|room| room.event == self.event).unwrap()
    }

    /// Deletes the data in Redis, or kills the process. DynamoDB loses nothing.
    pub(super) async fn lose_everything(&mut self) {
        static FLUSH: Script = Script::new("test.flush", "return redis.call('DEL', KEYS[1])");
        if let Store::Redis(kv) = &self.store {
            let key = format!("{{{}}}:vwr", self.event);
            kv.run(&FLUSH, &[key], &[] as &[Arg<'_>]).await.unwrap();
        } else {
            self.counters = self.another();
        }
    }
}

impl Fixture {
    /// Sets the room's times and its lease as if the clock had since gone back by `step`.
    pub(super) async fn clock_went_back(&self, step: Duration) {
        static AHEAD: Script = Script::new(
            "test.ahead",
            "return redis.call('HSET', KEYS[1], 'moved', ARGV[1], 'until', ARGV[1], 'leader', 'another')",
        );
        let (event, ahead) = (self.event, self.clock.now().after(step));
        match &self.store {
            Store::Memory => {
                let lead = Lead { leader: Some(self.ids.next()), term: 1, until: ahead };
                let noted: Result<(), Failure> =
                    transaction!(self.db, "test.ahead", async |tx: &mut Tx<'_>| {
                        let room = store::room(tx, event).await?.unwrap().room;
                        Ok(store::advance(tx, event, (room.serving, ahead), room.tail, lead).await?)
                    });
                noted.unwrap();
            }
            Store::Redis(kv) => {
                let args = [Arg::from(ahead.as_micros())];
                kv.run(&AHEAD, &[format!("{{{event}}}:vwr")], &args).await.unwrap();
            }
            #[cfg(feature = "aws")]
            Store::DynamoDb(dynamo, prefix) => {
                use urr_aws::{Change, Changed, Value};
                let values = vec![
                    (":ahead", Value::Number(ahead.as_micros())),
                    (":another", Value::Text(self.ids.next::<Uuid>().to_string())),
                ];
                let change = Change {
                    table: &crate::counters::dynamo::table(prefix),
                    key: (crate::counters::dynamo::KEY, event.to_string()),
                    expression: "SET movedAt = :ahead, ledUntil = :ahead, ledBy = :another",
                    condition: "attribute_exists(epoch)",
                    values,
                };
                assert!(matches!(dynamo.change(change).await, Ok(Changed::Yes(_))));
            }
        }
    }
}

fn counters(db: &Db, store: &Store, clock: &Clock) -> Counters {
    match store {
        Store::Memory => Counters::memory(db.clone(), clock.clone()),
        Store::Redis(kv) => Counters::redis(kv.clone(), db.clone(), clock.clone()),
        #[cfg(feature = "aws")]
        Store::DynamoDb(dynamo, prefix) => {
            let ids = Ids::random(clock.clone());
            Counters::dynamo_db(dynamo.clone(), prefix, Some(db.clone()), clock.clone(), ids)
        }
    }
}
