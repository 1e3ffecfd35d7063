//! Behaviour of every counter store: memory on both engines, Redis, Redis Cluster, DynamoDB.

mod clocks;
mod fixture;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::task::JoinSet;
use urr_contracts::vwr::{Action, Error, Order};
use urr_db::Tx;
use urr_kernel::{EventId, OrderKey, UserId};
use urr_kv::{Arg, Script};
use urr_testkit::{STORY_LIMIT, until, within};
use uuid::Uuid;

use self::{
    clocks::a_clock_set_back_does_not_stop_admissions,
    fixture::{Fixture, Store},
};
use super::LeaseOutcome;
use crate::{
    Failure,
    store::{self, CommandSource},
};

const NOBODY: Order = Order::Activate { rate: None, fail_open: None };

fn refusal(outcome: Result<impl std::fmt::Debug, Failure>) -> Error {
    match outcome.unwrap_err() {
        Failure::Refused(error) => error,
        other @ Failure::Failed { .. } => panic!("{other:?}"),
    }
}

async fn positions_are_unique_and_ordered(fixture: Fixture) {
    fixture.open(50).await;
    // In memory only one process is supported; the database still keeps a second one from giving
    // the same positions.
    let others = [Arc::clone(&fixture.counters), fixture.another()];
    let mut tasks = JoinSet::new();
    for turn in 0..60_u64 {
        let (counters, event) = (Arc::clone(&others[usize::from(turn % 2 == 1)]), fixture.event);
        tasks.spawn(async move {
            let count = turn % 7 * 50 + 1;
            (counters.add(event, count).await.unwrap().first, count)
        });
    }
    let mut given = BTreeSet::new();
    while let Some(block) = tasks.join_next().await {
        let (first, count) = block.unwrap();
        assert!((first..first + count).all(|place| given.insert(place)), "position {first} was given twice");
    }
    if fixture.is_shared() {
        assert_eq!(given.last(), Some(&u64::try_from(given.len()).unwrap()), "no position is skipped");
    }
    let last = *given.last().unwrap();
    assert!(fixture.add(1).await > last || !fixture.is_shared());
    assert!(fixture.look().await.tail >= last);
}

async fn a_single_process_skips_no_position(fixture: Fixture) {
    fixture.open(50).await;
    let mut next = 1;
    for count in [1, 999, 1, 2_500, 400, 1_000] {
        assert_eq!(fixture.add(count).await, next);
        next += count;
    }
    assert_eq!(fixture.look().await.tail, next - 1);
}

async fn a_loss_skips_positions_and_repeats_none(mut fixture: Fixture) {
    fixture.open(0).await;
    let mut last = 0;
    for _ in 0..4 {
        let first = fixture.add(700).await;
        assert!(first > last);
        last = first + 699;
        let served = fixture.order(Order::Advance { batch: 100 }).await.room.serving;
        fixture.lose_everything().await;
        let room = fixture.look().await;
        assert!(room.tail >= last && room.serving >= served, "{room:?}");
        assert!((room.rate, room.active) == (0, true), "operator decisions survive: {room:?}");
    }
}

async fn a_shutdown_leaves_no_gap(mut fixture: Fixture) {
    fixture.open(0).await;
    let mut next = 1;
    for _ in 0..3 {
        // Fast enough that more positions are reserved than requested.
        for _ in 0..40 {
            assert_eq!(fixture.add(1).await, next);
            next += 1;
        }
        fixture.counters.settle().await.unwrap();
        fixture.counters = fixture.another();
        assert_eq!(fixture.look().await.tail, next - 1, "the tail counts given positions only");
    }
    assert_eq!(fixture.add(1).await, next);
    fixture.counters.settle().await.unwrap();
    assert_eq!(fixture.add(1).await, next + 1, "late arrivals are still counted");
}

