//! Test fixture: tickets on the chosen stores and transport, with a fake catalog and a fixed clock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_contracts::{
    catalog::{Catalog, Seat},
    tickets::{
        self, HoldSeats, Reservation, ReservationFact, ReservationOf, ReservedSeat, SeatMap, SeatMapOf,
        Tickets,
    },
};
use urr_db::{Db, EngineKind, Tx, outbox::Message, statements};
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, EventId, Ids, Krw, ReservationId, Role, SeatId, Timestamp, UserId};
use urr_kv::{Kv, KvConfig};
use urr_rpc::Ctx;
use urr_testkit::{
    DbKind, FakeCatalog, STORY_LIMIT, Transport, fixed, free_port, published, redis, redis_cluster,
    serve_internal, within,
};
use urr_tickets::{
    DOMAIN, Parts, Service, Settings,
    gate::{GATE_TTL, Owner, SeatGate},
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateKind {
    Memory,
    Redis,
    Cluster,
    /// Redis is configured but unreachable.
    RedisDown,
    /// Lets every claim through, so that the database decides alone.
    AlwaysOpen,
}

/// The stores and the transport of a story.
pub(crate) type Kinds = (DbKind, GateKind, Transport);

pub(crate) struct World {
    pub(crate) tickets: Arc<dyn Tickets>,
    pub(crate) catalog: Arc<FakeCatalog>,
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) service: Arc<Service>,
    /// Other services on the same database, as in other processes.
    pub(crate) elsewhere: Vec<Arc<Service>>,
    held: Mutex<Vec<Reservation>>,
    /// Another handle of the gate in Redis.
    redis: Option<SeatGate>,
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
    PENDING = "select id, user_id from reservations where status = 'pending'";
    /// Owner of the marks of a reservation.
    GATE_OWNER = "select gate_owner from reservations where id = $1";
    /// Name of the database.
    DATABASE = postgres "select current_database()::text";
}

impl World {
    /// Runs a story, and checks that it left no wrong count and caused no deadlock. Skips it, with a
    /// warning from testkit, if a store it needs is not available.
    pub(crate) async fn run(kinds: Kinds, story: impl AsyncFnOnce(&World)) {
        if let Some(world) = Self::new(kinds).await {
            within(STORY_LIMIT, async {
                story(&world).await;
                world.check_invariants().await;
                assert_eq!(world.deadlocks().await, 0, "transactions deadlocked");
            })
            .await;
        }
    }

    /// Runs a story that damages rows or causes a deadlock, and so does not check them afterwards.
    pub(crate) async fn run_damaged(kinds: Kinds, story: impl AsyncFnOnce(&World)) {
        if let Some(world) = Self::new(kinds).await {
            within(STORY_LIMIT, story(&world)).await;
        }
    }

