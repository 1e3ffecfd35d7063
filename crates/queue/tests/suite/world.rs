//! Fixture: one service on the chosen backend, with a fake catalog.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_contracts::{
    auth::Sensitive,
    catalog::{Catalog, EventStatus},
    queue::{self, CheckIn, EntryState, EntryStatus, Error, Queue, RoomOf, StatusOf},
};
use urr_db::{Db, Tx, statements};
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, EventId, Ids, OrderKey, Role, Timestamp, UserId, VisitorId};
use urr_kv::{Arg, Kv, KvConfig, Script};
use urr_passes::{
    Secret, queue_ticket,
    queue_ticket::{Ticket, Tickets},
    vwr_pass,
    vwr_pass::{Pass, Passes},
};
use urr_queue::{
    Admitted, Limits, Notices, Parts, Room, Service, Settings,
    journal::{self, Why},
};
use urr_rpc::Ctx;
use urr_testkit::{FakeCatalog, Proxy, Transport, fixed, serve_internal};

/// Idle timeout of rooms in memory, whose clock the tests advance: shorter than a pass is valid.
const WAITING_IDLE: Duration = Duration::from_secs(30);

statements! {
    /// Number of purchases whose slots are not freed yet.
    PURCHASES = "select count(*) from purchases";

    /// Sets when a room was closed.
    CLOSED_AT = "update rooms set closed_at = $2 where event_id = $1";
}

