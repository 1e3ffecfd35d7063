//! Behaviour that every backend of a room must show: memory, Redis and Redis Cluster.

mod carried;
mod fixture;
mod losses;
mod old_data;
mod proofs;
mod silence;
mod turns;

use std::{collections::BTreeMap, sync::Arc};

use tokio::{sync::Barrier, task::JoinSet};
use urr_kernel::{EventId, OrderKey, UserId};
use urr_testkit::{STORY_LIMIT as LIMIT, until, within};

use self::{
    carried::{
        more_slots_than_a_page_survive_a_loss_of_the_store, slots_survive_a_generation_lost_while_it_began,
    },
    fixture::{Fixture, LONG_AGO},
    losses::{
        a_clock_set_back_does_not_extend_slots, a_failing_journal_is_reported_as_outage,
        a_lost_room_is_not_closed_early, a_lost_room_is_reopened_once, a_position_is_good_for_one_slot,
        a_room_that_cannot_be_closed_stays_open, a_slot_that_another_process_recorded_is_not_taken_back,
        a_ticket_restores_its_position_in_a_full_line, a_worker_without_the_lock_admits_no_users,
        an_unrecorded_slot_returns_its_owner_to_the_line, initial_state_is_written_when_a_room_opens,
        rooms_in_memory_belong_to_one_process, slots_survive_a_loss_of_the_store,
    },
    old_data::{
        an_outdated_store_is_discarded_when_steps_conflict, an_outdated_store_is_discarded_without_traffic,
        rooms_continue_after_running_without_redis, steps_in_flight_do_not_discard_the_room,
    },
    proofs::the_journal_records_the_source_of_positions,
    silence::{
        frozen_processes_time_out_no_users, idle_timeout_grows_with_the_users_ahead,
        idle_users_lose_slots_and_positions, no_slot_ends_between_two_processes,
    },
    turns::{
        a_position_recorded_by_an_older_version_stays_used, a_position_stays_used_after_a_turn_further_ahead,
        a_turn_uses_up_earlier_promises, leaving_gives_up_the_position,
    },
};
use super::{Answer, Closed, Order, Room};
use crate::{
    journal::{
        Why,
        verify::{Fault, Finding},
    },
    room_model::UserState,
    settings::Limits,
    token_position::TokenPosition,
};

