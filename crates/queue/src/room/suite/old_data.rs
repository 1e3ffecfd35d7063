//! Redis comes back with old data: a promoted replica that lagged, a restored dump, a hung server.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use urr_kv::{Arg, Script};

use super::trial::Trial;
use crate::{
    hall::Standing,
    journal::Why,
    room::{Closed, Order},
};

/// A lagging replica is promoted; the steps it lacks have happened all the same.
pub(super) async fn an_outdated_store_is_discarded_when_steps_conflict(trial: Trial) {
    static GO_BACK: Script = Script::new(
        "test.go_back",
        "redis.call('HINCRBY', KEYS[1], 'seq', -2) redis.call('DEL', KEYS[2]) return redis.call('ZREM', KEYS[3], ARGV[1], ARGV[2])",
    );
    let Some(kv) = &trial.kv else { return };
    let people = trial.people(6);
    trial.arrive(&people[..5]).await;
    let (inside, mut places) = (trial.slot(people[0]).await, Vec::new());
    for user in &people[1..5] {
        places.push(trial.place(*user).await);
    }
    trial.room.settle(trial.event).await.unwrap();
    let keys = ["room", "journal", "queue"].map(|name| format!("{{{}}}:{name}", trial.event));
    let forgotten = [people[3].to_string(), people[4].to_string()];
    kv.run(&GO_BACK, &keys, &forgotten.each_ref().map(|user| Arg::from(user.as_str()))).await.unwrap();

    trial.check(people[5]).await;
    assert_eq!(trial.room.settle(trial.event).await, Err(Closed), "the journal has other steps");
    trial.room.settle(trial.event).await.unwrap();
    assert_eq!(trial.slot(people[0]).await.id, inside.id);
    for (user, order) in people[1..5].iter().zip(&places).rev() {
        trial.come_with(*user, *order, Some(1)).await;
    }
    trial.check(people[5]).await;
    for (ahead, user) in people[1..].iter().enumerate() {
        assert_eq!(trial.ahead(*user).await, Some(ahead));
    }
    trial.assert_fair().await;
}

/// The same without any traffic, so that no new step reveals it.
pub(super) async fn an_outdated_store_is_discarded_without_traffic(trial: Trial) {
    if trial.kv.is_none() {
        return;
    }
    let [left, next, last] = trial.people(3)[..] else { panic!() };
    trial.arrive(&[left, next, last]).await;
    let place = trial.place(last).await;
    trial.copy_store("", ":then").await;
    trial.room.leave(trial.event, left, Why::Left).await.unwrap();
    assert_eq!(trial.room.admit(trial.event).await, Ok(1));
    let slot = trial.slot(next).await;
    trial.room.settle(trial.event).await.unwrap();
    trial.copy_store(":then", "").await;

    assert!(trial.is_in(left).await && trial.ahead(next).await == Some(0), "the old data is visible again");
    assert_eq!(trial.room.admit(trial.event).await, Err(Closed), "the journal has later steps");
    assert_eq!(trial.standing(left).await, Standing::Absent);
    assert_eq!(trial.slot(next).await.id, slot.id);
    trial.come_with(last, place, Some(1)).await;
    assert_eq!(trial.ahead(last).await, Some(0));
    assert_eq!(trial.room.admit(trial.event).await, Ok(0));
    trial.assert_fair().await;

    // An empty room is not closed on the basis of old data either: a user holds a slot.
    trial.room.leave(trial.event, next, Why::Left).await.unwrap();
    trial.room.leave(trial.event, last, Why::Left).await.unwrap();
    trial.room.settle(trial.event).await.unwrap();
    trial.copy_store("", ":then").await;
    let inside = trial.people(1)[0];
    trial.check(inside).await;
    trial.copy_store(":then", "").await;
    assert_eq!(trial.room.close(trial.event, 2, Duration::ZERO).await, Err(Closed));
    assert!(trial.is_in(inside).await);
    trial.assert_fair().await;
}

/// Redis hangs, the process restarts without it on the same journal, then restarts with that Redis
/// again.
pub(super) async fn rooms_continue_after_running_without_redis(mut trial: Trial) {
    if trial.kv.is_none() {
        return;
    }
    for (is_closed, is_opened_again) in [(false, false), (true, false), (true, true)] {
        trial.event = trial.ids.next();
        let [left, next] = trial.people(2)[..] else { panic!() };
        trial.arrive(&[left, next]).await;
        trial.room.settle(trial.event).await.unwrap();
        let kv = trial.kv.take();
        trial.restart().await;
        trial.room.leave(trial.event, left, Why::Left).await.unwrap();
        assert_eq!(trial.room.admit(trial.event).await, Ok(1));
        if is_closed {
            trial.room.leave(trial.event, next, Why::Left).await.unwrap();
            assert_eq!(trial.room.close(trial.event, 1, Duration::ZERO).await, Ok(true));
        }
        if is_opened_again {
            trial.check(next).await;
        }
        trial.kv = kv;
        trial.restart().await;

        assert_eq!(trial.room.admit(trial.event).await, Err(Closed), "the journal has later steps");
        assert_eq!(trial.standing(left).await, Standing::Absent);
        assert_eq!(trial.is_in(next).await, !is_closed || is_opened_again);
        assert_eq!(trial.room.admit(trial.event).await, Ok(0));
        trial.assert_fair().await;
    }
}

/// A room that many processes change and copy at once is never mistaken for an outdated one.
pub(super) async fn steps_in_flight_do_not_discard_the_room(trial: Trial) {
    if trial.kv.is_none() {
        return;
    }
    let mut work = JoinSet::new();
    trial.room.order(trial.event, Order::Look).await.unwrap();
    for _ in 0..3 {
        let (room, event, people) = (trial.another().await.unwrap(), trial.event, trial.people(100));
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
    assert!(trial.entries().await.iter().all(|entry| entry.generation == 1));
    trial.assert_fair().await;
}
