//! Slots survive a loss of the store, however many there are.

use urr_db::{EngineKind, Tx};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use super::fixture::Fixture;
use crate::{
    journal::{Entry, Step, Why, store},
    room::Order,
    room_model::UserState,
};

/// More than ten pages.
const MANY: i64 = 10_100;

fn slot_of(entry: &Entry) -> Option<(UserId, Uuid)> {
    match entry.step {
        Step::Admitted { user, slot, .. } => Some((user, slot)),
        _ => None,
    }
}

/// A process crashes after it began the next generation and before it restored any slot. The line
/// was cleared once, which every generation repeats in its journal.
pub(super) async fn slots_survive_a_generation_lost_while_it_began(mut fixture: Fixture) {
    let [before, inside] = fixture.people(2)[..] else { unreachable!("two users") };
    fixture.check(before).await;
    fixture.room.order(fixture.event, Order::Clear).await.unwrap();
    fixture.check(inside).await;
    let slot = fixture.slot(inside).await;
    fixture.room.settle(fixture.event).await.unwrap();
    if fixture.kv.is_none() {
        // Nothing is restored in memory: the journal is the room.
        return;
    }
    fixture.lose_everything().await;
    let (event, threshold, now) = (fixture.event, fixture.limits.threshold, fixture.clock.now());
    let begun: Result<_, urr_db::Error> = fixture
        .db
        .write("test.begin", async |tx: &mut Tx<'_>| store::begin(tx, event, threshold, now).await)
        .await;
    assert!(begun.unwrap().lost);
    assert_eq!(fixture.slot(inside).await.id, slot.id, "the slot continues");
    assert_eq!(fixture.state(before).await, UserState::Absent, "a cleared slot stays ended");
    fixture.assert_fair().await;
}

/// After a loss slots are restored page by page until none are left.
pub(super) async fn more_slots_than_a_page_survive_a_loss_of_the_store(mut fixture: Fixture) {
    urr_db::statements! {
        ADMIT = postgres "
            insert into journal (event_id, generation, seq, at, kind, user_id, order_key, slot_id, source)
            select $1, 1, number, $2, 'admitted', gen_random_uuid(), number, gen_random_uuid(), 'pass'
              from generate_series(2, $3::bigint) number";
    }
    if fixture.db.engine() == EngineKind::Sqlite {
        // Nothing is restored in memory: the journal is the room.
        return;
    }
    let first = fixture.people(1)[0];
    fixture.check(first).await;
    let slot = fixture.slot(first).await;
    fixture.room.settle(fixture.event).await.unwrap();
    let (event, now): (_, Timestamp) = (fixture.event, fixture.clock.now());
    let given: Result<u64, urr_db::Error> = fixture
        .db
        .write("test.admit", async |tx: &mut Tx<'_>| tx.execute(&ADMIT, &[&event, &now, &MANY]).await)
        .await;
    given.unwrap();
    let inside = async |fixture: &Fixture| fixture.room.order(event, Order::Look).await.unwrap().active;
    let mut people: Vec<_> = fixture.entries().await.iter().filter_map(slot_of).collect();
    assert_eq!(people.first(), Some(&(first, slot.id)));
    for life in 1..=2 {
        fixture.lose_everything().await;
        assert_eq!(inside(&fixture).await, people.len(), "after loss {life}");
        let (user, slot) = people.pop().unwrap();
        assert_eq!(fixture.slot(user).await.id, slot, "the last slot is restored too");
        fixture.room.leave(event, user, Why::Left).await.unwrap();
        fixture.room.settle(event).await.unwrap();
    }
    assert_eq!(fixture.slot(first).await.id, slot.id);
    let report = fixture.assert_fair().await;
    assert_eq!(report.admitted, u64::try_from(MANY).unwrap(), "a restored slot is counted once");
}
