//! Which promises a turn uses up, whichever store remembers it.

use std::time::Duration;

use urr_kernel::OrderKey;
use urr_kv::{Arg, Script};

use super::fixture::Fixture;
use crate::{journal::Why, room::Order, room_model::UserState, token_position::TokenPosition};

const SECOND: Duration = Duration::from_secs(1);

/// A position a few further back or ahead.
fn near(order: OrderKey, by: i64) -> OrderKey {
    OrderKey::new(order.as_u64().strict_add_signed(by)).unwrap()
}

/// The position of a waiting user.
fn place_of(state: UserState) -> Option<OrderKey> {
    match state {
        UserState::Waiting { order, .. } => Some(order),
        _ => None,
    }
}

/// A turn uses up its position and every earlier ticket. Another wait in Tier 1 is another turn.
pub(super) async fn a_turn_uses_up_earlier_promises(mut fixture: Fixture) {
    let people = fixture.people(3);
    let [first, second, fan] = people[..] else { panic!() };
    fixture.arrive(&people).await;
    fixture.room.leave(fixture.event, first, Why::Left).await.unwrap();
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
    let slot = fixture.slot(fan).await;
    fixture.room.leave(fixture.event, fan, Why::Left).await.unwrap();
    // No admissions from here on, so that returning users wait.
    fixture.room.order(fixture.event, Order::Threshold(0)).await.unwrap();
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
            let promise = TokenPosition { order: near(slot.order, by), epoch, since };
            let state = fixture.come_for(fan, promise).await;
            let expected = if holds { Some(promise.order) } else { None };
            assert_eq!(place_of(state), expected, "in life {life}: {promise:?}: {state:?}");
            fixture.room.leave(fixture.event, fan, Why::Idle).await.unwrap();
        }
        fixture.room.settle(fixture.event).await.unwrap();
        fixture.lose_everything().await;
    }
    assert!(matches!(fixture.state(second).await, UserState::Active { .. }), "another user keeps their slot");
}

/// Leaving gives up the position and every earlier ticket, also after the store has lost the room.
/// An idle timeout does not.
pub(super) async fn leaving_gives_up_the_position(mut fixture: Fixture) {
    let people = fixture.people(3);
    let [left, silent, stays] = people[..] else { panic!() };
    fixture.room.order(fixture.event, Order::Threshold(0)).await.unwrap();
    fixture.arrive(&people).await;
    let [first, second] = [fixture.state(left).await, fixture.state(silent).await].map(place_of);
    let [first, second] = [first.unwrap(), second.unwrap()];
    let issued = fixture.clock.now();
    fixture.room.leave(fixture.event, silent, Why::Idle).await.unwrap();
    fixture.room.leave(fixture.event, left, Why::Left).await.unwrap();
    for life in 1..=2 {
        for epoch in [Some(1), None] {
            // A pass has a precision of one second, and its wait began earlier.
            let since = if epoch.is_some() { issued } else { issued.before(2 * SECOND) };
            let promise = |order| TokenPosition { order, epoch, since };
            assert_eq!(
                place_of(fixture.come_for(left, promise(first)).await),
                None,
                "in life {life}: {epoch:?}"
            );
            let state = fixture.come_for(silent, promise(second)).await;
            assert_eq!(place_of(state), Some(second), "in life {life}: {epoch:?}");
            fixture.room.leave(fixture.event, silent, Why::Idle).await.unwrap();
        }
        fixture.room.settle(fixture.event).await.unwrap();
        fixture.lose_everything().await;
    }
    fixture.arrive(&[stays]).await;
}

/// Two waits in Tier 1 are two turns, and the second may be further ahead. The first stays used.
pub(super) async fn a_position_stays_used_after_a_turn_further_ahead(mut fixture: Fixture) {
    let fan = fixture.people(1)[0];
    fixture.arrive(&[fan]).await;
    let first = fixture.slot(fan).await;
    fixture.room.leave(fixture.event, fan, Why::Left).await.unwrap();
    let pass = |order, since| TokenPosition { order, epoch: None, since };
    let second = pass(near(first.order, -5), first.since.after(SECOND));
    let state = fixture.come_for(fan, second).await;
    assert!(
        matches!(state, UserState::Active { slot, .. } if slot.order == second.order),
        "another wait is another turn: {state:?}"
    );
    let since = fixture.slot(fan).await.since.after(SECOND);
    fixture.room.leave(fixture.event, fan, Why::Left).await.unwrap();
    fixture.room.order(fixture.event, Order::Threshold(0)).await.unwrap();
    for life in 1..=2 {
        for (used, expected) in [(first.order, None), (near(first.order, 1), Some(near(first.order, 1)))] {
            let state = fixture.come_for(fan, pass(used, since)).await;
            assert_eq!(place_of(state), expected, "in life {life}: {state:?}");
            fixture.room.leave(fixture.event, fan, Why::Idle).await.unwrap();
        }
        fixture.room.settle(fixture.event).await.unwrap();
        fixture.lose_everything().await;
    }
}

/// An older version stored a used position without a time. It stays used.
pub(super) async fn a_position_recorded_by_an_older_version_stays_used(fixture: Fixture) {
    static NOTE: Script = Script::new("test.note", "return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])");
    let Some(kv) = &fixture.kv else { return };
    let fan = fixture.people(1)[0];
    fixture.arrive(&[fan]).await;
    let slot = fixture.slot(fan).await;
    fixture.room.leave(fixture.event, fan, Why::Left).await.unwrap();
    let (user, place) = (fan.to_string(), slot.order.as_u64().to_string());
    let spent = format!("{{{}}}:spent", fixture.event);
    kv.run(&NOTE, &[spent], &[Arg::from(user.as_str()), Arg::from(place.as_str())]).await.unwrap();
    let later = slot.since.after(SECOND);
    for (by, epoch, holds) in [(0, Some(1), false), (0, None, false), (-1, None, false), (1, None, true)] {
        let promise = TokenPosition { order: near(slot.order, by), epoch, since: later };
        let state = fixture.come_for(fan, promise).await;
        assert_eq!(matches!(state, UserState::Active { .. }), holds, "{promise:?}: {state:?}");
    }
}