macro_rules! on_every_room {
    ($($story:ident: $limits:expr;)*) => {$(
        mod $story {
            use super::{LIMIT, Limits, Fixture, within};

            fn limits() -> Limits {
                $limits
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory() {
                within(LIMIT, async { super::$story(Fixture::memory(limits()).await.unwrap()).await }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory_with_its_journal_on_postgres() {
                if let Some(fixture) = Fixture::memory_on_postgres(limits()).await {
                    within(LIMIT, super::$story(fixture)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_redis() {
                if let Some(fixture) = Fixture::redis(limits()).await {
                    within(LIMIT, super::$story(fixture)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_cluster() {
                if let Some(fixture) = Fixture::cluster(limits()).await {
                    within(LIMIT, super::$story(fixture)).await;
                }
            }
        }
    )*};
}

on_every_room! {
    slots_are_given_in_order_of_arrival: Limits { threshold: 2, ..Limits::default() };
    a_thousand_concurrent_joins_for_one_slot: Limits { threshold: 10, ..Limits::default() };
    non_atomic_admission_exceeds_the_threshold_and_is_detected: Limits { threshold: 10, ..Limits::default() };
    concurrent_workers_admit_each_user_once: Limits { threshold: 40, batch: 7, ..Limits::default() };
    arrivals_and_admissions_are_counted: Limits { threshold: 1, ..Limits::default() };
    operator_commands_change_the_room: Limits { threshold: 2, ..Limits::default() };
    a_full_line_refuses_newcomers: Limits { threshold: 1, max_waiting: 2, ..Limits::default() };
    leaving_gives_up_the_position: Limits::default();
    positions_survive_a_loss_of_the_store: Limits { threshold: 2, ..Limits::default() };
    idle_users_lose_slots_and_positions: Limits {
        threshold: 1,
        slot_idle: std::time::Duration::from_secs(2),
        waiting_idle: std::time::Duration::from_secs(2),
        ..Limits::default()
    };
    idle_timeout_grows_with_the_users_ahead: Limits {
        threshold: 1,
        batch: 1,
        waiting_idle: std::time::Duration::from_secs(2),
        ..Limits::default()
    };
    frozen_processes_time_out_no_users: Limits {
        threshold: 1,
        slot_idle: std::time::Duration::from_secs(6),
        slot_total: std::time::Duration::from_secs(6),
        waiting_idle: std::time::Duration::from_secs(6),
        ..Limits::default()
    };
    no_slot_ends_between_two_processes: Limits {
        threshold: 1,
        slot_total: std::time::Duration::from_secs(10),
        ..Limits::default()
    };
    operator_decisions_survive_a_loss_of_the_store: Limits { threshold: 2, ..Limits::default() };
    events_do_not_meet: Limits { threshold: 1, ..Limits::default() };
    a_position_is_good_for_one_slot: Limits { threshold: 1, ..Limits::default() };
    a_turn_uses_up_earlier_promises: Limits { threshold: 2, ..Limits::default() };
    a_position_stays_used_after_a_turn_further_ahead: Limits { threshold: 1, ..Limits::default() };
    a_position_recorded_by_an_older_version_stays_used: Limits { threshold: 1, ..Limits::default() };
    slots_survive_a_loss_of_the_store: Limits { threshold: 2, ..Limits::default() };
    slots_survive_a_generation_lost_while_it_began: Limits { threshold: 2, ..Limits::default() };
    more_slots_than_a_page_survive_a_loss_of_the_store: Limits { threshold: 20_000, ..Limits::default() };
    a_lost_room_is_reopened_once: Limits { threshold: 1, ..Limits::default() };
    a_lost_room_is_not_closed_early: Limits { threshold: 1, ..Limits::default() };
    an_outdated_store_is_discarded_when_steps_conflict: Limits { threshold: 1, ..Limits::default() };
    an_outdated_store_is_discarded_without_traffic: Limits { threshold: 1, ..Limits::default() };
    rooms_continue_after_running_without_redis: Limits { threshold: 1, ..Limits::default() };
    steps_in_flight_do_not_discard_the_room: Limits { threshold: 20, ..Limits::default() };
    the_journal_records_the_source_of_positions: Limits { threshold: 1, ..Limits::default() };
    a_worker_without_the_lock_admits_no_users: Limits { threshold: 1, ..Limits::default() };
    a_slot_that_another_process_recorded_is_not_taken_back: Limits { threshold: 1, ..Limits::default() };
    rooms_in_memory_belong_to_one_process: Limits { threshold: 1, ..Limits::default() };
    initial_state_is_written_when_a_room_opens: Limits { threshold: 1, ..Limits::default() };
    an_unrecorded_slot_returns_its_owner_to_the_line: Limits { threshold: 1, ..Limits::default() };
    a_failing_journal_is_reported_as_outage: Limits { threshold: 1, ..Limits::default() };
    a_ticket_restores_its_position_in_a_full_line: Limits { threshold: 1, max_waiting: 2, ..Limits::default() };
    a_room_that_cannot_be_closed_stays_open: Limits { threshold: 1, ..Limits::default() };
    a_clock_set_back_does_not_extend_slots: Limits { threshold: 1, slot_idle: std::time::Duration::from_secs(2), ..Limits::default() };
}

async fn slots_are_given_in_order_of_arrival(fixture: Fixture) {
    let people = fixture.people(5);
    fixture.arrive(&people).await;
    assert!(fixture.is_in(people[0]).await && fixture.is_in(people[1]).await);
    for (ahead, user) in people[2..].iter().enumerate() {
        assert_eq!(fixture.ahead(*user).await, Some(ahead));
    }
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
    assert_eq!(fixture.room.leave(fixture.event, people[0], Why::Left).await, Ok(true));
    assert_eq!(fixture.room.leave(fixture.event, people[0], Why::Left).await, Ok(false));
    let late = fixture.people(1)[0];
    fixture.check(late).await;
    assert_eq!(fixture.ahead(late).await, Some(3), "a newcomer does not pass those who wait");
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
    assert!(fixture.is_in(people[2]).await);
    assert_eq!(fixture.ahead(people[3]).await, Some(0));
    assert_eq!(fixture.room.leave(fixture.event, people[3], Why::Left).await, Ok(true));
    assert_eq!(fixture.state(people[3]).await, UserState::Absent);
    let report = fixture.assert_fair().await;
    assert_eq!((report.admitted, report.joined, report.gone), (3, 4, 2));
}

async fn a_thousand_concurrent_joins_for_one_slot(fixture: Fixture) {
    let first = fixture.people(9);
    fixture.arrive(&first).await;
    let (crowd, start) = (fixture.people(1_000), Arc::new(Barrier::new(1_000)));
    let mut asking = JoinSet::new();
    for user in crowd {
        let (room, event, start) = (Arc::clone(&fixture.room), fixture.event, Arc::clone(&start));
        asking.spawn(async move {
            start.wait().await;
            room.check(event, user, None).await
        });
    }
    let answers: Vec<Result<Answer, Closed>> = asking.join_all().await;
    let let_in = |answer: &&Result<Answer, Closed>| {
        matches!(answer, Ok(Answer { state: UserState::Active { .. }, .. }))
    };
    assert_eq!(answers.iter().filter(let_in).count(), 1);
    assert!(answers.iter().all(Result::is_ok));
    let report = fixture.assert_fair().await;
    assert_eq!((report.admitted, report.joined, report.most_active), (10, 999, 10));
}

/// Reads whether a slot is free, and then acts on that in a second step.
async fn look_then_act(room: &Room, event: EventId, user: UserId) -> Result<bool, Closed> {
    let seen = room.order(event, Order::Look).await?;
    if seen.waiting > 0 || u32::try_from(seen.active).is_ok_and(|active| active >= seen.threshold) {
        return Ok(false);
    }
    tokio::task::yield_now().await;
    match room {
        Room::Memory(room) => room.let_in(event, user).await?,
        Room::Redis(room) => room.let_in(event, user).await?,
    }
    Ok(true)
}

/// Negative control of the test above: reading the room and then admitting in a second step admits
/// too many users, and the verifier reports it.
async fn non_atomic_admission_exceeds_the_threshold_and_is_detected(fixture: Fixture) {
    let (crowd, start) = (fixture.people(200), Arc::new(Barrier::new(200)));
    fixture.room.order(fixture.event, Order::Look).await.unwrap();
    let mut asking = JoinSet::new();
    for user in crowd {
        let (room, event, start) = (Arc::clone(&fixture.room), fixture.event, Arc::clone(&start));
        asking.spawn(async move {
            start.wait().await;
            look_then_act(&room, event, user).await.unwrap()
        });
    }
    let admitted = asking.join_all().await.into_iter().filter(|admitted| *admitted).count();
    let report = fixture.report().await;
    assert!(admitted > 10, "{admitted}");
    let too_many = |finding: &Finding| matches!(finding.fault, Fault::OverThreshold { threshold: 10, .. });
    assert!(!report.is_fair() && report.findings.iter().any(too_many), "{report:#?}");
}

async fn arrivals_and_admissions_are_counted(fixture: Fixture) {
    let counted = async || {
        let totals = fixture.room.order(fixture.event, Order::Look).await.unwrap();
        (totals.arrived, totals.admitted)
    };
    assert_eq!(counted().await, (0, 0));
    let people = fixture.people(3);
    fixture.arrive(&people).await;
    fixture.check(people[1]).await;
    assert_eq!(counted().await, (3, 1), "polling is not counted as an arrival");
    fixture.room.leave(fixture.event, people[0], Why::Left).await.unwrap();
    until(LIMIT, async || {
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.is_in(people[1]).await
    })
    .await;
    assert_eq!(counted().await, (3, 2));
    fixture.check(people[0]).await;
    assert_eq!(counted().await, (4, 2), "joining again is counted");
}

async fn concurrent_workers_admit_each_user_once(fixture: Fixture) {
    let people = fixture.people(120);
    fixture.arrive(&people).await;
    let mut work = JoinSet::new();
    // In memory there is only one process, but its worker may run twice at once.
    let rooms = match &*fixture.room {
        Room::Memory(_) => [Arc::clone(&fixture.room), Arc::clone(&fixture.room)],
        Room::Redis(_) => [Arc::clone(&fixture.room), fixture.another().await.unwrap()],
    };
    for room in rooms {
        let event = fixture.event;
        work.spawn(async move {
            for _ in 0..10 {
                room.admit(event).await.unwrap();
            }
        });
    }
    let (room, event, leaving) = (Arc::clone(&fixture.room), fixture.event, people[..40].to_vec());
    work.spawn(async move {
        for user in leaving {
            room.leave(event, user, Why::Bought).await.unwrap();
        }
    });
    work.join_all().await;
    until(LIMIT, async || {
        // The lock of a stopped worker takes a moment to expire.
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.room.order(fixture.event, Order::Look).await.unwrap().active == 40
    })
    .await;
    let report = fixture.assert_fair().await;
    assert_eq!((report.admitted, report.most_active), (80, 40));
    for user in &people[40..80] {
        assert!(fixture.is_in(*user).await, "users are admitted in the order in which they joined");
    }
}

async fn operator_commands_change_the_room(fixture: Fixture) {
    let people = fixture.people(6);
    let order = async |order| fixture.room.order(fixture.event, order).await.unwrap();
    assert!(order(Order::Pause).await.paused);
    fixture.arrive(&people[..3]).await;
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
    assert_eq!(fixture.ahead(people[2]).await, Some(2), "a paused room admits no users");
    assert!(!order(Order::Resume).await.paused);
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(2));
    assert_eq!(order(Order::Threshold(3)).await.threshold, 3);
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
    let UserState::Active { slot, .. } = fixture.state(people[0]).await else { panic!() };
    fixture.arrive(&people[3..4]).await;
    let UserState::Waiting { order: kept, .. } = fixture.state(people[3]).await else { panic!() };
    let before = order(Order::Look).await;
    assert_eq!((before.waiting, before.active, before.epoch), (1, 3, 1));
    let after = order(Order::Clear).await;
    assert_eq!((after.waiting, after.active, after.epoch, after.threshold), (0, 0, 2, 3));
    assert_eq!(fixture.state(people[0]).await, UserState::Absent, "slot {} ended", slot.id);
    order(Order::Threshold(0)).await;
    fixture.arrive(&people[4..]).await;
    let old = Some(TokenPosition { order: kept, epoch: Some(1), since: LONG_AGO });
    fixture.room.check(fixture.event, people[3], old).await.unwrap();
    assert_eq!(fixture.ahead(people[3]).await, Some(2), "a ticket from before the clear is void");
    fixture.assert_fair().await;
}

async fn a_full_line_refuses_newcomers(fixture: Fixture) {
    let people = fixture.people(4);
    fixture.arrive(&people[..3]).await;
    assert_eq!(fixture.check(people[3]).await, UserState::Full);
    assert_eq!(fixture.state(people[3]).await, UserState::Absent);
    assert!(matches!(fixture.check(people[2]).await, UserState::Waiting { ahead: 1, .. }));
    fixture.room.leave(fixture.event, people[1], Why::Left).await.unwrap();
    assert!(matches!(fixture.check(people[3]).await, UserState::Waiting { ahead: 1, .. }));
}

async fn positions_survive_a_loss_of_the_store(mut fixture: Fixture) {
    let people = fixture.people(30);
    fixture.arrive(&people).await;
    let mut tickets: BTreeMap<UserId, OrderKey> = BTreeMap::new();
    for user in &people[2..] {
        let UserState::Waiting { order, .. } = fixture.state(*user).await else { panic!() };
        tickets.insert(*user, order);
    }
    fixture.report().await;
    fixture.lose_everything().await;
    // Users who return in any order get their original positions back.
    for (user, order) in &tickets {
        let promise = Some(TokenPosition { order: *order, epoch: Some(1), since: LONG_AGO });
        fixture.room.check(fixture.event, *user, promise).await.unwrap();
    }
    let mut positions = Vec::new();
    for user in &people[2..] {
        match fixture.state(*user).await {
            UserState::Waiting { order, .. } => {
                assert_eq!(order, tickets[user], "the position on the ticket is restored");
            }
            UserState::Active { slot, .. } => assert_eq!(slot.order, tickets[user]),
            other => panic!("{other:?}"),
        }
        positions.extend(fixture.ahead(*user).await);
    }
    assert!(positions.is_sorted(), "{positions:?}");
    fixture.assert_fair().await;
}

async fn operator_decisions_survive_a_loss_of_the_store(mut fixture: Fixture) {
    fixture.room.order(fixture.event, Order::Threshold(7)).await.unwrap();
    fixture.room.order(fixture.event, Order::Pause).await.unwrap();
    fixture.room.order(fixture.event, Order::Clear).await.unwrap();
    fixture.lose_everything().await;
    let totals = fixture.room.order(fixture.event, Order::Look).await.unwrap();
    assert_eq!((totals.threshold, totals.paused, totals.epoch), (7, true, 2));
}

async fn events_do_not_meet(fixture: Fixture) {
    let (user, other) = (fixture.people(1)[0], fixture.ids.next());
    assert!(matches!(fixture.check(user).await, UserState::Active { .. }));
    assert_eq!(fixture.room.status(other, user).await.unwrap().state, UserState::Absent);
    let there = fixture.room.check(other, user, None).await.unwrap();
    assert!(matches!(there.state, UserState::Active { .. }));
    let mut events = fixture.room.events().await.unwrap();
    events.retain(|event| [fixture.event, other].contains(event));
    assert_eq!(events.len(), 2);
}