/// In memory: a killed process. Unused reservations of a rush are released at the next advance.
async fn a_crash_skips_positions_only_in_a_rush(mut fixture: Fixture) {
    if fixture.is_shared() {
        return;
    }
    fixture.open(0).await;
    let worker = fixture.ids.next();
    let (mut last, mut term) = (0, None);
    for _ in 0..3 {
        for _ in 0..100 {
            last += 1;
            assert_eq!(fixture.add(1).await, last);
        }
        let LeaseOutcome::Ours { term: told, room } = fixture.turn(worker, term).await else {
            panic!("there is no other worker")
        };
        (term, last) = (Some(told), room.tail);
        fixture.lose_everything().await;
        assert_eq!(fixture.look().await.tail, last, "unused reservations were released");
    }
    for _ in 0..100 {
        last += 1;
        assert_eq!(fixture.add(1).await, last);
    }
    fixture.lose_everything().await;
    let first = fixture.add(1).await;
    // A block is at most twice the previous one, so at most as many are skipped as were given.
    assert!(first > last && first <= last + 101, "{first} after {last}");
}

/// A row read before the latest reservation must not be taken for another process's change.
async fn a_stale_read_does_not_skip_positions(fixture: Fixture) {
    fixture.open(0).await;
    let (counters, worker) = (Arc::clone(&fixture.counters), fixture.ids.next());
    let done = Arc::new(AtomicBool::new(false));
    let mut looks = JoinSet::new();
    for _ in 0..2 {
        let (counters, done) = (Arc::clone(&counters), Arc::clone(&done));
        looks.spawn(async move {
            while !done.load(Relaxed) {
                counters.look().await.unwrap();
            }
        });
    }
    let mut term = None;
    for next in 1..=200 {
        assert_eq!(fixture.add(1).await, next, "no position is skipped");
        if next % 5 == 0 {
            let LeaseOutcome::Ours { term: told, .. } = fixture.turn(worker, term).await else { continue };
            term = Some(told);
        }
    }
    done.store(true, Relaxed);
    looks.join_all().await;
    assert_eq!(fixture.look().await.tail, 200);
}

/// A lagging replica is promoted. Positions given by this or another process are not repeated.
async fn an_outdated_store_repeats_no_position(fixture: Fixture) {
    static GO_BACK: Script = Script::new(
        "test.go_back",
        "return redis.call('HSET', KEYS[1], 'tail', ARGV[1], 'serving', ARGV[2], 'reserved', ARGV[3])",
    );
    let Store::Redis(kv) = &fixture.store else { return };
    fixture.open(0).await;
    let (other, key) = (fixture.another(), format!("{{{}}}:vwr", fixture.event));
    let (mut last, mut served) = (0, 0);
    for whoever_asks_first in [&other, &fixture.counters] {
        for (counters, count) in [(&fixture.counters, 950), (&other, 100)] {
            let first = counters.add(fixture.event, count).await.unwrap().first;
            assert!(first > last, "{first} was given before");
            last = first + count - 1;
        }
        served = fixture.order(Order::Advance { batch: 500 }).await.room.serving.max(served);
        // The last arrivals are lost, and with them the record of the latest reservation.
        let back =
            [last - 120, served - 10, last - 60].map(|number| Arg::from(i64::try_from(number).unwrap()));
        kv.run(&GO_BACK, std::slice::from_ref(&key), &back).await.unwrap();
        whoever_asks_first.look().await.unwrap();
        let room = fixture.look().await;
        assert!(room.serving >= served, "{room:?}");
        let next = fixture.add(1).await;
        assert!(next > last, "{next} was given before: {last} were");
        last = next;
    }
}

async fn more_rooms_than_one_page_are_all_read(fixture: Fixture) {
    let now = fixture.clock.now();
    let event = |number: u128| EventId::from_uuid(Uuid::from_u128(number));
    let written: Result<(), Failure> =
        urr_db::transaction!(fixture.db, "test.rooms", async |tx: &mut Tx<'_>| {
            for number in 1..=1_200 {
                store::insert(tx, &super::unopened(event(number), now)).await?;
            }
            Ok::<_, Failure>(())
        });
    written.unwrap();
    let rooms = fixture.counters.look().await.unwrap();
    assert_eq!(rooms.len(), 1_200);
    assert!(rooms.iter().any(|room| room.event == event(1_200) && room.active));
}

