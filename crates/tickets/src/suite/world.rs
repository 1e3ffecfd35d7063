//! Test fixture: tickets on the chosen stores and transport, with a fake catalog and a fixed clock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_contracts::{
    catalog::{Catalog, EventCard, Sale, Seat},
    messages::Envelope,
    tickets::{self, HoldSeats, Reservation, ReservationFact, ReservedSeat, SeatMap, SeatMapOf, Tickets},
};
use urr_db::{EngineKind, Tx, outbox, statements};
use urr_http::{Client, ClientLimits};
use urr_jobs::Tasks;
use urr_kernel::{
    Actor, Clock, EventId, Ids, Krw, Role, SeatId, Timestamp, UserId,
    limits::{HOLD, MAX_SEATS_PER_RESERVATION, MAX_SEATS_PER_USER},
};
use urr_kv::{Kv, KvConfig};
use urr_rpc::{Ctx, Remote, internal_guard};
use urr_testkit::services;

use super::catalog::HandMade;
use crate::{
    Parts, Service,
    gate::SeatGate,
    holds::{claims::Way, store},
};

#[derive(Clone, Copy)]
pub(crate) enum DbKind {
    Sqlite,
    Postgres,
}

#[derive(Clone, Copy)]
pub(crate) enum GateKind {
    Memory,
    Redis,
    Cluster,
    /// Redis is configured but unreachable.
    RedisDown,
    /// Lets every claim through, so that the database decides alone.
    AlwaysOpen,
}

#[derive(Clone, Copy)]
pub(crate) enum Transport {
    Local,
    Remote,
}

pub(crate) struct World {
    pub(crate) tickets: Arc<dyn Tickets>,
    pub(crate) catalog: Arc<HandMade>,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) service: Arc<Service>,
    /// Other services on the same database, as in other processes.
    pub(crate) elsewhere: Vec<Arc<Service>>,
    held: Mutex<Vec<Reservation>>,
    _dir: Option<tempfile::TempDir>,
}

pub(crate) fn hold_request(event: EventId, seats: &[SeatId]) -> HoldSeats {
    HoldSeats { event, seats: seats.to_vec(), idempotency_key: None }
}

statements! {
    /// Seat counts of all buyers.
    BUYERS = "select event_id, user_id, live_seats from buyers";
    /// Held seats.
    HELD = "select seat_id, reservation_id, fence from seats where state = 'held'";
    /// Sets a buyer's count to a wrong value, which only a bug could do.
    SPOIL = "update buyers set live_seats = 0 where event_id = $1 and user_id = $2";
    /// Every pending reservation.
    PENDING = "select id from reservations where status = 'pending'";
    /// Name of the database.
    DATABASE = postgres "select current_database()::text";
}

impl World {
    /// Returns `None`, with a warning from testkit, if a store is not available.
    pub(crate) async fn new(db: DbKind, gate: GateKind, transport: Transport) -> Option<Self> {
        Self::build(db, gate, transport, Way::Conditional).await
    }

    /// A world whose claims are check-then-act: the negative control.
    pub(crate) async fn careless(db: DbKind, gate: GateKind) -> Option<Self> {
        Self::build(db, gate, Transport::Local, Way::CheckThenAct).await
    }

    async fn build(db: DbKind, gate: GateKind, transport: Transport, way: Way) -> Option<Self> {
        let (clock, ids) = urr_testkit::fixed();
        let (dir, db) = match db {
            DbKind::Sqlite => {
                let (dir, db) = urr_testkit::fresh_sqlite(&crate::DOMAIN).await;
                (Some(dir), db)
            }
            DbKind::Postgres => (None, urr_testkit::fresh_postgres(&crate::DOMAIN).await?),
        };
        let catalog = Arc::new(HandMade::default());
        let process = || {
            let parts = Parts {
                db: db.clone(),
                gate: gate_of(gate, &clock)?,
                catalog: Arc::clone(&catalog) as Arc<dyn Catalog>,
                clock: clock.clone(),
                ids: ids.clone(),
                settings: crate::Settings { hold: HOLD },
                tasks: Tasks::new(),
            };
            Some(Arc::new(Service::new(parts, way)))
        };
        let (service, elsewhere) = (process()?, vec![process()?, process()?, process()?]);
        let tickets: Arc<dyn Tickets> = match transport {
            Transport::Local => Arc::clone(&service) as Arc<dyn Tickets>,
            Transport::Remote => Arc::new(remote(Arc::clone(&service), &clock, &ids).await),
        };
        Some(Self { tickets, catalog, clock, ids, service, elsewhere, held: Mutex::default(), _dir: dir })
    }