pub(crate) struct World {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) service: Arc<Service>,
    pub(crate) catalog: Arc<FakeCatalog>,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) secret: Secret,
    pub(crate) event: EventId,
    /// When Tier 1 opened.
    pub(crate) opened: Timestamp,
    /// Admissions reported to the listener.
    pub(crate) heard: Arc<Heard>,
    parts: (Db, Option<Kv>, Limits),
    proxy: Option<tokio::sync::Mutex<Proxy>>,
    tasks: Tasks,
    everybody: Mutex<Vec<UserId>>,
    _dir: Option<tempfile::TempDir>,
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
    pub(crate) async fn new(
        (dir, db): (Option<tempfile::TempDir>, Db),
        config: Option<KvConfig>,
        proxy: Option<tokio::sync::Mutex<Proxy>>,
        transport: Transport,
        mut limits: Limits,
    ) -> Self {
        // Redis has its own clock, which a test cannot advance.
        let (clock, ids) = match &config {
            Some(_) => (Clock::system(), Ids::random(Clock::system())),
            None => fixed(),
        };
        let kv = config.map(|config| Kv::connect(&config, clock.clone()).unwrap());
        if kv.is_none() {
            limits.waiting_idle = WAITING_IDLE;
        }
        let (catalog, tasks) = (Arc::new(FakeCatalog::default()), Tasks::new());
        let secret = Secret::new("correct horse battery staple, twice").unwrap();
        let (parts, heard) = ((db, kv, limits), Arc::new(Heard::default()));
        let service = service(&parts, (&catalog, &heard), (&clock, &ids), &secret);
        service.open(&tasks).await.unwrap();
        let local = Arc::clone(&service) as Arc<dyn Queue>;
        let queue: Arc<dyn Queue> = match transport {
            Transport::Local => local,
            Transport::Remote => {
                let routes = queue::internal_routes(local, clock.clone(), ids.clone());
                Arc::new(serve_internal(routes, &clock).await)
            }
        };
        let event = ids.next();
        catalog.set_status(event, EventStatus::OnSale);
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
            proxy,
            tasks,
            everybody: Mutex::default(),
            _dir: dir,
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
        self.catalog.set_status(event, EventStatus::OnSale);
        event
    }

    pub(crate) fn somebody(&self) -> UserId {
        let user = self.ids.next();
        self.everybody.lock().unwrap().push(user);
        user
    }

    pub(crate) fn ctx(&self, user: UserId) -> Ctx {
        self.acting(Actor::User { id: user, role: Role::User })
    }

    pub(crate) fn admin(&self) -> Ctx {
        self.acting(Actor::User { id: self.ids.next(), role: Role::Admin })
    }

    /// Advances the clock of rooms in memory. The clock of Redis advances by itself.
    pub(crate) fn wait(&self, time: Duration) {
        if self.kv().is_none() {
            self.clock.advance(time);
        }
    }

    /// A new request, which is later than the one before.
    pub(crate) fn acting(&self, actor: Actor) -> Ctx {
        self.wait(Duration::from_millis(1));
        Ctx::new(self.ids.next(), actor, self.clock.clone(), Duration::from_secs(30))
    }

    /// Joins without tokens.
    pub(crate) async fn check(&self, user: UserId) -> Result<EntryStatus, Error> {
        self.check_with(user, self.event, None, None).await
    }

    pub(crate) async fn check_with(
        &self,
        user: UserId,
        event: EventId,
        ticket: Option<&str>,
        pass: Option<&str>,
    ) -> Result<EntryStatus, Error> {
        let (ticket, pass) = (ticket.map(Sensitive::new), pass.map(Sensitive::new));
        let request = CheckIn { event, ticket, pass, line_since: Some(self.opened), only_resume: false };
        self.queue.check(&self.ctx(user), request).await
    }

    /// Joins past Tier 1 with a ticket or an entry token, and without a pass.
    pub(crate) async fn come_back(&self, user: UserId, ticket: Option<&str>) -> Result<EntryStatus, Error> {
        self.come_past(user, ticket, None).await
    }

    /// Joins past Tier 1.
    pub(crate) async fn come_past(
        &self,
        user: UserId,
        ticket: Option<&str>,
        pass: Option<&str>,
    ) -> Result<EntryStatus, Error> {
        let (event, line_since) = (self.event, Some(self.opened));
        let (ticket, pass) = (ticket.map(Sensitive::new), pass.map(Sensitive::new));
        let request = CheckIn { event, ticket, pass, line_since, only_resume: true };
        self.queue.check(&self.ctx(user), request).await
    }

    pub(crate) async fn status(&self, user: UserId) -> EntryStatus {
        self.queue.status(&self.ctx(user), StatusOf { event: self.event }).await.unwrap()
    }

    pub(crate) async fn position(&self, user: UserId) -> Option<u64> {
        match self.status(user).await.state {
            EntryState::Waiting { position, .. } => Some(position),
            _ => None,
        }
    }

    /// Number of users with a slot, and number of waiting users.
    pub(crate) async fn inside(&self) -> (u64, u64) {
        let room = self.queue.room(&self.admin(), RoomOf { event: self.event }).await.unwrap();
        (room.active, room.waiting)
    }

    /// The next run of the admission worker, a second after the last one.
    pub(crate) async fn admit(&self) {
        self.wait(Duration::from_secs(1));
        urr_queue::admission(&self.service).run().await.unwrap();
    }

    /// The position of a user times out.
    pub(crate) async fn fall_silent(&self, user: UserId) {
        if let Some(room) = self.redis_room() {
            assert!(room.leave(self.event, user, Why::Idle).await.unwrap());
            return;
        }
        let everybody = self.everybody.lock().unwrap().clone();
        for _ in 0..=WAITING_IDLE.as_secs() {
            for other in everybody.iter().filter(|other| **other != user) {
                self.status(*other).await;
            }
            self.admit().await;
        }
        assert_eq!(self.status(user).await.state, EntryState::Absent);
    }

    /// The rooms in Redis, as another process would open them.
    fn redis_room(&self) -> Option<Room> {
        let (db, kv, limits) = &self.parts;
        let (kv, clock, ids) = (kv.clone()?, self.clock.clone(), self.ids.clone());
        Some(Room::redis(kv, db.clone(), clock, ids, *limits, Duration::ZERO))
    }

    /// Completes the journal of a room.
    pub(crate) async fn settle(&self, event: EventId) {
        if let Some(room) = self.redis_room() {
            room.settle(event).await.unwrap();
        }
    }

    pub(crate) async fn assert_fair(&self) {
        self.settle(self.event).await;
        let report = journal::verify(self.db(), self.event).await.unwrap().unwrap();
        assert!(report.is_fair(), "{:#?}", report.findings);
    }

    /// Number of purchases whose slots are not freed yet.
    pub(crate) async fn purchases(&self) -> i64 {
        let read: Result<i64, urr_db::Error> = self
            .db()
            .read("test.purchases", async |tx: &mut Tx<'_>| tx.one(&PURCHASES, &[], |row| row.get(0)).await)
            .await;
        read.unwrap()
    }

    /// One run of the job that closes idle rooms and deletes old journals. Returns their number.
    pub(crate) async fn tidy(&self) -> u64 {
        let [tidy] = &urr_queue::reconcilers(&self.service)[..] else { panic!("the queue has one job") };
        tidy.run().await.unwrap().done
    }

    /// The room was last used 26 hours ago. Rooms are closed after 25 hours.
    pub(crate) async fn leave_alone(&self, event: EventId) {
        static AGE: Script = Script::new("test.age", "return redis.call('HSET', KEYS[1], 'changed', 0)");
        match self.kv() {
            Some(kv) => drop(kv.run(&AGE, &[format!("{{{event}}}:room")], &[] as &[Arg<'_>]).await.unwrap()),
            None => self.clock.advance(Duration::from_hours(26)),
        }
    }

    /// The room was closed 91 days ago. Journals are deleted after 90 days.
    pub(crate) async fn closed_long_ago(&self, event: EventId) {
        let at = self.clock.now().before(Duration::from_hours(91 * 24));
        let changed: Result<u64, urr_db::Error> = self
            .db()
            .write("test.closed_at", async |tx: &mut Tx<'_>| tx.execute(&CLOSED_AT, &[&event, &at]).await)
            .await;
        assert_eq!(changed.unwrap(), 1);
    }

    /// Cuts the connection to Redis.
    pub(crate) async fn cut(&self) {
        self.proxy.as_ref().unwrap().lock().await.cut().await;
    }

    /// Restores the connection to Redis.
    pub(crate) async fn restore(&self) {
        self.proxy.as_ref().unwrap().lock().await.restore().await;
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
    (catalog, heard): (&Arc<FakeCatalog>, &Arc<Heard>),
    (clock, ids): (&Clock, &Ids),
    secret: &Secret,
) -> Arc<Service> {
    urr_queue::build(Parts {
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