async fn the_serving_counter_is_monotonic_and_bounded_by_the_tail(fixture: Fixture) {
    fixture.open(1_000_000).await;
    let worker = fixture.ids.next();
    let LeaseOutcome::Ours { term, room } = fixture.turn(worker, None).await else {
        panic!("there is no other worker")
    };
    assert_eq!(room.serving, 0, "no visitor waits");
    fixture.add(500).await;
    let mut serving = 0;
    until(STORY_LIMIT, async || {
        let LeaseOutcome::Ours { room, .. } = fixture.turn(worker, Some(term)).await else { return false };
        assert!(room.serving >= serving && room.serving <= 500, "{room:?}");
        serving = room.serving;
        serving == 500
    })
    .await;
    assert_eq!(fixture.look().await.serving, 500);
    for order in [Order::Pause, Order::Rate { rate: 0 }] {
        fixture.order(order).await;
        fixture.add(10).await;
        let before = fixture.look().await.serving;
        fixture.turn(worker, Some(term)).await;
        assert_eq!(fixture.look().await.serving, before, "{order:?}");
    }
    fixture.order(Order::Rate { rate: 1_000_000 }).await;
    fixture.turn(worker, Some(term)).await;
    assert_eq!(fixture.look().await.serving, 500, "still paused");
    fixture.order(Order::Resume).await;
    until(STORY_LIMIT, async || {
        fixture.turn(worker, Some(term)).await;
        fixture.look().await.serving == 520
    })
    .await;
}

async fn admissions_follow_the_rate(fixture: Fixture) {
    fixture.open(200).await;
    fixture.add(100_000).await;
    let (worker, started) = (fixture.ids.next(), fixture.clock.ticks());
    let mut term = None;
    let mut served = 0;
    until(STORY_LIMIT, async || {
        let LeaseOutcome::Ours { term: told, room } = fixture.turn(worker, term).await else { return false };
        (term, served) = (Some(told), room.serving);
        served >= 300
    })
    .await;
    let took = fixture.clock.ticks().saturating_sub(started).as_secs_f64();
    let most = crate::rules::as_float(served) / (took + 0.5);
    assert!(most <= 200.0, "{served} in {took} s");
}

async fn only_the_lease_holder_admits(fixture: Fixture) {
    fixture.open(1).await;
    let (frozen, other) = (fixture.ids.next(), fixture.ids.next());
    let LeaseOutcome::Ours { term, .. } = fixture.turn(frozen, None).await else {
        panic!("there is no other worker")
    };
    assert_eq!(fixture.turn(other, None).await, LeaseOutcome::Theirs);
    assert!(
        matches!(fixture.turn(frozen, Some(term)).await, LeaseOutcome::Ours { term: again, .. } if again == term)
    );
    assert_eq!(fixture.turn(frozen, Some(term + 1)).await, LeaseOutcome::Theirs, "an unknown term");
    let mut next = None;
    until(STORY_LIMIT, async || {
        if let LeaseOutcome::Ours { term, .. } = fixture.turn(other, None).await {
            next = Some(term);
        }
        next.is_some()
    })
    .await;
    assert_eq!(next, Some(term + 1));
    assert_eq!(fixture.turn(frozen, Some(term)).await, LeaseOutcome::Theirs);
}

async fn reopening_restarts_positions_and_closed_rooms_give_none(fixture: Fixture) {
    let first = fixture.open(50).await;
    assert_eq!(
        (first.epoch, first.tail, first.serving, first.active, first.fail_open),
        (1, 0, 0, true, false)
    );
    fixture.add(30).await;
    let advanced = fixture.order(Order::Advance { batch: 20 }).await;
    assert_eq!((advanced.advanced, advanced.room.serving, advanced.room.tail), (20, 20, 30));
    let advanced = fixture.order(Order::Advance { batch: 20 }).await;
    assert_eq!((advanced.advanced, advanced.room.serving), (10, 30));
    assert_eq!(fixture.order(Order::Advance { batch: 20 }).await.advanced, 0);
    let same = fixture.order(NOBODY).await.room;
    assert_eq!(
        (same.epoch, same.tail, same.serving, same.rate),
        (1, 30, 30, 50),
        "a repeated command changes nothing"
    );
    fixture.order(Order::Deactivate).await;
    assert_eq!(refusal(fixture.counters.add(fixture.event, 1).await), Error::NotActive);
    assert!(!fixture.look().await.active, "closed rooms stay listed");
    let again = fixture.order(Order::Activate { rate: None, fail_open: Some(true) }).await.room;
    assert_eq!((again.epoch, again.tail, again.serving, again.rate, again.fail_open), (2, 0, 0, 50, true));
    assert!(again.opened_at > first.opened_at);
    assert_eq!(fixture.add(1).await, 1);
    // A process whose clock is behind still opens after the previous opening.
    fixture.order(Order::Deactivate).await;
    let by = CommandSource {
        id: fixture.ids.next(),
        actor: None,
        at: first.opened_at.before(Duration::from_mins(10)),
    };
    let late = fixture.counters.order(fixture.event, NOBODY, by).await.unwrap().room;
    assert!(OrderKey::at(late.opened_at) > OrderKey::counted(again.opened_at, 1));
}

