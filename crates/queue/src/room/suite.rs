//! What every room must do, in memory, in Redis and in a Redis Cluster.

mod carried;
mod losses;
mod old_data;
mod proofs;
mod silence;
mod trial;
mod turns;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{sync::Barrier, task::JoinSet};
use urr_kernel::{OrderKey, UserId};
use urr_testkit::{fresh_postgres, fresh_sqlite, until, within};

use self::{
    carried::{
        every_slot_outlives_the_store_however_many_there_are,
        slots_outlive_a_life_that_broke_off_while_it_began,
    },
    losses::{
        a_clock_that_is_put_back_keeps_nobody_in, a_full_line_takes_nobodys_place,
        a_journal_that_cannot_be_written_is_an_outage, a_place_is_good_for_one_slot,
        a_room_that_cannot_be_closed_goes_on, a_room_that_was_lost_begins_anew_once,
        a_room_that_was_lost_is_not_closed_before_its_time,
        a_slot_that_another_process_recorded_is_not_taken_back,
        a_slot_that_cannot_be_recorded_is_the_same_place_again,
        a_worker_that_slept_past_its_turn_lets_nobody_in, rooms_in_memory_are_one_processes,
        slots_outlive_the_store, what_a_room_begins_with_is_written_when_it_begins,
    },
    old_data::{
        a_store_that_is_back_with_old_data_is_found_out_while_nothing_happens,
        a_store_that_went_back_in_time_is_not_believed, rooms_that_went_on_without_their_store_go_on,
        steps_that_are_on_their_way_are_no_reason_for_doubt,
    },
    proofs::a_journal_says_where_places_are_from,
    silence::{
        silence_ends_slots_and_places, while_no_process_was_there_no_slot_ends,
        while_nobody_could_show_a_sign_of_life_nobody_falls_silent,
        whoever_is_far_from_the_front_may_be_silent_for_longer,
    },
    trial::{LONG_AGO, Trial},
    turns::{
        a_place_stays_used_after_a_turn_further_ahead, a_place_that_an_older_version_noted_stays_used,
        a_turn_uses_up_what_was_promised_before_it, leaving_gives_up_the_place,
    },
};
use super::{Answer, Closed, Order, Room};
use crate::{
    DOMAIN,
    hall::Standing,
    journal::{
        Why,
        verify::{Fault, Finding},
    },
    promise::Promise,
    settings::Limits,
};

/// Far more than any story takes.
const LIMIT: Duration = Duration::from_mins(1);

