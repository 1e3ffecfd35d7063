//! Test fixture: Tier 1 on the chosen stores and transport.

use std::sync::Arc;

use urr_contracts::vwr::{
    self, Assign, Assigned, CheckTicket, Checked, Error, GiveOrder, Order, Ordered, Vwr,
};
use urr_db::Db;
use urr_jobs::{Reconciler, Tasks};
use urr_kernel::{Actor, Clock, EventId, Ids, Role, VisitorId};
use urr_kv::{Kv, KvConfig};
use urr_passes::{Secret, visitor, vwr_pass, vwr_ticket};
use urr_rpc::Ctx;
use urr_testkit::{DbKind, STORY_LIMIT, Transport, redis, redis_cluster, serve_internal, within};
use urr_vwr::{Counters, DOMAIN, Parts, Service};

/// Where positions are counted.
#[derive(Clone, Copy)]
pub(crate) enum Store {
    /// In memory, on SQLite.
    Memory,
    /// In Redis, on PostgreSQL.
    Redis,
    /// In Redis Cluster, on PostgreSQL.
    Cluster,
    /// In DynamoDB, on PostgreSQL.
    #[cfg(feature = "aws")]
    DynamoDb,
}

pub(crate) struct World {
    pub(crate) vwr: Arc<dyn Vwr>,
    pub(crate) service: Arc<Service>,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    db: Db,
    /// Counters of another process on the same stores.
    counters: Box<dyn Fn() -> Counters + Send + Sync>,
    _dir: Option<tempfile::TempDir>,
}

pub(crate) fn secrets() -> Vec<Secret> {
    vec![Secret::new("a secret for tests, of more than 32 bytes").unwrap()]
}

pub(crate) fn tickets() -> vwr_ticket::Tickets {
    vwr_ticket::Tickets::new(secrets().iter().map(vwr_ticket::key))
}

pub(crate) fn marks() -> visitor::Marks {
    visitor::Marks::new(secrets().iter().map(visitor::key))
}

pub(crate) fn passes() -> vwr_pass::Passes {
    vwr_pass::Passes::new(secrets().iter().map(vwr_pass::key))
}

/// The background work of a service with this name.
pub(crate) fn background(service: &Arc<Service>, name: &str) -> Arc<dyn Reconciler> {
    urr_vwr::background(service).into_iter().find(|work| work.name() == name).unwrap()
}

impl World {
    /// Runs a story. Skips it, with a warning from testkit, if a store it needs is not available.
    pub(crate) async fn run(kinds: (Store, Transport), story: impl AsyncFnOnce(&World)) {
        if let Some(world) = Self::new(kinds).await {
            world.service.refresh().await.unwrap();
            within(STORY_LIMIT, story(&world)).await;
        }
    }

    /// Runs a story in a process that has not loaded any room yet.
    pub(crate) async fn run_unloaded(kinds: (Store, Transport), story: impl AsyncFnOnce(&World)) {
        if let Some(world) = Self::new(kinds).await {
            within(STORY_LIMIT, story(&world)).await;
        }
    }

    async fn new((store, transport): (Store, Transport)) -> Option<Self> {
        match store {
            Store::Memory => Self::in_memory(transport).await,
            Store::Redis => Self::on_redis(&redis()?, transport).await,
            Store::Cluster => Self::on_redis(&redis_cluster()?, transport).await,
            #[cfg(feature = "aws")]
            Store::DynamoDb => Self::on_dynamo_db(transport).await,
        }
    }

    async fn in_memory(transport: Transport) -> Option<Self> {
        let clock = Clock::system();
        let (dir, db) = DbKind::Sqlite.open(&DOMAIN).await?;
        let (rows, time) = (db.clone(), clock.clone());
        let counters = move || Counters::memory(rows.clone(), time.clone());
        Some(Self { _dir: dir, ..Self::of(counters, db, transport, clock).await })
    }

    /// A process that has not loaded any room yet.
    pub(crate) async fn on_redis(config: &KvConfig, transport: Transport) -> Option<Self> {
        let clock = Clock::system();
        let (_, db) = DbKind::Postgres.open(&DOMAIN).await?;
        let kv = Kv::connect(config, clock.clone()).unwrap();
        let (rows, time) = (db.clone(), clock.clone());
        let counters = move || Counters::redis(kv.clone(), rows.clone(), time.clone());
        Some(Self::of(counters, db, transport, clock).await)
    }

    pub(crate) async fn of(
        counters: impl Fn() -> Counters + Send + Sync + 'static,
        db: Db,
        transport: Transport,
        clock: Clock,
    ) -> Self {
        let ids = Ids::random(clock.clone());
        let service = service(counters(), db.clone(), (&clock, &ids), secrets());
        let local = Arc::clone(&service) as Arc<dyn Vwr>;
        let vwr: Arc<dyn Vwr> = match transport {
            Transport::Local => local,
            Transport::Remote => {
                let routes = vwr::internal_routes(local, clock.clone(), ids.clone());
                Arc::new(serve_internal(routes, &clock).await)
            }
        };
        Self { vwr, service, clock, ids, db, counters: Box::new(counters), _dir: None }
    }

    /// Another process on the same stores.
    pub(crate) fn another(&self, secrets: Vec<Secret>) -> Arc<Service> {
        service((self.counters)(), self.db.clone(), (&self.clock, &self.ids), secrets)
    }

    pub(crate) fn ctx(&self, actor: Actor) -> Ctx {
        Ctx::new(self.ids.next(), actor, self.clock.clone(), STORY_LIMIT)
    }

    pub(crate) fn anybody(&self) -> Ctx {
        self.ctx(Actor::Anonymous)
    }

    pub(crate) fn operator(&self) -> Ctx {
        self.ctx(Actor::User { id: self.ids.next(), role: Role::Admin })
    }

    pub(crate) async fn order(&self, event: EventId, order: Order) -> Ordered {
        self.vwr.order(&self.operator(), GiveOrder { event, order }).await.unwrap()
    }

    /// Opens a room with a rate of 0.
    pub(crate) async fn open(&self) -> EventId {
        let event = self.ids.next();
        self.order(event, Order::Activate { rate: Some(0), fail_open: None }).await;
        event
    }

    pub(crate) async fn try_assign(&self, event: EventId, visitor: VisitorId) -> Result<Assigned, Error> {
        self.vwr.assign(&self.anybody(), Assign { event, visitor, ticket: None }).await
    }

    pub(crate) async fn assign(&self, event: EventId) -> (VisitorId, Assigned) {
        let visitor = self.ids.next();
        (visitor, self.try_assign(event, visitor).await.unwrap())
    }

    pub(crate) async fn check(
        &self,
        event: EventId,
        visitor: VisitorId,
        ticket: &str,
    ) -> Result<Checked, Error> {
        let request = CheckTicket { event, ticket: ticket.to_owned(), visitor: Some(visitor), pass: None };
        self.vwr.check(&self.anybody(), request).await
    }
}

fn service(counters: Counters, db: Db, (clock, ids): (&Clock, &Ids), secrets: Vec<Secret>) -> Arc<Service> {
    urr_vwr::build(Parts {
        db: Some(db),
        counters,
        clock: clock.clone(),
        ids: ids.clone(),
        secrets,
        tasks: Tasks::new(),
        secure_cookies: false,
    })
}
