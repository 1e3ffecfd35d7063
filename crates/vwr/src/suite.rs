//! Test suite of the service: every scenario runs on every store, locally and over HTTP. Also the
//! routes.

mod away;
mod decisions;
#[cfg(feature = "aws")]
mod dynamo;
mod edge;
mod http;

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use urr_contracts::vwr::{
    self, Actions, ActionsOf, Assign, Assigned, CheckTicket, Checked, Error, GiveOrder, Order, Ordered,
    RoomOf, Vwr,
};
use urr_db::Db;
use urr_http::{Client, ClientLimits};
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, CommonError, EventId, Ids, OrderKey, Role, VisitorId};
use urr_kv::{Kv, KvConfig};
use urr_passes::{Secret, vwr_pass, vwr_ticket};
use urr_rpc::{Ctx, Remote, internal_guard};
use urr_testkit::{fresh_postgres, fresh_sqlite, services};

use crate::{Counters, DOMAIN, Parts, Service};

/// Upper bound for one test; all of them finish far sooner.
const LIMIT: Duration = Duration::from_mins(1);

#[derive(Clone, Copy)]
enum Store {
    Memory,
    Redis,
    Cluster,
    #[cfg(feature = "aws")]
    DynamoDb,
}

#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Local,
    Remote,
}

/// Fixture: Tier 1 on the chosen stores.
struct World {
    vwr: Arc<dyn Vwr>,
    service: Arc<Service>,
    clock: Clock,
    ids: Ids,
    /// Counters of another process on the same stores.
    another: Box<dyn Fn() -> Counters + Send + Sync>,
    _files: Option<tempfile::TempDir>,
}

fn secrets() -> Vec<Secret> {
    vec![Secret::new("a secret for tests, of more than 32 bytes").unwrap()]
}

impl World {
    async fn new(store: Store, transport: Transport) -> Option<Self> {
        let kv = match store {
            Store::Memory => None,
            Store::Redis => Some(KvConfig::single(services::redis()?)),
            Store::Cluster => Some(KvConfig::cluster(services::redis_cluster()?.split(','))),
            #[cfg(feature = "aws")]
            Store::DynamoDb => return Self::on_dynamo_db(transport).await,
        };
        // These tests check results, not latency on a shared machine.
        let patient = |config| KvConfig { deadline: Duration::from_secs(10), ..config };
        let world = Self::on(kv.map(patient), transport).await?;
        world.service.refresh().await.unwrap();
        Some(world)
    }

    /// A process that has not loaded any room yet.
    async fn on(kv: Option<KvConfig>, transport: Transport) -> Option<Self> {
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let (files, db) = match kv {
            None => {
                let (files, db) = fresh_sqlite(&DOMAIN).await;
                (Some(files), db)
            }
            Some(_) => (None, fresh_postgres(&DOMAIN).await?),
        };
        let kv = kv.map(|config| Kv::connect(&config, clock.clone()).unwrap());
        let (store, time) = (db.clone(), clock.clone());
        let counters = move || match &kv {
            None => Counters::memory(store.clone(), time.clone()),
            Some(kv) => Counters::redis(kv.clone(), store.clone(), time.clone()),
        };
        Some(Self::of(counters, db, transport, (clock, ids), files).await)
    }

    async fn of(
        counters: impl Fn() -> Counters + Send + Sync + 'static,
        db: Db,
        transport: Transport,
        (clock, ids): (Clock, Ids),
        files: Option<tempfile::TempDir>,
    ) -> Self {
        let service = service(counters(), db, (&clock, &ids), secrets());
        let vwr: Arc<dyn Vwr> = match transport {
            Transport::Local => Arc::clone(&service) as Arc<dyn Vwr>,
            Transport::Remote => Arc::new(remote(Arc::clone(&service), &clock, &ids).await),
        };
        Self { vwr, service, clock, ids, another: Box::new(counters), _files: files }
    }