macro_rules! on_every_room {
    ($($story:ident: $limits:expr;)*) => {$(
        mod $story {
            use super::{LIMIT, Limits, Trial, within};

            fn limits() -> Limits {
                $limits
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory() {
                within(LIMIT, async { super::$story(Trial::memory(limits()).await.unwrap()).await }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory_with_its_journal_on_postgres() {
                if let Some(trial) = Trial::memory_on_postgres(limits()).await {
                    within(LIMIT, super::$story(trial)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_redis() {
                if let Some(trial) = Trial::redis(limits()).await {
                    within(LIMIT, super::$story(trial)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_cluster() {
                if let Some(trial) = Trial::cluster(limits()).await {
                    within(LIMIT, super::$story(trial)).await;
                }
            }
        }
    )*};
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_is_understood_by_both_engines() {
    let (_files, sqlite) = fresh_sqlite(&DOMAIN).await;
    let postgres = fresh_postgres(&DOMAIN).await;
    let databases: Vec<&urr_db::Db> = std::iter::once(&sqlite).chain(&postgres).collect();
    urr_db::check_statements(&databases, &crate::statements()).await.unwrap();
}

on_every_room! {
    the_first_go_in_and_a_free_slot_goes_to_the_one_in_front: Limits { threshold: 2, ..Limits::default() };
    a_thousand_at_once_for_one_slot: Limits { threshold: 10, ..Limits::default() };
    looking_before_acting_lets_too_many_in_and_the_journal_shows_it: Limits { threshold: 10, ..Limits::default() };
    workers_side_by_side_let_nobody_in_twice: Limits { threshold: 40, batch: 7, ..Limits::default() };
    operators_decide: Limits { threshold: 2, ..Limits::default() };
    a_line_that_is_full_says_so: Limits { threshold: 1, max_waiting: 2, ..Limits::default() };
    leaving_gives_up_the_place: Limits::default();
    places_outlive_the_store: Limits { threshold: 2, ..Limits::default() };
    silence_ends_slots_and_places: Limits {
        threshold: 1,
        slot_idle: std::time::Duration::from_secs(2),
        waiting_idle: std::time::Duration::from_secs(2),
        ..Limits::default()
    };
    whoever_is_far_from_the_front_may_be_silent_for_longer: Limits {
        threshold: 1,
        batch: 1,
        waiting_idle: std::time::Duration::from_secs(2),
        ..Limits::default()
    };
    while_nobody_could_show_a_sign_of_life_nobody_falls_silent: Limits {
        threshold: 1,
        slot_idle: std::time::Duration::from_secs(6),
        slot_total: std::time::Duration::from_secs(6),
        waiting_idle: std::time::Duration::from_secs(6),
        ..Limits::default()
    };
    while_no_process_was_there_no_slot_ends: Limits {
        threshold: 1,
        slot_total: std::time::Duration::from_secs(10),
        ..Limits::default()
    };
    what_operators_decided_outlives_the_store: Limits { threshold: 2, ..Limits::default() };
    events_do_not_meet: Limits { threshold: 1, ..Limits::default() };
    a_place_is_good_for_one_slot: Limits { threshold: 1, ..Limits::default() };
    a_turn_uses_up_what_was_promised_before_it: Limits { threshold: 2, ..Limits::default() };
    a_place_stays_used_after_a_turn_further_ahead: Limits { threshold: 1, ..Limits::default() };
    a_place_that_an_older_version_noted_stays_used: Limits { threshold: 1, ..Limits::default() };
    slots_outlive_the_store: Limits { threshold: 2, ..Limits::default() };
    slots_outlive_a_life_that_broke_off_while_it_began: Limits { threshold: 2, ..Limits::default() };
    every_slot_outlives_the_store_however_many_there_are: Limits { threshold: 20_000, ..Limits::default() };
    a_room_that_was_lost_begins_anew_once: Limits { threshold: 1, ..Limits::default() };
    a_room_that_was_lost_is_not_closed_before_its_time: Limits { threshold: 1, ..Limits::default() };
    a_store_that_went_back_in_time_is_not_believed: Limits { threshold: 1, ..Limits::default() };
    a_store_that_is_back_with_old_data_is_found_out_while_nothing_happens: Limits { threshold: 1, ..Limits::default() };
    rooms_that_went_on_without_their_store_go_on: Limits { threshold: 1, ..Limits::default() };
    steps_that_are_on_their_way_are_no_reason_for_doubt: Limits { threshold: 20, ..Limits::default() };
    a_journal_says_where_places_are_from: Limits { threshold: 1, ..Limits::default() };
    a_worker_that_slept_past_its_turn_lets_nobody_in: Limits { threshold: 1, ..Limits::default() };
    a_slot_that_another_process_recorded_is_not_taken_back: Limits { threshold: 1, ..Limits::default() };
    rooms_in_memory_are_one_processes: Limits { threshold: 1, ..Limits::default() };
    what_a_room_begins_with_is_written_when_it_begins: Limits { threshold: 1, ..Limits::default() };
    a_slot_that_cannot_be_recorded_is_the_same_place_again: Limits { threshold: 1, ..Limits::default() };
    a_journal_that_cannot_be_written_is_an_outage: Limits { threshold: 1, ..Limits::default() };
    a_full_line_takes_nobodys_place: Limits { threshold: 1, max_waiting: 2, ..Limits::default() };
    a_room_that_cannot_be_closed_goes_on: Limits { threshold: 1, ..Limits::default() };
    a_clock_that_is_put_back_keeps_nobody_in: Limits { threshold: 1, slot_idle: std::time::Duration::from_secs(2), ..Limits::default() };
}

async fn the_first_go_in_and_a_free_slot_goes_to_the_one_in_front(trial: Trial) {
    let people = trial.people(5);
    trial.arrive(&people).await;
    assert!(trial.is_in(people[0]).await && trial.is_in(people[1]).await);
    for (ahead, user) in people[2..].iter().enumerate() {
        assert_eq!(trial.ahead(*user).await, Some(ahead));
    }
    assert_eq!(trial.room.admit(trial.event).await, Ok(0));
    assert_eq!(trial.room.leave(trial.event, people[0], Why::Left).await, Ok(true));
    assert_eq!(trial.room.leave(trial.event, people[0], Why::Left).await, Ok(false));
    let late = trial.people(1)[0];
    trial.check(late).await;
    assert_eq!(trial.ahead(late).await, Some(3), "nobody slips in while others wait");
    assert_eq!(trial.room.admit(trial.event).await, Ok(1));
    assert!(trial.is_in(people[2]).await);
    assert_eq!(trial.ahead(people[3]).await, Some(0));
    assert_eq!(trial.room.leave(trial.event, people[3], Why::Left).await, Ok(true));
    assert_eq!(trial.standing(people[3]).await, Standing::Absent);
    let report = trial.assert_fair().await;
    assert_eq!((report.admitted, report.joined, report.gone), (3, 4, 2));
}

async fn a_thousand_at_once_for_one_slot(trial: Trial) {
    let first = trial.people(9);
    trial.arrive(&first).await;
    let (crowd, start) = (trial.people(1_000), Arc::new(Barrier::new(1_000)));
    let mut asking = JoinSet::new();
    for user in crowd {
        let (room, event, start) = (Arc::clone(&trial.room), trial.event, Arc::clone(&start));
        asking.spawn(async move {
            start.wait().await;
            room.check(event, user, None).await
        });
    }
    let answers: Vec<Result<Answer, Closed>> = asking.join_all().await;
    let let_in = |answer: &&Result<Answer, Closed>| {
        matches!(answer, Ok(Answer { standing: Standing::Active { .. }, .. }))
    };
    assert_eq!(answers.iter().filter(let_in).count(), 1);
    assert!(answers.iter().all(Result::is_ok));
    let report = trial.assert_fair().await;
    assert_eq!((report.admitted, report.joined, report.most_active), (10, 999, 10));
}

/// The negative control of the story before: a room that is not asked in one step lets too many in, and that is found.
async fn looking_before_acting_lets_too_many_in_and_the_journal_shows_it(trial: Trial) {
    let (crowd, start) = (trial.people(200), Arc::new(Barrier::new(200)));
    trial.room.order(trial.event, Order::Look).await.unwrap();
    let mut asking = JoinSet::new();
    for user in crowd {
        let (room, event, start) = (Arc::clone(&trial.room), trial.event, Arc::clone(&start));
        asking.spawn(async move {
            start.wait().await;
            room.look_then_act(event, user).await.unwrap()
        });
    }
    let admitted = asking.join_all().await.into_iter().filter(|admitted| *admitted).count();
    let report = trial.report().await;
    assert!(admitted > 10, "{admitted}");
    let too_many = |finding: &Finding| matches!(finding.fault, Fault::OverThreshold { threshold: 10, .. });
    assert!(!report.is_fair() && report.findings.iter().any(too_many), "{report:#?}");
}

async fn workers_side_by_side_let_nobody_in_twice(trial: Trial) {
    let people = trial.people(120);
    trial.arrive(&people).await;
    let mut work = JoinSet::new();
    // In memory there is one process; its worker may still be asked twice at once.
    let rooms = match &*trial.room {
        Room::Memory(_) => [Arc::clone(&trial.room), Arc::clone(&trial.room)],
        Room::Redis(_) => [Arc::clone(&trial.room), trial.another().await.unwrap()],
    };
    for room in rooms {
        let event = trial.event;
        work.spawn(async move {
            for _ in 0..10 {
                room.admit(event).await.unwrap();
            }
        });
    }
    let (room, event, leaving) = (Arc::clone(&trial.room), trial.event, people[..40].to_vec());
    work.spawn(async move {
        for user in leaving {
            room.leave(event, user, Why::Bought).await.unwrap();
        }
    });
    work.join_all().await;
    until(LIMIT, async || {
        // A worker that has stopped keeps its lock for a moment.
        trial.room.admit(trial.event).await.unwrap();
        trial.room.order(trial.event, Order::Look).await.unwrap().active == 40
    })
    .await;
    let report = trial.assert_fair().await;
    assert_eq!((report.admitted, report.most_active), (80, 40));
    for user in &people[40..80] {
        assert!(trial.is_in(*user).await, "in the order in which they came");
    }
}

async fn operators_decide(trial: Trial) {
    let people = trial.people(6);
    let order = async |order| trial.room.order(trial.event, order).await.unwrap();
    assert!(order(Order::Pause).await.paused);
    trial.arrive(&people[..3]).await;
    assert_eq!(trial.room.admit(trial.event).await, Ok(0));
    assert_eq!(trial.ahead(people[2]).await, Some(2), "a paused room lets nobody in");
    assert!(!order(Order::Resume).await.paused);
    assert_eq!(trial.room.admit(trial.event).await, Ok(2));
    assert_eq!(order(Order::Threshold(3)).await.threshold, 3);
    assert_eq!(trial.room.admit(trial.event).await, Ok(1));
    let Standing::Active { slot, .. } = trial.standing(people[0]).await else { panic!() };
    trial.arrive(&people[3..4]).await;
    let Standing::Waiting { order: kept, .. } = trial.standing(people[3]).await else { panic!() };
    let before = order(Order::Look).await;
    assert_eq!((before.waiting, before.active, before.epoch), (1, 3, 1));
    let after = order(Order::Clear).await;
    assert_eq!((after.waiting, after.active, after.epoch, after.threshold), (0, 0, 2, 3));
    assert_eq!(trial.standing(people[0]).await, Standing::Absent, "slot {} ended", slot.id);
    order(Order::Threshold(0)).await;
    trial.arrive(&people[4..]).await;
    let old = Some(Promise { order: kept, epoch: Some(1), since: LONG_AGO });
    trial.room.check(trial.event, people[3], old).await.unwrap();
    assert_eq!(trial.ahead(people[3]).await, Some(2), "a ticket from before is void");
    trial.assert_fair().await;
}

async fn a_line_that_is_full_says_so(trial: Trial) {
    let people = trial.people(4);
    trial.arrive(&people[..3]).await;
    assert_eq!(trial.check(people[3]).await, Standing::Full);
    assert_eq!(trial.standing(people[3]).await, Standing::Absent);
    assert!(matches!(trial.check(people[2]).await, Standing::Waiting { ahead: 1, .. }));
    trial.room.leave(trial.event, people[1], Why::Left).await.unwrap();
    assert!(matches!(trial.check(people[3]).await, Standing::Waiting { ahead: 1, .. }));
}

async fn places_outlive_the_store(mut trial: Trial) {
    let people = trial.people(30);
    trial.arrive(&people).await;
    let mut tickets: BTreeMap<UserId, OrderKey> = BTreeMap::new();
    for user in &people[2..] {
        let Standing::Waiting { order, .. } = trial.standing(*user).await else { panic!() };
        tickets.insert(*user, order);
    }
    trial.report().await;
    trial.lose_everything().await;
    // In any order they come back, they stand as they stood.
    for (user, order) in &tickets {
        let promise = Some(Promise { order: *order, epoch: Some(1), since: LONG_AGO });
        trial.room.check(trial.event, *user, promise).await.unwrap();
    }
    let mut places = Vec::new();
    for user in &people[2..] {
        match trial.standing(*user).await {
            Standing::Waiting { order, .. } => assert_eq!(order, tickets[user], "the same place"),
            Standing::Active { slot, .. } => assert_eq!(slot.order, tickets[user]),
            other => panic!("{other:?}"),
        }
        places.extend(trial.ahead(*user).await);
    }
    assert!(places.is_sorted(), "{places:?}");
    trial.assert_fair().await;
}

async fn what_operators_decided_outlives_the_store(mut trial: Trial) {
    trial.room.order(trial.event, Order::Threshold(7)).await.unwrap();
    trial.room.order(trial.event, Order::Pause).await.unwrap();
    trial.room.order(trial.event, Order::Clear).await.unwrap();
    trial.lose_everything().await;
    let totals = trial.room.order(trial.event, Order::Look).await.unwrap();
    assert_eq!((totals.threshold, totals.paused, totals.epoch), (7, true, 2));
}

async fn events_do_not_meet(trial: Trial) {
    let (user, other) = (trial.people(1)[0], trial.ids.next());
    assert!(matches!(trial.check(user).await, Standing::Active { .. }));
    assert_eq!(trial.room.status(other, user).await.unwrap().standing, Standing::Absent);
    let there = trial.room.check(other, user, None).await.unwrap();
    assert!(matches!(there.standing, Standing::Active { .. }));
    let mut events = trial.room.events().await.unwrap();
    events.retain(|event| [trial.event, other].contains(event));
    assert_eq!(events.len(), 2);
}
