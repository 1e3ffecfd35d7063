//! Fixture: one service on the chosen backend, with a fake catalog.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_contracts::{
    auth::Sensitive,
    catalog::{Catalog, EventStatus},
    queue::{self, CheckIn, Error, Place, Queue, Standing, StatusOf},
};
use urr_db::Db;
use urr_http::{Client, ClientLimits};
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, EventId, Ids, OrderKey, Role, Timestamp, UserId, VisitorId};
use urr_kv::{Kv, KvConfig};
use urr_passes::{
    Secret, queue_ticket,
    queue_ticket::{Ticket, Tickets},
    vwr_pass,
    vwr_pass::{Pass, Passes},
};
use urr_rpc::{Ctx, Remote, internal_guard};
use urr_testkit::{fresh_postgres, fresh_sqlite, services};

use super::catalog::HandMade;
use crate::{Admitted, DOMAIN, Notices, Parts, Service, Settings, journal::Why, settings::Limits};

#[derive(Clone, Copy)]
pub(crate) enum RoomKind {
    Memory,
    MemoryOnPostgres,
    Redis,
    Cluster,
}

#[derive(Clone, Copy)]
pub(crate) enum Transport {
    Local,
    Remote,
}

pub(crate) struct World {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) service: Arc<Service>,
    pub(crate) catalog: Arc<HandMade>,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) secret: Secret,
    pub(crate) event: EventId,
    /// When Tier 1 opened.
    pub(crate) opened: Timestamp,
    /// Admissions reported to the listener.
    pub(crate) heard: Arc<Heard>,
    parts: (Db, Option<Kv>, Limits),
    tasks: Tasks,
    _files: tempfile::TempDir,
}

/// Records every admission.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<Admitted>>);

impl Heard {
    pub(crate) fn all(&self) -> Vec<Admitted> {
        self.0.lock().unwrap().clone()
    }
}

impl Notices for Heard {
    fn admitted(&self, admitted: Admitted) {
        self.0.lock().unwrap().push(admitted);
    }
}

impl World {
    /// `None` if a required store is not available (testkit reports it).
    pub(crate) async fn new(room: RoomKind, transport: Transport, limits: Limits) -> Option<Self> {
        let (files, db) = match room {
            RoomKind::Memory => fresh_sqlite(&DOMAIN).await,
            _ => (tempfile::tempdir().unwrap(), fresh_postgres(&DOMAIN).await?),
        };
        let config = match room {
            RoomKind::Memory | RoomKind::MemoryOnPostgres => None,
            RoomKind::Redis => Some(KvConfig::single(services::redis()?)),
            RoomKind::Cluster => Some(KvConfig::cluster(services::redis_cluster()?.split(','))),
        };
        Some(Self::on((files, db), config, transport, limits).await)
    }

    /// With this database, and with rooms in this Redis if given.
    pub(crate) async fn on(
        (files, db): (tempfile::TempDir, Db),
        config: Option<KvConfig>,
        transport: Transport,
        limits: Limits,
    ) -> Self {
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        // These tests check results, not latency on a shared machine.
        let patient = |config: KvConfig| KvConfig { deadline: Duration::from_secs(10), ..config };
        let kv = config.map(|config| Kv::connect(&patient(config), clock.clone()).unwrap());
        let (catalog, tasks) = (Arc::new(HandMade::default()), Tasks::new());
        let secret = Secret::new("correct horse battery staple, twice").unwrap();
        let (parts, heard) = ((db, kv, limits), Arc::new(Heard::default()));
        let service = service(&parts, (&catalog, &heard), (&clock, &ids), &secret);
        service.open(&tasks).await.unwrap();
        let queue: Arc<dyn Queue> = match transport {
            Transport::Local => Arc::clone(&service) as Arc<dyn Queue>,
            Transport::Remote => Arc::new(remote(Arc::clone(&service), &clock, &ids).await),
        };
        let event = ids.next();
        catalog.put(event, EventStatus::OnSale);
        // Longer ago than a ticket is valid.
        let opened = clock.now().before(Duration::from_hours(30));
        Self {
            queue,
            service,
            catalog,
            clock,
            ids,
            secret,
            event,
            opened,
            heard,
            parts,
            tasks,
            _files: files,
        }
    }

    /// Restarts the service on the same stores.
    pub(crate) async fn restart(&mut self) {
        self.begin_restart().await;
        self.open().await;
    }

    /// Restarts the service without opening its rooms.
    pub(crate) async fn begin_restart(&mut self) {
        self.tasks.shutdown(Duration::from_secs(10)).await.unwrap();
        self.tasks = Tasks::new();
        let parts = (&self.clock, &self.ids);
        let others = (&self.catalog, &self.heard);
        self.service = service(&self.parts, others, parts, &self.secret);
        self.queue = Arc::clone(&self.service) as Arc<dyn Queue>;
    }

    pub(crate) async fn open(&self) {
        self.service.open(&self.tasks).await.unwrap();
    }

    /// Restarts with another setting.
    pub(crate) async fn restart_with(&mut self, threshold: u32) {
        self.parts.2.threshold = threshold;
        self.restart().await;
    }