    /// Another process on the same stores.
    fn another(&self, secrets: Vec<Secret>) -> Arc<Service> {
        service((self.another)(), self.service.db.clone().unwrap(), (&self.clock, &self.ids), secrets)
    }

    fn ctx(&self, actor: Actor) -> Ctx {
        Ctx::new(self.ids.next(), actor, self.clock.clone(), LIMIT)
    }

    fn anybody(&self) -> Ctx {
        self.ctx(Actor::Anonymous)
    }

    fn operator(&self) -> Ctx {
        self.ctx(Actor::User { id: self.ids.next(), role: Role::Admin })
    }

    async fn order(&self, event: EventId, order: Order) -> Ordered {
        self.vwr.order(&self.operator(), GiveOrder { event, order }).await.unwrap()
    }

    /// Opens a room with a rate of 0.
    async fn open(&self) -> EventId {
        let event = self.ids.next();
        self.order(event, Order::Activate { rate: Some(0), fail_open: None }).await;
        event
    }

    async fn try_assign(&self, event: EventId, visitor: VisitorId) -> Result<Assigned, Error> {
        self.vwr.assign(&self.anybody(), Assign { event, visitor, ticket: None }).await
    }

    async fn assign(&self, event: EventId) -> (VisitorId, Assigned) {
        let visitor = self.ids.next();
        (visitor, self.try_assign(event, visitor).await.unwrap())
    }

    async fn check(&self, event: EventId, visitor: VisitorId, ticket: &str) -> Result<Checked, Error> {
        let request = CheckTicket { event, ticket: ticket.to_owned(), visitor: Some(visitor), pass: None };
        self.vwr.check(&self.anybody(), request).await
    }
}

fn service(counters: Counters, db: Db, (clock, ids): (&Clock, &Ids), secrets: Vec<Secret>) -> Arc<Service> {
    crate::build(Parts {
        db: Some(db),
        counters,
        clock: clock.clone(),
        ids: ids.clone(),
        secrets,
        tasks: Tasks::new(),
        secure_cookies: false,
    })
}

#[expect(clippy::disallowed_methods, reason = "the fixture's server ends with the test's runtime")]
async fn remote(service: Arc<Service>, clock: &Clock, ids: &Ids) -> Remote {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let routes = internal_guard(vwr::internal_routes(service, clock.clone(), ids.clone()), "secret");
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Remote::new(Client::new(ClientLimits::default(), clock.clone()).target(&base).unwrap(), "secret")
}

async fn stories(world: &World) {
    every_visitor_gets_one_position_in_order(world).await;
    consecutive_batches_leave_no_gap(world).await;
    a_ticket_becomes_one_pass(world).await;
    closing_the_room_admits_waiting_visitors(world).await;
    invalid_tickets_are_refused(world).await;
    only_operators_decide(world).await;
    away::a_process_without_rooms_yet_keeps_tickets(world).await;
    decisions::visitors_are_admitted_by_background_work(world).await;
    decisions::every_process_applies_a_command_within_a_second(world).await;
}

async fn every_visitor_gets_one_position_in_order(world: &World) {
    let event = world.ids.next();
    assert_eq!(world.try_assign(event, world.ids.next()).await, Err(Error::NotActive));
    let event = world.open().await;
    let mut arrivals = JoinSet::new();
    for _ in 0..300 {
        let (vwr, ctx, visitor) = (Arc::clone(&world.vwr), world.anybody(), world.ids.next());
        arrivals.spawn(async move {
            let assigned = vwr.assign(&ctx, Assign { event, visitor, ticket: None }).await.unwrap();
            (visitor, assigned)
        });
    }
    let arrived = arrivals.join_all().await;
    let mut places: Vec<u64> = arrived.iter().map(|(_, assigned)| assigned.place.position).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=300).collect::<Vec<u64>>());

    let tickets = vwr_ticket::Tickets::new(secrets().iter().map(vwr_ticket::key));
    let opened_at = world.vwr.room(&world.anybody(), RoomOf { event }).await.unwrap().opened_at;
    for (visitor, assigned) in &arrived {
        let ticket = tickets.verify(&assigned.ticket, world.clock.now()).unwrap();
        assert_eq!(ticket.order, OrderKey::counted(opened_at, assigned.place.position));
        assert_eq!((ticket.event, ticket.visitor), (event, *visitor));
    }
    let (visitor, assigned) = &arrived[0];
    let again = world.try_assign(event, *visitor).await.unwrap();
    assert_eq!(again.place.position, assigned.place.position, "a repeated request returns the same position");
    let shown = Assign { event, visitor: *visitor, ticket: Some(assigned.ticket.clone()) };
    assert_eq!(world.vwr.assign(&world.anybody(), shown).await.unwrap().ticket, assigned.ticket);
}

