//! Which promises a turn uses up, whichever store remembers it.

use std::time::Duration;

use urr_kernel::OrderKey;
use urr_kv::{Arg, Script};

use super::trial::Trial;
use crate::{hall::Standing, journal::Why, promise::Promise, room::Order};

const SECOND: Duration = Duration::from_secs(1);

/// A position a few further back or ahead.
fn near(order: OrderKey, by: i64) -> OrderKey {
    OrderKey::new(order.as_u64().strict_add_signed(by)).unwrap()
}

/// The position of a waiting user.
fn place_of(standing: Standing) -> Option<OrderKey> {
    match standing {
        Standing::Waiting { order, .. } => Some(order),
        _ => None,
    }
}

/// A turn uses up its position and every earlier ticket. Another wait in Tier 1 is another turn.
pub(super) async fn a_turn_uses_up_earlier_promises(mut trial: Trial) {
    let people = trial.people(3);
    let [first, second, fan] = people[..] else { panic!() };
    trial.arrive(&people).await;
    trial.room.leave(trial.event, first, Why::Left).await.unwrap();
    assert_eq!(trial.room.admit(trial.event).await, Ok(1));
    let slot = trial.slot(fan).await;
    trial.room.leave(trial.event, fan, Why::Left).await.unwrap();
    // No admissions from here on, so that returning users wait.
    trial.room.order(trial.event, Order::Threshold(0)).await.unwrap();
    let [before, after] = [slot.since.before(SECOND), slot.since.after(SECOND)];
    for life in 1..=2 {
        for (by, epoch, since, holds) in [
            (-1, Some(1), before, false),
            (1, Some(1), before, false),
            (0, Some(1), after, false),
            (1, Some(1), after, true),
            (-1, None, before, false),
            (0, None, after, false),
            (-1, None, after, true),
            (1, None, before, true),
        ] {
            let promise = Promise { order: near(slot.order, by), epoch, since };
            let standing = trial.come_for(fan, promise).await;
            let expected = if holds { Some(promise.order) } else { None };
            assert_eq!(place_of(standing), expected, "in life {life}: {promise:?}: {standing:?}");
            trial.room.leave(trial.event, fan, Why::Idle).await.unwrap();
        }
        trial.room.settle(trial.event).await.unwrap();
        trial.lose_everything().await;
    }
    assert!(matches!(trial.standing(second).await, Standing::Active { .. }), "another user keeps their slot");
}

/// Leaving gives up the position and every earlier ticket, also after the store has lost the room.
/// An idle timeout does not.
pub(super) async fn leaving_gives_up_the_position(mut trial: Trial) {
    let people = trial.people(3);
    let [left, silent, stays] = people[..] else { panic!() };
    trial.room.order(trial.event, Order::Threshold(0)).await.unwrap();
    trial.arrive(&people).await;
    let [first, second] = [trial.standing(left).await, trial.standing(silent).await].map(place_of);
    let [first, second] = [first.unwrap(), second.unwrap()];
    let issued = trial.clock.now();
    trial.room.leave(trial.event, silent, Why::Idle).await.unwrap();
    trial.room.leave(trial.event, left, Why::Left).await.unwrap();
    for life in 1..=2 {
        for epoch in [Some(1), None] {
            // A pass has a precision of one second, and its wait began earlier.
            let since = if epoch.is_some() { issued } else { issued.before(2 * SECOND) };
            let promise = |order| Promise { order, epoch, since };
            assert_eq!(
                place_of(trial.come_for(left, promise(first)).await),
                None,
                "in life {life}: {epoch:?}"
            );
            let standing = trial.come_for(silent, promise(second)).await;
            assert_eq!(place_of(standing), Some(second), "in life {life}: {epoch:?}");
            trial.room.leave(trial.event, silent, Why::Idle).await.unwrap();
        }
        trial.room.settle(trial.event).await.unwrap();
        trial.lose_everything().await;
    }
    trial.arrive(&[stays]).await;
}

/// Two waits in Tier 1 are two turns, and the second may be further ahead. The first stays used.
pub(super) async fn a_position_stays_used_after_a_turn_further_ahead(mut trial: Trial) {
    let fan = trial.people(1)[0];
    trial.arrive(&[fan]).await;
    let first = trial.slot(fan).await;
    trial.room.leave(trial.event, fan, Why::Left).await.unwrap();
    let pass = |order, since| Promise { order, epoch: None, since };
    let second = pass(near(first.order, -5), first.since.after(SECOND));
    let standing = trial.come_for(fan, second).await;
    assert!(
        matches!(standing, Standing::Active { slot, .. } if slot.order == second.order),
        "another wait is another turn: {standing:?}"
    );
    let since = trial.slot(fan).await.since.after(SECOND);
    trial.room.leave(trial.event, fan, Why::Left).await.unwrap();
    trial.room.order(trial.event, Order::Threshold(0)).await.unwrap();
    for life in 1..=2 {
        for (used, expected) in [(first.order, None), (near(first.order, 1), Some(near(first.order, 1)))] {
            let standing = trial.come_for(fan, pass(used, since)).await;
            assert_eq!(place_of(standing), expected, "in life {life}: {standing:?}");
            trial.room.leave(trial.event, fan, Why::Idle).await.unwrap();
        }
        trial.room.settle(trial.event).await.unwrap();
        trial.lose_everything().await;
    }
}

/// An older version stored a used position without a time. It stays used.
pub(super) async fn a_position_recorded_by_an_older_version_stays_used(trial: Trial) {
    static NOTE: Script = Script::new("test.note", "return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])");
    let Some(kv) = &trial.kv else { return };
    let fan = trial.people(1)[0];
    trial.arrive(&[fan]).await;
    let slot = trial.slot(fan).await;
    trial.room.leave(trial.event, fan, Why::Left).await.unwrap();
    let (user, place) = (fan.to_string(), slot.order.as_u64().to_string());
    let spent = format!("{{{}}}:spent", trial.event);
    kv.run(&NOTE, &[spent], &[Arg::from(user.as_str()), Arg::from(place.as_str())]).await.unwrap();
    let later = slot.since.after(SECOND);
    for (by, epoch, holds) in [(0, Some(1), false), (0, None, false), (-1, None, false), (1, None, true)] {
        let promise = Promise { order: near(slot.order, by), epoch, since: later };
        let standing = trial.come_for(fan, promise).await;
        assert_eq!(matches!(standing, Standing::Active { .. }), holds, "{promise:?}: {standing:?}");
    }
}