    pub(crate) fn db(&self) -> &Db {
        &self.parts.0
    }

    pub(crate) fn kv(&self) -> Option<&Kv> {
        self.parts.1.as_ref()
    }

    pub(crate) fn another_event(&self) -> EventId {
        let event = self.ids.next();
        self.catalog.put(event, EventStatus::OnSale);
        event
    }

    pub(crate) fn somebody(&self) -> UserId {
        self.ids.next()
    }

    pub(crate) fn ctx(&self, user: UserId) -> Ctx {
        self.acting(Actor::User { id: user, role: Role::User })
    }

    pub(crate) fn admin(&self) -> Ctx {
        self.acting(Actor::User { id: self.ids.next(), role: Role::Admin })
    }

    pub(crate) fn acting(&self, actor: Actor) -> Ctx {
        Ctx::new(self.ids.next(), actor, self.clock.clone(), Duration::from_secs(30))
    }

    /// Joins without tokens.
    pub(crate) async fn check(&self, user: UserId) -> Result<Place, Error> {
        self.check_with(user, self.event, None, None).await
    }

    pub(crate) async fn check_with(
        &self,
        user: UserId,
        event: EventId,
        ticket: Option<&str>,
        pass: Option<&str>,
    ) -> Result<Place, Error> {
        let (ticket, pass) = (ticket.map(Sensitive::new), pass.map(Sensitive::new));
        let request = CheckIn { event, ticket, pass, line_since: Some(self.opened), only_resume: false };
        self.queue.check(&self.ctx(user), request).await
    }

    /// Joins past Tier 1 with a ticket or an entry token, and without a pass.
    pub(crate) async fn come_back(&self, user: UserId, ticket: Option<&str>) -> Result<Place, Error> {
        self.come_past(user, ticket, None).await
    }

    /// Joins past Tier 1.
    pub(crate) async fn come_past(
        &self,
        user: UserId,
        ticket: Option<&str>,
        pass: Option<&str>,
    ) -> Result<Place, Error> {
        let (event, line_since) = (self.event, Some(self.opened));
        let (ticket, pass) = (ticket.map(Sensitive::new), pass.map(Sensitive::new));
        let request = CheckIn { event, ticket, pass, line_since, only_resume: true };
        self.queue.check(&self.ctx(user), request).await
    }

    pub(crate) async fn status(&self, user: UserId) -> Place {
        self.queue.status(&self.ctx(user), StatusOf { event: self.event }).await.unwrap()
    }

    pub(crate) async fn position(&self, user: UserId) -> Option<u64> {
        match self.status(user).await.standing {
            Standing::Waiting { position, .. } => Some(position),
            _ => None,
        }
    }

    /// One run of the admission worker.
    pub(crate) async fn admit(&self) {
        urr_jobs::Reconciler::run(&crate::work::admission::Admission(Arc::clone(&self.service)))
            .await
            .unwrap();
    }

    /// Removes a user as if they had timed out.
    pub(crate) async fn fall_silent(&self, user: UserId) {
        self.service.rooms().unwrap().leave(self.event, user, Why::Idle).await.unwrap();
    }

    /// A pass for the `nth` visitor of Tier 1, with a position ahead of every newcomer.
    pub(crate) fn pass(&self, event: EventId, nth: u64) -> String {
        let visitor: VisitorId = self.ids.next();
        let pass = Pass { event, visitor, order: OrderKey::counted(self.opened, nth), position: nth };
        Passes::new([vwr_pass::key(&self.secret)]).sign(&pass, self.ids.next(), self.clock.now())
    }

    pub(crate) fn tickets(&self) -> Tickets {
        Tickets::new([queue_ticket::key(&self.secret)])
    }

    pub(crate) fn ticket(&self, ticket: &Ticket) -> String {
        self.tickets().sign(ticket)
    }
}

fn service(
    (db, kv, limits): &(Db, Option<Kv>, Limits),
    (catalog, heard): (&Arc<HandMade>, &Arc<Heard>),
    (clock, ids): (&Clock, &Ids),
    secret: &Secret,
) -> Arc<Service> {
    crate::build(Parts {
        db: db.clone(),
        kv: kv.clone(),
        catalog: Arc::clone(catalog) as Arc<dyn Catalog>,
        clock: clock.clone(),
        ids: ids.clone(),
        secrets: vec![secret.clone()],
        settings: Settings { limits: *limits, grace: Duration::ZERO, ..Settings::default() },
        secure_cookies: true,
        notices: Some(Arc::clone(heard) as Arc<dyn Notices>),
    })
}

#[expect(clippy::disallowed_methods, reason = "the fixture's server ends with the test's runtime")]
async fn remote(service: Arc<Service>, clock: &Clock, ids: &Ids) -> Remote {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let routes = internal_guard(queue::internal_routes(service, clock.clone(), ids.clone()), "secret");
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Remote::new(Client::new(ClientLimits::default(), clock.clone()).target(&base).unwrap(), "secret")
}