/// Batches of arrivals follow each other without a gap.
async fn consecutive_batches_leave_no_gap(world: &World) {
    let event = world.open().await;
    let mut arrivals = JoinSet::new();
    for _ in 0..8 {
        let (vwr, ctx, ids) = (Arc::clone(&world.vwr), world.anybody(), world.ids.clone());
        arrivals.spawn(async move {
            let mut places = Vec::new();
            for _ in 0..100 {
                let request = Assign { event, visitor: ids.next(), ticket: None };
                places.push(vwr.assign(&ctx, request).await.unwrap().place.position);
            }
            assert!(places.is_sorted(), "positions follow the order of arrival: {places:?}");
            places
        });
    }
    let mut places: Vec<u64> = arrivals.join_all().await.concat();
    places.sort_unstable();
    assert_eq!(places, (1..=800).collect::<Vec<u64>>());
}

async fn a_ticket_becomes_one_pass(world: &World) {
    let event = world.open().await;
    let (first, assigned) = world.assign(event).await;
    let (second, behind) = world.assign(event).await;
    let Checked::Waiting { place } = world.check(event, first, &assigned.ticket).await.unwrap() else {
        panic!("no visitor was admitted yet")
    };
    assert_eq!((place.position, place.ahead, place.serving), (1, 0, 0));
    world.order(event, Order::Advance { batch: 1 }).await;
    let Checked::Admitted { token, .. } = world.check(event, first, &assigned.ticket).await.unwrap() else {
        panic!("the visitor's turn has come")
    };
    let passes = vwr_pass::Passes::new(secrets().iter().map(vwr_pass::key));
    let pass = passes.verify(&token, world.clock.now()).unwrap().pass;
    assert_eq!((pass.event, pass.visitor, pass.position), (event, first, 1));
    assert!(matches!(world.check(event, second, &behind.ticket).await, Ok(Checked::Waiting { .. })));
    let again =
        CheckTicket { event, ticket: assigned.ticket, visitor: Some(first), pass: Some(token.clone()) };
    let again = world.vwr.check(&world.anybody(), again).await.unwrap();
    assert!(matches!(again, Checked::Admitted { token: same, .. } if same == token));
    let foreign = CheckTicket { event, ticket: behind.ticket, visitor: Some(second), pass: Some(token) };
    let foreign = world.vwr.check(&world.anybody(), foreign).await.unwrap();
    assert!(matches!(foreign, Checked::Waiting { .. }), "another browser's pass is ignored");
}

async fn closing_the_room_admits_waiting_visitors(world: &World) {
    let event = world.open().await;
    let (visitor, assigned) = world.assign(event).await;
    world.order(event, Order::Deactivate).await;
    assert_eq!(world.try_assign(event, world.ids.next()).await, Err(Error::NotActive));
    let checked = world.check(event, visitor, &assigned.ticket).await.unwrap();
    assert!(matches!(checked, Checked::Admitted { .. }));
    world.order(event, Order::Activate { rate: None, fail_open: None }).await;
    let void = world.check(event, visitor, &assigned.ticket).await;
    assert_eq!(void, Err(Error::PositionNotFound), "tickets of the earlier opening are void");
    assert_eq!(
        world.try_assign(event, visitor).await.unwrap().place.position,
        1,
        "positions start from one again"
    );
}

