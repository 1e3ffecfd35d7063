//! Idle users are removed, except for time in which no process could receive their requests.

use std::{cell::Cell, time::Duration};

use urr_testkit::until;

use super::{LIMIT, trial::Trial};
use crate::{hall::Standing, journal::Why, room::Order};

pub(super) async fn idle_users_lose_slots_and_positions(trial: Trial) {
    let people = trial.people(3);
    trial.arrive(&people).await;
    until(LIMIT, async || {
        // The second user polls, the others do not.
        let inside = trial.is_in(people[1]).await;
        trial.room.admit(trial.event).await.unwrap();
        let totals = trial.room.order(trial.event, Order::Look).await.unwrap();
        inside && (totals.active, totals.waiting) == (1, 0)
    })
    .await;
    let report = trial.assert_fair().await;
    assert_eq!((report.admitted, report.gone), (2, 2));
}

pub(super) async fn idle_timeout_grows_with_the_users_ahead(trial: Trial) {
    let people = trial.people(15);
    let [_inside, near, between @ .., far] = &people[..] else { panic!() };
    trial.arrive(&people).await;
    let place = trial.place(*far).await;
    let waiting = async || {
        trial.room.admit(trial.event).await.unwrap();
        trial.room.order(trial.event, Order::Look).await.unwrap().waiting
    };
    until(LIMIT, async || {
        for user in between {
            trial.standing(*user).await;
        }
        waiting().await < 14
    })
    .await;
    assert_eq!(waiting().await, 13, "a user far back stays after the same idle time");
    assert_eq!(trial.standing(*near).await, Standing::Absent, "users near the front time out sooner");
    for user in between {
        trial.room.leave(trial.event, *user, Why::Left).await.unwrap();
    }
    until(LIMIT, async || waiting().await == 0).await;
    assert!(
        matches!(trial.come_with(*far, place, Some(1)).await, Standing::Waiting { order, .. } if order == place)
    );
    trial.assert_fair().await;
}

/// Every process was stopped or frozen for longer than the idle timeout.
pub(super) async fn frozen_processes_time_out_no_users(trial: Trial) {
    let people = trial.people(12);
    trial.arrive(&people).await;
    let slot = trial.slot(people[0]).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    // The last in line polls first.
    assert_eq!(trial.ahead(people[11]).await, Some(10));
    assert_eq!(trial.room.admit(trial.event).await, Ok(0));
    assert_eq!(trial.slot(people[0]).await.id, slot.id, "the slot continues");
    for (ahead, user) in people[1..].iter().enumerate() {
        assert_eq!(trial.ahead(*user).await, Some(ahead));
    }
    let report = trial.assert_fair().await;
    assert_eq!((report.admitted, report.gone), (1, 0));

    // From here on time counts again: the first user is idle, the waiting users are not.
    let waits = Cell::new(None);
    until(LIMIT, async || {
        waits.set(Some(trial.room.status(trial.event, people[1]).await.unwrap().now));
        trial.room.admit(trial.event).await.unwrap();
        trial.ahead(people[2]).await == Some(0)
    })
    .await;
    let bought = async |at| trial.room.bought(trial.event, people[1], at).await;
    assert_eq!(
        bought(waits.get().unwrap()).await,
        Ok(false),
        "the old slot ended, whatever the room time is"
    );
    assert!(trial.is_in(people[1]).await);
    assert_eq!(bought(trial.slot(people[1]).await.since).await, Ok(true));
    assert_eq!(trial.standing(people[1]).await, Standing::Absent);
    trial.assert_fair().await;
}

/// The same across restarts: a slot lasts its full time, not counting the gaps between processes.
pub(super) async fn no_slot_ends_between_two_processes(mut trial: Trial) {
    let people = trial.people(2);
    trial.arrive(&people).await;
    let slot = trial.slot(people[0]).await;
    for _ in 0..2 {
        assert_eq!(trial.room.admit(trial.event).await, Ok(0));
        trial.tasks.shutdown(Duration::from_secs(10)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(8)).await;
        trial.restart().await;
    }
    assert_eq!(trial.room.admit(trial.event).await, Ok(0));
    assert_eq!(trial.slot(people[0]).await.id, slot.id, "ten seconds of room time have not passed");
    until(LIMIT, async || {
        trial.standing(people[0]).await;
        trial.room.admit(trial.event).await.unwrap();
        trial.is_in(people[1]).await
    })
    .await;
    let report = trial.assert_fair().await;
    assert_eq!((report.admitted, report.gone), (2, 1));
}