    /// One of the services on the database, chosen by `number`.
    pub(crate) fn anywhere(&self, number: usize) -> Arc<dyn Tickets> {
        match self.elsewhere.get(number % (self.elsewhere.len() + 1)) {
            Some(other) => Arc::clone(other) as Arc<dyn Tickets>,
            None => Arc::clone(&self.tickets),
        }
    }

    /// A new buyer.
    pub(crate) fn buyer(&self) -> Ctx {
        self.as_user(self.ids.next())
    }

    /// The buyer with this id.
    pub(crate) fn as_user(&self, id: UserId) -> Ctx {
        self.ctx(Actor::User { id, role: Role::User })
    }

    pub(crate) fn anonymous(&self) -> Ctx {
        self.ctx(Actor::Anonymous)
    }

    /// The budget is a day, because tests advance the clock between two calls of the same buyer.
    fn ctx(&self, actor: Actor) -> Ctx {
        Ctx::new(self.ids.next(), actor, self.clock.clone(), Duration::from_hours(24))
    }

    /// An event on sale with that many seats of 100,000 won each.
    pub(crate) fn event(&self, seats: usize) -> (EventId, Vec<SeatId>) {
        let (day, now) = (Duration::from_hours(24), self.clock.now());
        self.event_on_sale(seats, now.before(day), now.after(30 * day))
    }

    pub(crate) fn event_on_sale(
        &self,
        seats: usize,
        sale_start_at: Timestamp,
        sale_end_at: Timestamp,
    ) -> (EventId, Vec<SeatId>) {
        let event = self.ids.next();
        let seats: Vec<Seat> = (1..=u32::try_from(seats).unwrap())
            .map(|number| Seat {
                id: self.ids.next(),
                section: "R".into(),
                grade: "R".into(),
                row: 1,
                number,
                label: format!("R-1-{number}"),
                price: Krw::new(100_000).unwrap(),
            })
            .collect();
        let sale = Sale {
            event,
            card: EventCard {
                title: "A night in the crowd".into(),
                venue: "The big hall".into(),
                address: Some("1 Crowd Street, Seoul".into()),
                event_at: sale_end_at.after(Duration::from_hours(1)),
            },
            cancelled: false,
            sale_start_at,
            sale_end_at,
            max_seats_per_reservation: MAX_SEATS_PER_RESERVATION,
            max_seats_per_user: MAX_SEATS_PER_USER,
            seats: u32::try_from(seats.len()).unwrap(),
        };
        let ids = seats.iter().map(|seat| seat.id).collect();
        self.catalog.events.lock().unwrap().insert(event, (sale, seats));
        (event, ids)
    }

    pub(crate) fn standing_event(&self) -> EventId {
        self.event(0).0
    }

    pub(crate) async fn hold(
        &self,
        buyer: &Ctx,
        event: EventId,
        seats: &[SeatId],
    ) -> Result<Reservation, tickets::Error> {
        let held = self.tickets.hold(buyer, hold_request(event, seats)).await?;
        self.held.lock().unwrap().push(held.clone());
        Ok(held)
    }

    pub(crate) async fn map(&self, event: EventId) -> SeatMap {
        self.clock.advance(Duration::from_secs(1));
        self.tickets.seat_map(&self.anonymous(), SeatMapOf { event }).await.unwrap()
    }

    /// Advances the clock. Marks in Redis expire in real time, so this removes them itself.
    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        let held: Vec<Reservation> = self.held.lock().unwrap().drain(..).collect();
        for reservation in held {
            let stored: Result<_, urr_db::Error> = self
                .service
                .db
                .read("test.stored", async |tx: &mut Tx<'_>| store::get(tx, reservation.id).await)
                .await;
            self.service.forget_marks(&stored.unwrap().unwrap()).await;
        }
    }

    /// Makes the expiry of a reservation fail.
    pub(crate) async fn spoil(&self, held: &Reservation) {
        let spoilt: Result<u64, urr_db::Error> = self
            .service
            .db
            .write("test.spoil", async |tx: &mut Tx<'_>| tx.execute(&SPOIL, &[&held.event, &held.user]).await)
            .await;
        assert_eq!(spoilt.unwrap(), 1);
    }

    pub(crate) async fn sweep(&self) {
        while self.service.expire_lapsed().await.unwrap() > 0 {}
    }

    /// Number of deadlocks PostgreSQL has resolved in this database; `transaction!` retries hide
    /// them. Call this last: it closes every connection.
    pub(crate) async fn deadlocks(&self) -> i64 {
        if self.service.db.engine() == EngineKind::Sqlite {
            return 0;
        }
        let name = self.service.db.read("test.database", async |tx: &mut Tx<'_>| {
            tx.one(&DATABASE, &[], |row| row.get::<String>(0)).await
        });
        let name: Result<_, urr_db::Error> = name.await;
        urr_testkit::deadlocks(&name.unwrap()).await
    }

