//! Consumption of messages from tickets.

use std::time::Duration;

use urr_bus::{Bus, Limits, Message, Source};
use urr_contracts::tickets::{CancelReason, RESERVATION_EVENTS, ReservationFact};
use urr_db::{
    Db, Domain, Tx, dead_letters, offsets,
    outbox::{self, Position},
};
use urr_jobs::Tasks;
use urr_kernel::{EventId, Krw};
use urr_testkit::until;

use crate::world::World;

/// Stands in for tickets; only its outbox is used.
static TICKETS: Domain = Domain { name: "tickets", migrations: &[] };

const GROUP: &str = "catalog-service-group";
const PATIENCE: Duration = Duration::from_secs(30);

/// Outbox of tickets, always on SQLite: the bus treats both engines alike.
struct Tickets {
    db: Db,
    _dir: tempfile::TempDir,
}

impl Tickets {
    async fn new() -> Self {
        let (dir, db) = urr_testkit::fresh_sqlite(&TICKETS).await;
        Self { db, _dir: dir }
    }

    async fn publish(&self, world: &World, kind: &str, payload: String) {
        let (id, key) = (world.ids.next(), world.ids.next::<EventId>().to_string());
        let (topic, kind, at) = (RESERVATION_EVENTS.to_owned(), kind.to_owned(), world.clock.now());
        let message = Message { id, topic, key, kind, payload, at };
        let done: Result<(), urr_db::Error> =
            self.db.write("test.publish", async |tx: &mut Tx<'_>| outbox::append(tx, &message).await).await;
        done.unwrap();
    }

    async fn tell(&self, world: &World, fact: ReservationFact) {
        let message = Message::new(world.ids.next(), fact, world.clock.now());
        self.publish(world, &message.kind, message.payload).await;
    }

    /// Position of the newest message.
    async fn end(&self) -> Position {
        let read: Result<_, urr_db::Error> = self
            .db
            .read("test.end", async |tx: &mut Tx<'_>| outbox::read_after(tx, Position::START, 1_000).await)
            .await;
        read.unwrap().last().unwrap().0
    }

    /// Runs the bus until the group's offset has passed the newest message.
    async fn deliver(&self, world: &World) {
        let end = self.end().await;
        let tasks = Tasks::new();
        let limits = Limits { retries: [Duration::from_millis(1); 3], ..Limits::default() };
        let sources = vec![Source { domain: "tickets", db: self.db.clone() }];
        let consumers = urr_catalog::consumers(&world.service);
        Bus::in_process(limits).start(&sources, &consumers, &tasks, &world.clock).unwrap();
        until(PATIENCE, async || offset(world).await.is_some_and(|at| at >= end)).await;
        tasks.shutdown(PATIENCE).await.unwrap();
    }
}

async fn offset(world: &World) -> Option<Position> {
    let read: Result<_, urr_db::Error> =
        world.db.read("test.offset", async |tx: &mut Tx<'_>| offsets::load(tx, GROUP, "tickets").await).await;
    read.unwrap()
}

fn created(world: &World, event_id: EventId, seat_count: u32) -> ReservationFact {
    ReservationFact::Created {
        reservation_id: world.ids.next(),
        user_id: world.ids.next(),
        event_id,
        total_amount: Krw::ZERO,
        seat_count,
        expires_at: world.clock.now(),
    }
}

fn cancelled(world: &World, event_id: EventId, seat_count: u32) -> ReservationFact {
    ReservationFact::Cancelled {
        reservation_id: world.ids.next(),
        user_id: world.ids.next(),
        event_id,
        seat_count,
        reason: CancelReason::Expired,
    }
}

async fn reserved(world: &World, event: EventId) -> u32 {
    world.event(event).await.event.places_reserved
}

pub(crate) async fn redelivered_messages_are_counted_once(world: &World) {
    let one = world.create(world.standing("하나")).await.event.id;
    let two = world.create(world.standing("둘")).await.event.id;
    let tickets = Tickets::new().await;
    for fact in [
        created(world, one, 4),
        created(world, one, 2),
        created(world, two, 3),
        cancelled(world, one, 2),
        // More than were reserved, as after a lost count: the result must not go below zero.
        cancelled(world, two, 4),
        created(world, world.ids.next(), 1),
    ] {
        tickets.tell(world, fact).await;
    }
    tickets.deliver(world).await;
    assert_eq!((reserved(world, one).await, reserved(world, two).await), (4, 0));

    // Reset the group's offset: every message is delivered again.
    let forgotten: Result<(), urr_db::Error> = world
        .db
        .write("test.forget", async |tx: &mut Tx<'_>| {
            offsets::store(tx, GROUP, "tickets", Position::START).await
        })
        .await;
    forgotten.unwrap();
    tickets.tell(world, created(world, one, 1)).await;
    tickets.deliver(world).await;
    assert_eq!(
        (reserved(world, one).await, reserved(world, two).await),
        (5, 0),
        "only the new message is counted"
    );
    let listed = world.titles(None, None).await;
    assert_eq!(listed.len(), 2, "the list still has both events");
}

pub(crate) async fn an_invalid_message_becomes_a_dead_letter_and_the_next_one_is_applied(world: &World) {
    let event = world.create(world.standing("하나")).await.event.id;
    let tickets = Tickets::new().await;
    tickets.publish(world, "RESERVATION_CREATED", r#"{"seatCount":"four"}"#.to_owned()).await;
    tickets.publish(world, "RESERVATION_FRAMED", r#"{"a":"type from the future"}"#.to_owned()).await;
    tickets.tell(world, created(world, event, 2)).await;
    tickets.deliver(world).await;
    assert_eq!(reserved(world, event).await, 2);

    let letters: Result<_, urr_db::Error> = world
        .db
        .read("test.letters", async |tx: &mut Tx<'_>| dead_letters::list(tx, GROUP, None, 10).await)
        .await;
    let letters = letters.unwrap();
    assert_eq!(letters.len(), 1, "an unknown type is ignored, not a dead letter: {letters:?}");
    assert_eq!((letters[0].message.kind.as_str(), letters[0].attempts), ("RESERVATION_CREATED", 1));
    let consumers = urr_catalog::consumers(&world.service);
    assert_eq!(consumers.iter().map(|consumer| consumer.group()).collect::<Vec<_>>(), [GROUP]);
}
