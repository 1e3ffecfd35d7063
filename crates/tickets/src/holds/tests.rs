//! Tests below the public interface: claims, batches and expiry are called directly, so that a test
//! decides what is in a batch and what happens between two steps.

mod batches;
mod claims;
mod expiry;
mod locks;
mod race;

use std::{sync::Arc, time::Duration};

use urr_contracts::{
    catalog::{Catalog, Seat},
    tickets::{HoldSeats, Reservation, Tickets as _},
};
use urr_db::{Tx, outbox, statements};
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, EventId, Ids, Krw, Role, SeatId, Timestamp};
use urr_rpc::Ctx;
use urr_testkit::{DbKind, FakeCatalog, STORY_LIMIT, fixed, statements_test, stories, until, within};

use super::claims::Claim;
use crate::{Parts, Service, Settings, gate::SeatGate};

stories! {
    World::run;
    sqlite: DbKind::Sqlite,
    postgres: DbKind::Postgres;

    batches:
        rejected_claims_leave_nothing_and_others_in_the_batch_succeed,
        batched_key_lookups_each_get_their_own_answer,
        an_unreadable_row_does_not_fail_other_lookups,
        a_seat_that_is_being_paid_for_is_taken,
        of_conflicting_claims_the_first_wins,
        a_failing_claim_does_not_fail_its_batch;
    claims:
        a_claim_that_starts_after_the_sale_is_rejected,
        a_colliding_reservation_number_is_replaced;
    expiry:
        holds_expired_in_a_batch_end_as_if_expired_alone;
}

// SQLite has no row locks, and hides races.
stories! {
    World::run;
    postgres_only: DbKind::Postgres;

    locks:
        a_locked_row_does_not_fail_other_claims_of_the_batch,
        a_second_claim_of_a_buyer_waits_without_locks;
    race:
        exactly_one_transaction_wins_each_seat,
        the_race_test_detects_check_then_act_claims,
        the_seat_limit_holds_across_transactions,
        the_race_test_detects_a_check_then_act_seat_limit;
}

statements! {
    /// Number of buyers whose count is not that of their held seats.
    WRONG_COUNTS = "
        select count(*) from buyers where live_seats <>
            (select count(*) from seats join reservations on reservations.id = seats.reservation_id
              where seats.event_id = buyers.event_id and reservations.user_id = buyers.user_id
                and seats.state = 'held' and reservations.status = 'pending')";
    /// Number of held seats without a pending reservation.
    WITHOUT_OWNER = "
        select count(*) from seats left join reservations on reservations.id = seats.reservation_id
         where seats.state = 'held' and coalesce(reservations.status, '') <> 'pending'";
}

statements_test!(
    crate::DOMAIN,
    [STATEMENTS, batches::STATEMENTS, locks::STATEMENTS, race::STATEMENTS].concat()
);

/// A service on an empty database. Its gate lets every claim through.
struct World {
    service: Arc<Service>,
    catalog: Arc<FakeCatalog>,
    clock: Clock,
    ids: Ids,
    _dir: Option<tempfile::TempDir>,
}

impl World {
    async fn run(db: DbKind, story: impl AsyncFnOnce(&Self)) {
        let Some((dir, db)) = db.open(&crate::DOMAIN).await else { return };
        let (clock, ids) = fixed();
        let catalog = Arc::new(FakeCatalog::default());
        let service = crate::build(Parts {
            db,
            gate: SeatGate::memory(clock.clone(), Duration::ZERO),
            catalog: Arc::clone(&catalog) as Arc<dyn Catalog>,
            clock: clock.clone(),
            ids: ids.clone(),
            settings: Settings::default(),
            tasks: Tasks::new(),
        });
        within(STORY_LIMIT, story(&Self { service, catalog, clock, ids, _dir: dir })).await;
    }

    /// A new buyer. The budget is a day, because tests advance the clock.
    fn buyer(&self) -> Ctx {
        let actor = Actor::User { id: self.ids.next(), role: Role::User };
        Ctx::new(self.ids.next(), actor, self.clock.clone(), Duration::from_hours(24))
    }

    /// An event on sale with that many seats of 100,000 won each.
    fn event(&self, seats: u32) -> (EventId, Vec<SeatId>) {
        let (day, now) = (Duration::from_hours(24), self.clock.now());
        self.event_on_sale(seats, (now.before(day), now.after(30 * day)))
    }

    fn event_on_sale(&self, seats: u32, sale: (Timestamp, Timestamp)) -> (EventId, Vec<SeatId>) {
        let event = self.ids.next();
        let seat = |number| Seat {
            id: self.ids.next(),
            section: "R".into(),
            grade: "R".into(),
            row: 1,
            number,
            label: format!("R-1-{number}"),
            price: Krw::new(100_000).unwrap(),
        };
        let seats: Vec<Seat> = (1..=seats).map(seat).collect();
        let ids = seats.iter().map(|seat| seat.id).collect();
        self.catalog.put(event, sale, seats);
        (event, ids)
    }

    /// Holds seats through the public interface.
    async fn hold(&self, buyer: &Ctx, request: HoldSeats) -> Reservation {
        self.service.hold(buyer, request).await.unwrap()
    }

    /// A claim that has not been run.
    async fn claim(&self, buyer: &Ctx, request: &HoldSeats) -> Claim {
        super::plan(&self.service, buyer, buyer.actor.user().unwrap(), request).await.unwrap()
    }

    /// Waits for this number of messages in the outbox, and checks that there are no more.
    async fn published(&self, expected: usize) {
        // PostgreSQL exposes messages only when no older transaction is open on the server, and
        // those of one transaction at the same time.
        let mut found = 0;
        until(Duration::from_secs(30), async || {
            let read: Result<_, urr_db::Error> = self
                .service
                .db
                .read("test.messages", async |tx: &mut Tx<'_>| {
                    outbox::read_after(tx, outbox::Position::START, 1_000).await
                })
                .await;
            found = read.unwrap().len();
            found >= expected
        })
        .await;
        assert_eq!(found, expected);
    }

    /// Checks that every held seat is counted and belongs to a pending reservation.
    async fn check_invariants(&self) {
        let read: Result<[i64; 2], urr_db::Error> = self
            .service
            .db
            .read("test.invariants", async |tx: &mut Tx<'_>| {
                let wrong = tx.one(&WRONG_COUNTS, &[], |row| row.get(0)).await?;
                Ok([wrong, tx.one(&WITHOUT_OWNER, &[], |row| row.get(0)).await?])
            })
            .await;
        assert_eq!(read.unwrap(), [0, 0], "wrong counts of buyers, held seats without an owner");
    }
}

fn hold_request(event: EventId, seats: &[SeatId]) -> HoldSeats {
    HoldSeats { event, seats: seats.to_vec(), idempotency_key: None }
}

fn keyed(event: EventId, seats: &[SeatId], key: &str) -> HoldSeats {
    HoldSeats { idempotency_key: Some(key.to_owned()), ..hold_request(event, seats) }
}

fn ids(reservation: &Reservation) -> Vec<SeatId> {
    reservation.seats.iter().map(|seat| seat.id).collect()
}

fn sorted(seats: &[SeatId]) -> Vec<SeatId> {
    let mut seats = seats.to_vec();
    seats.sort_unstable();
    seats
}