async fn every_command_is_recorded_and_visible_to_other_processes(fixture: Fixture) {
    assert_eq!(refusal(fixture.try_order(Order::Pause, None).await), Error::RoomNotFound);
    let operator: UserId = fixture.ids.next();
    let other = fixture.another();
    for order in [
        Order::Activate { rate: Some(7), fail_open: None },
        Order::Pause,
        Order::Resume,
        Order::Rate { rate: 9 },
        Order::Advance { batch: 5 },
        Order::Deactivate,
    ] {
        let ordered = fixture.try_order(order, Some(operator)).await.unwrap();
        let seen = other.look().await.unwrap();
        let seen = seen.iter().find(|room| room.event == fixture.event).unwrap();
        assert_eq!(
            (seen.active, seen.paused, seen.rate, seen.epoch),
            (ordered.room.active, ordered.room.paused, ordered.room.rate, ordered.room.epoch),
            "{order:?}"
        );
    }
    let event = fixture.event;
    let actions =
        fixture.db.read("test.actions", async |tx: &mut Tx<'_>| store::actions(tx, event, 100).await);
    let actions: Result<Vec<Action>, urr_db::Error> = actions.await;
    let actions = actions.unwrap();
    assert!(actions.iter().all(|action| action.actor == Some(operator)));
    let words: Vec<(&str, Option<i64>)> =
        actions.iter().rev().map(|action| (action.what.as_str(), action.number)).collect();
    let expected = [
        ("activate", Some(7)),
        ("pause", None),
        ("resume", None),
        ("rate", Some(9)),
        ("advance", Some(5)),
        ("deactivate", None),
    ];
    assert_eq!(words, expected);
}

macro_rules! on_every_store {
    ($($story:ident,)*) => {
        mod memory { $(#[tokio::test(flavor = "multi_thread")] async fn $story() { super::told(super::Fixture::memory(), super::$story).await; })* }
        mod memory_on_postgres { $(#[tokio::test(flavor = "multi_thread")] async fn $story() { super::told(super::Fixture::memory_on_postgres(), super::$story).await; })* }
        mod redis { $(#[tokio::test(flavor = "multi_thread")] async fn $story() { super::told(super::Fixture::redis(), super::$story).await; })* }
        #[cfg(feature = "aws")]
        mod dynamo_db { $(#[tokio::test(flavor = "multi_thread")] async fn $story() { super::told(super::Fixture::dynamo_db(), super::$story).await; })* }
        mod cluster { $(#[tokio::test(flavor = "multi_thread")] async fn $story() { super::told(super::Fixture::cluster(), super::$story).await; })* }
    };
}

on_every_store! {
    positions_are_unique_and_ordered,
    a_single_process_skips_no_position,
    a_loss_skips_positions_and_repeats_none,
    a_shutdown_leaves_no_gap,
    a_crash_skips_positions_only_in_a_rush,
    a_stale_read_does_not_skip_positions,
    an_outdated_store_repeats_no_position,
    more_rooms_than_one_page_are_all_read,
    the_serving_counter_is_monotonic_and_bounded_by_the_tail,
    admissions_follow_the_rate,
    only_the_lease_holder_admits,
    a_clock_set_back_does_not_stop_admissions,
    reopening_restarts_positions_and_closed_rooms_give_none,
    every_command_is_recorded_and_visible_to_other_processes,
}

async fn told(fixture: impl Future<Output = Option<Fixture>>, story: impl AsyncFnOnce(Fixture)) {
    if let Some(fixture) = fixture.await {
        within(STORY_LIMIT, story(fixture)).await;
    }
}