    async fn new((db, gate, transport): Kinds) -> Option<Self> {
        let (clock, ids) = fixed();
        let (dir, db) = db.open(&DOMAIN).await?;
        let catalog = Arc::new(FakeCatalog::default());
        let process = || {
            let parts = Parts {
                db: db.clone(),
                gate: gate_of(gate, &clock)?,
                catalog: Arc::clone(&catalog) as Arc<dyn Catalog>,
                clock: clock.clone(),
                ids: ids.clone(),
                settings: Settings::default(),
                tasks: Tasks::new(),
            };
            Some(urr_tickets::build(parts))
        };
        let (service, elsewhere) = (process()?, vec![process()?, process()?, process()?]);
        let local = Arc::clone(&service) as Arc<dyn Tickets>;
        let tickets: Arc<dyn Tickets> = match transport {
            Transport::Local => local,
            Transport::Remote => {
                let routes = tickets::internal_routes(local, clock.clone(), ids.clone());
                Arc::new(serve_internal(routes, &clock).await)
            }
        };
        let redis = match gate {
            GateKind::Redis | GateKind::Cluster => gate_of(gate, &clock),
            GateKind::Memory | GateKind::RedisDown | GateKind::AlwaysOpen => None,
        };
        let held = Mutex::default();
        Some(Self { tickets, catalog, db, clock, ids, service, elsewhere, held, redis, _dir: dir })
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
        let ids = seats.iter().map(|seat| seat.id).collect();
        self.catalog.put(event, (sale_start_at, sale_end_at), seats);
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
        let Some(gate) = &self.redis else { return };
        for reservation in held {
            let owner: Result<_, urr_db::Error> = self
                .db
                .read("test.gate_owner", async |tx: &mut Tx<'_>| {
                    tx.one(&GATE_OWNER, &[&reservation.id], |row| row.get(0)).await
                })
                .await;
            let seats: Vec<SeatId> = reservation.seats.iter().map(|seat| seat.id).collect();
            gate.release(reservation.event, &seats, Owner::from_uuid(owner.unwrap())).await;
        }
    }

    /// Makes the expiry of a reservation fail.
    pub(crate) async fn spoil(&self, held: &Reservation) {
        let spoilt: Result<u64, urr_db::Error> = self
            .db
            .write("test.spoil", async |tx: &mut Tx<'_>| tx.execute(&SPOIL, &[&held.event, &held.user]).await)
            .await;
        assert_eq!(spoilt.unwrap(), 1);
    }

    /// Runs the sweep of this process once. Returns how many holds it expired.
    pub(crate) async fn sweep_once(&self) -> u64 {
        let [sweep] = &urr_tickets::reconcilers(&self.service)[..] else { panic!("tickets has one job") };
        sweep.run().await.unwrap().done
    }

    pub(crate) async fn sweep(&self) {
        while self.sweep_once().await > 0 {}
    }

    /// Number of deadlocks PostgreSQL has resolved in this database; `transaction!` retries hide
    /// them. Call this last: it closes every connection.
    pub(crate) async fn deadlocks(&self) -> i64 {
        if self.db.engine() == EngineKind::Sqlite {
            return 0;
        }
        let name = self.db.read("test.database", async |tx: &mut Tx<'_>| {
            tx.one(&DATABASE, &[], |row| row.get::<String>(0)).await
        });
        let name: Result<_, urr_db::Error> = name.await;
        urr_testkit::deadlocks(&name.unwrap()).await
    }

    /// All published facts about an event, oldest first.
    pub(crate) async fn facts_of(&self, event: EventId) -> Vec<(Message, ReservationFact)> {
        let mut facts = published::<ReservationFact>(&self.db).await;
        facts.retain(|(_, fact)| event_of(fact) == event);
        facts
    }

    /// Checks the invariants: every held seat belongs to a pending reservation, every unexpired
    /// pending reservation has its seats, and each buyer's count equals the number of their pending
    /// seats.
    pub(crate) async fn check_invariants(&self) {
        let read: Result<_, urr_db::Error> = self
            .db
            .read("test.invariants", async |tx: &mut Tx<'_>| {
                let buyers = tx
                    .all(&BUYERS, &[], |row| {
                        Ok(((row.get::<EventId>(0)?, row.get::<UserId>(1)?), row.get::<i64>(2)?))
                    })
                    .await?;
                let held: Vec<(SeatId, ReservationId, i64)> =
                    tx.all(&HELD, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
                let pending: Vec<(ReservationId, UserId)> =
                    tx.all(&PENDING, &[], |row| Ok((row.get(0)?, row.get(1)?))).await?;
                Ok((buyers, held, pending))
            })
            .await;
        let (buyers, held, ids) = read.unwrap();
        let mut pending: Vec<Reservation> = Vec::new();
        for (reservation, user) in ids {
            let stored = self.service.reservation(&self.as_user(user), ReservationOf { reservation }).await;
            pending.push(stored.unwrap());
        }
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
        ReservationFact::Created { event_id, .. }
        | ReservationFact::Confirmed { event_id, .. }
        | ReservationFact::Cancelled { event_id, .. } => *event_id,
    }
}

fn gate_of(kind: GateKind, clock: &Clock) -> Option<SeatGate> {
    let connect = |config: KvConfig| SeatGate::redis(Kv::connect(&config, clock.clone()).unwrap(), GATE_TTL);
    Some(match kind {
        GateKind::Memory => SeatGate::memory(clock.clone(), GATE_TTL),
        GateKind::AlwaysOpen => SeatGate::memory(clock.clone(), Duration::ZERO),
        GateKind::Redis => connect(redis()?),
        GateKind::Cluster => connect(redis_cluster()?),
        GateKind::RedisDown => connect(KvConfig::single(format!("redis://127.0.0.1:{}", free_port()))),
    })
}
