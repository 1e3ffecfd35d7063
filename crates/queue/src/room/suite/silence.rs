//! Idle users are removed, except for time in which no process could receive their requests.

use std::{cell::Cell, time::Duration};

use urr_testkit::until;

use super::{LIMIT, fixture::Fixture};
use crate::{journal::Why, room::Order, room_model::UserState};

pub(super) async fn idle_users_lose_slots_and_positions(fixture: Fixture) {
    let people = fixture.people(3);
    fixture.arrive(&people).await;
    until(LIMIT, async || {
        // The second user polls, the others do not.
        let inside = fixture.is_in(people[1]).await;
        fixture.room.admit(fixture.event).await.unwrap();
        let totals = fixture.room.order(fixture.event, Order::Look).await.unwrap();
        inside && (totals.active, totals.waiting) == (1, 0)
    })
    .await;
    let report = fixture.assert_fair().await;
    assert_eq!((report.admitted, report.gone), (2, 2));
}

pub(super) async fn idle_timeout_grows_with_the_users_ahead(fixture: Fixture) {
    let people = fixture.people(15);
    let [_inside, near, between @ .., far] = &people[..] else { panic!() };
    fixture.arrive(&people).await;
    let place = fixture.place(*far).await;
    let waiting = async || {
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.room.order(fixture.event, Order::Look).await.unwrap().waiting
    };
    until(LIMIT, async || {
        for user in between {
            fixture.state(*user).await;
        }
        waiting().await < 14
    })
    .await;
    assert_eq!(waiting().await, 13, "a user far back stays after the same idle time");
    assert_eq!(fixture.state(*near).await, UserState::Absent, "users near the front time out sooner");
    for user in between {
        fixture.room.leave(fixture.event, *user, Why::Left).await.unwrap();
    }
    until(LIMIT, async || waiting().await == 0).await;
    assert!(
        matches!(fixture.come_with(*far, place, Some(1)).await, UserState::Waiting { order, .. } if order == place)
    );
    fixture.assert_fair().await;
}

/// Every process was stopped or frozen for longer than the idle timeout.
pub(super) async fn frozen_processes_time_out_no_users(fixture: Fixture) {
    let people = fixture.people(12);
    fixture.arrive(&people).await;
    let slot = fixture.slot(people[0]).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    // The last in line polls first.
    assert_eq!(fixture.ahead(people[11]).await, Some(10));
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
    assert_eq!(fixture.slot(people[0]).await.id, slot.id, "the slot continues");
    for (ahead, user) in people[1..].iter().enumerate() {
        assert_eq!(fixture.ahead(*user).await, Some(ahead));
    }
    let report = fixture.assert_fair().await;
    assert_eq!((report.admitted, report.gone), (1, 0));

    // From here on time counts again: the first user is idle, the waiting users are not.
    let waits = Cell::new(None);
    until(LIMIT, async || {
        waits.set(Some(fixture.room.status(fixture.event, people[1]).await.unwrap().now));
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.ahead(people[2]).await == Some(0)
    })
    .await;
    let bought = async |at| fixture.room.bought(fixture.event, people[1], at).await;
    assert_eq!(
        bought(waits.get().unwrap()).await,
        Ok(false),
        "the old slot ended, whatever the room time is"
    );
    assert!(fixture.is_in(people[1]).await);
    assert_eq!(bought(fixture.slot(people[1]).await.since).await, Ok(true));
    assert_eq!(fixture.state(people[1]).await, UserState::Absent);
    fixture.assert_fair().await;
}

/// The same across restarts: a slot lasts its full time, not counting the gaps between processes.
pub(super) async fn no_slot_ends_between_two_processes(mut fixture: Fixture) {
    let people = fixture.people(2);
    fixture.arrive(&people).await;
    let slot = fixture.slot(people[0]).await;
    for _ in 0..2 {
        assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
        fixture.tasks.shutdown(Duration::from_secs(10)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(8)).await;
        fixture.restart().await;
    }
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
    assert_eq!(fixture.slot(people[0]).await.id, slot.id, "ten seconds of room time have not passed");
    until(LIMIT, async || {
        fixture.state(people[0]).await;
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.is_in(people[1]).await
    })
    .await;
    let report = fixture.assert_fair().await;
    assert_eq!((report.admitted, report.gone), (2, 1));
}