async fn invalid_tickets_are_refused(world: &World) {
    let (event, other) = (world.open().await, world.open().await);
    let (visitor, assigned) = world.assign(event).await;
    world.order(event, Order::Advance { batch: 1 }).await;
    let ticket = assigned.ticket;
    let mut changed = ticket.clone().into_bytes();
    changed[20] = if changed[20] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    let foreign_key = vwr_ticket::Tickets::new([vwr_ticket::key(
        &Secret::new("another secret, which signs nothing here").unwrap(),
    )]);
    let tickets = vwr_ticket::Tickets::new(secrets().iter().map(vwr_ticket::key));
    let good = tickets.verify(&ticket, world.clock.now()).unwrap();
    let old = vwr_ticket::Ticket { issued: world.clock.now().before(vwr_ticket::LIFETIME), ..good };
    let (nobody, not_theirs) = (Err(Error::PositionNotFound), Err(Error::NotYourPlace));
    let stranger = world.ids.next();
    for (what, event, visitor, ticket, expected) in [
        ("forged", event, visitor, changed, &nobody),
        ("of another key", event, visitor, foreign_key.sign(&good), &nobody),
        ("expired", event, visitor, tickets.sign(&old), &nobody),
        ("of another event", other, visitor, ticket.clone(), &nobody),
        ("of no room", world.ids.next(), visitor, ticket.clone(), &nobody),
        ("a number made up by the client", event, visitor, "1".to_owned(), &nobody),
        ("another browser's", event, stranger, ticket.clone(), &not_theirs),
    ] {
        assert_eq!(world.check(event, visitor, &ticket).await, *expected, "{what}");
    }
    let unnamed = CheckTicket { event, ticket, visitor: None, pass: None };
    assert_eq!(world.vwr.check(&world.anybody(), unnamed).await, not_theirs);
}

async fn only_operators_decide(world: &World) {
    let event = world.open().await;
    let user = world.ctx(Actor::User { id: world.ids.next(), role: Role::User });
    for ctx in [world.anybody(), user] {
        for order in [Order::Deactivate, Order::Pause, Order::Advance { batch: 1 }] {
            let refused = world.vwr.order(&ctx, GiveOrder { event, order }).await;
            assert_eq!(refused.unwrap_err(), Error::Common(CommonError::AdminRequired));
        }
        let actions = ActionsOf { event, limit: 1 };
        assert_eq!(world.vwr.actions(&ctx, actions).await, Err(Error::Common(CommonError::AdminRequired)));
    }
    let operator = world.operator();
    let bad = world.vwr.order(&operator, GiveOrder { event, order: Order::Advance { batch: 0 } }).await;
    assert!(matches!(bad, Err(Error::BadBatch { .. })));
    let Actions { actions } = world.vwr.actions(&operator, ActionsOf { event, limit: 10 }).await.unwrap();
    assert_eq!(actions.len(), 1, "refused commands are not recorded: {actions:?}");
}

macro_rules! matrix {
    ($($(#[$when:meta])? $name:ident: $store:ident, $transport:ident;)*) => {$(
        $(#[$when])?
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            if let Some(world) = World::new(Store::$store, Transport::$transport).await {
                stories(&world).await;
            }
        }
    )*};
}

matrix! {
    memory_local: Memory, Local;
    memory_remote: Memory, Remote;
    redis_local: Redis, Local;
    redis_remote: Redis, Remote;
    cluster_local: Cluster, Local;
    cluster_remote: Cluster, Remote;
    #[cfg(feature = "aws")]
    dynamo_db_local: DynamoDb, Local;
    #[cfg(feature = "aws")]
    dynamo_db_remote: DynamoDb, Remote;
}