    /// All published facts about an event, oldest first.
    pub(crate) async fn facts_of(&self, event: EventId) -> Vec<Envelope<ReservationFact>> {
        let read: Result<_, urr_db::Error> = self
            .service
            .db
            .read("test.messages", async |tx: &mut Tx<'_>| {
                outbox::read_after(tx, outbox::Position::START, 100_000).await
            })
            .await;
        let facts =
            read.unwrap().into_iter().map(|(_, message)| serde_json::from_str(&message.payload).unwrap());
        facts.filter(|told: &Envelope<ReservationFact>| event_of(&told.fact) == event).collect()
    }

    /// Checks the invariants: every held seat belongs to a pending reservation, every unexpired
    /// pending reservation has its seats, and each buyer's count equals the number of their pending
    /// seats.
    pub(crate) async fn check_invariants(&self) {
        let read: Result<_, urr_db::Error> = self
            .service
            .db
            .read("test.invariants", async |tx: &mut Tx<'_>| {
                let buyers = tx
                    .all(&BUYERS, &[], |row| {
                        Ok(((row.get::<EventId>(0)?, row.get::<UserId>(1)?), row.get::<i64>(2)?))
                    })
                    .await?;
                let held: Vec<(SeatId, urr_kernel::ReservationId, i64)> =
                    tx.all(&HELD, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
                let pending: Vec<urr_kernel::ReservationId> = tx.all(&PENDING, &[], |row| row.get(0)).await?;
                let mut reservations = Vec::new();
                for id in pending {
                    reservations.push(
                        store::get(tx, id)
                            .await?
                            .expect("the reservation was listed in this transaction")
                            .reservation,
                    );
                }
                Ok((buyers, held, reservations))
            })
            .await;
        let (buyers, held, pending) = read.unwrap();
        let mut counted: HashMap<_, i64> = HashMap::new();
        for reservation in &pending {
            let seats = i64::try_from(reservation.seats.len()).unwrap();
            *counted.entry((reservation.event, reservation.user)).or_default() += seats;
        }
        for (buyer, live) in buyers {
            assert_eq!(live, counted.get(&buyer).copied().unwrap_or(0), "the count of {buyer:?} is wrong");
        }
        for reservation in pending.iter().filter(|pending| pending.expires_at > self.clock.now()) {
            let its_own = |seat: &ReservedSeat| held.contains(&(seat.id, reservation.id, seat.fence));
            assert!(reservation.seats.iter().all(its_own), "{} has lost a seat", reservation.id);
        }
        for (seat, reservation, fence) in held {
            let owner = pending.iter().find(|pending| pending.id == reservation);
            let owner =
                owner.unwrap_or_else(|| panic!("{seat} is held for {reservation}, which is not pending"));
            assert!(owner.seats.iter().any(|own| own.id == seat && own.fence == fence));
        }
    }
}

fn event_of(fact: &ReservationFact) -> EventId {
    match fact {
        ReservationFact::ReservationCreated { event_id, .. }
        | ReservationFact::ReservationCancelled { event_id, .. } => *event_id,
    }
}

fn gate_of(kind: GateKind, clock: &Clock) -> Option<SeatGate> {
    let ttl = crate::gate::GATE_TTL;
    Some(match kind {
        GateKind::Memory => SeatGate::memory(clock.clone(), ttl),
        GateKind::AlwaysOpen => SeatGate::memory(clock.clone(), Duration::ZERO),
        GateKind::Redis => SeatGate::redis(connect(&KvConfig::single(services::redis()?), clock), ttl),
        GateKind::Cluster => {
            let nodes = services::redis_cluster()?;
            SeatGate::redis(connect(&KvConfig::cluster(nodes.split(',')), clock), ttl)
        }
        GateKind::RedisDown => {
            let nobody = format!("redis://127.0.0.1:{}", urr_testkit::free_port());
            SeatGate::redis(connect(&KvConfig::single(nobody), clock), ttl)
        }
    })
}

fn connect(config: &KvConfig, clock: &Clock) -> Kv {
    Kv::connect(config, clock.clone()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the server runs until the runtime of the test is dropped")]
async fn remote(service: Arc<Service>, clock: &Clock, ids: &Ids) -> Remote {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let routes = internal_guard(tickets::internal_routes(service, clock.clone(), ids.clone()), "secret");
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Remote::new(Client::new(ClientLimits::default(), clock.clone()).target(&base).unwrap(), "secret")
}
