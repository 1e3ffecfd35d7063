//! Redis comes back with old data: a promoted replica that lagged, a restored dump, a hung server.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use urr_kv::{Arg, Script};

use super::fixture::Fixture;
use crate::{
    journal::Why,
    room::{Closed, Order},
    room_model::UserState,
};

/// A lagging replica is promoted; the steps it lacks have happened all the same.
pub(super) async fn an_outdated_store_is_discarded_when_steps_conflict(fixture: Fixture) {
    static GO_BACK: Script = Script::new(
        "test.go_back",
        "redis.call('HINCRBY', KEYS[1], 'seq', -2) redis.call('DEL', KEYS[2]) return redis.call('ZREM', KEYS[3], ARGV[1], ARGV[2])",
    );
    let Some(kv) = &fixture.kv else { return };
    let people = fixture.people(6);
    fixture.arrive(&people[..5]).await;
    let (inside, mut positions) = (fixture.slot(people[0]).await, Vec::new());
    for user in &people[1..5] {
        positions.push(fixture.place(*user).await);
    }
    fixture.room.settle(fixture.event).await.unwrap();
    let keys = ["room", "journal", "queue"].map(|name| format!("{{{}}}:{name}", fixture.event));
    let forgotten = [people[3].to_string(), people[4].to_string()];
    kv.run(&GO_BACK, &keys, &forgotten.each_ref().map(|user| Arg::from(user.as_str()))).await.unwrap();

    fixture.check(people[5]).await;
    assert_eq!(fixture.room.settle(fixture.event).await, Err(Closed), "the journal has other steps");
    fixture.room.settle(fixture.event).await.unwrap();
    assert_eq!(fixture.slot(people[0]).await.id, inside.id);
    for (user, order) in people[1..5].iter().zip(&positions).rev() {
        fixture.come_with(*user, *order, Some(1)).await;
    }
    fixture.check(people[5]).await;
    for (ahead, user) in people[1..].iter().enumerate() {
        assert_eq!(fixture.ahead(*user).await, Some(ahead));
    }
    fixture.assert_fair().await;
}

/// The same without any traffic, so that no new step reveals it.
pub(super) async fn an_outdated_store_is_discarded_without_traffic(fixture: Fixture) {
    if fixture.kv.is_none() {
        return;
    }
    let [left, next, last] = fixture.people(3)[..] else { panic!() };
    fixture.arrive(&[left, next, last]).await;
    let place = fixture.place(last).await;
    fixture.copy_store("", ":then").await;
    fixture.room.leave(fixture.event, left, Why::Left).await.unwrap();
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
    let slot = fixture.slot(next).await;
    fixture.room.settle(fixture.event).await.unwrap();
    fixture.copy_store(":then", "").await;

    assert!(
        fixture.is_in(left).await && fixture.ahead(next).await == Some(0),
        "the old data is visible again"
    );
    assert_eq!(fixture.room.admit(fixture.event).await, Err(Closed), "the journal has later steps");
    assert_eq!(fixture.state(left).await, UserState::Absent);
    assert_eq!(fixture.slot(next).await.id, slot.id);
    fixture.come_with(last, place, Some(1)).await;
    assert_eq!(fixture.ahead(last).await, Some(0));
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
    fixture.assert_fair().await;

    // An empty room is not closed on the basis of old data either: a user holds a slot.
    fixture.room.leave(fixture.event, next, Why::Left).await.unwrap();
    fixture.room.leave(fixture.event, last, Why::Left).await.unwrap();
    fixture.room.settle(fixture.event).await.unwrap();
    fixture.copy_store("", ":then").await;
    let inside = fixture.people(1)[0];
    fixture.check(inside).await;
    fixture.copy_store(":then", "").await;
    assert_eq!(fixture.room.close(fixture.event, 2, Duration::ZERO).await, Err(Closed));
    assert!(fixture.is_in(inside).await);
    fixture.assert_fair().await;
}

/// Redis hangs, the process restarts without it on the same journal, then restarts with that Redis
/// again.
pub(super) async fn rooms_continue_after_running_without_redis(mut fixture: Fixture) {
    if fixture.kv.is_none() {
        return;
    }
    for (is_closed, is_opened_again) in [(false, false), (true, false), (true, true)] {
        fixture.event = fixture.ids.next();
        let [left, next] = fixture.people(2)[..] else { panic!() };
        fixture.arrive(&[left, next]).await;
        fixture.room.settle(fixture.event).await.unwrap();
        let kv = fixture.kv.take();
        fixture.restart().await;
        fixture.room.leave(fixture.event, left, Why::Left).await.unwrap();
        assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
        if is_closed {
            fixture.room.leave(fixture.event, next, Why::Left).await.unwrap();
            assert_eq!(fixture.room.close(fixture.event, 1, Duration::ZERO).await, Ok(true));
        }
        if is_opened_again {
            fixture.check(next).await;
        }
        fixture.kv = kv;
        fixture.restart().await;

        assert_eq!(fixture.room.admit(fixture.event).await, Err(Closed), "the journal has later steps");
        assert_eq!(fixture.state(left).await, UserState::Absent);
        assert_eq!(fixture.is_in(next).await, !is_closed || is_opened_again);
        assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
        fixture.assert_fair().await;
    }
}

/// A room that many processes change and copy at once is never mistaken for an outdated one.
pub(super) async fn steps_in_flight_do_not_discard_the_room(fixture: Fixture) {
    if fixture.kv.is_none() {
        return;
    }
    let mut work = JoinSet::new();
    fixture.room.order(fixture.event, Order::Look).await.unwrap();
    for _ in 0..3 {
        let (room, event, people) = (fixture.another().await.unwrap(), fixture.event, fixture.people(100));
        let worker = Arc::clone(&room);
        work.spawn(async move {
            for _ in 0..60 {
                worker.turn(event).await.unwrap();
            }
        });
        work.spawn(async move {
            for user in people {
                room.check(event, user, None).await.unwrap();
                room.leave(event, user, Why::Left).await.unwrap();
            }
        });
    }
    work.join_all().await;
    assert!(fixture.entries().await.iter().all(|entry| entry.generation == 1));
    fixture.assert_fair().await;
}
