//! Behaviour after a loss: of a slot, a room, a second of Redis, a process.

use std::time::Duration;

use urr_db::{Tx, transaction};
use urr_kernel::OrderKey;
use urr_kv::{Arg, Script};

use super::fixture::Fixture;
use crate::{
    journal::{Step, Why, store},
    room::{AdmissionLock, Admissions, Answer, CannotOpen, Closed, Order, Room},
    room_model::UserState,
};

/// A position is good for one slot, whichever token names it, also after the store has lost
/// everything.
pub(super) async fn a_position_is_good_for_one_slot(mut fixture: Fixture) {
    let people = fixture.people(5);
    let [first, cheat, next, last, late] = people[..] else { panic!() };
    fixture.arrive(&[first, cheat]).await;
    let used = fixture.place(cheat).await;
    fixture.room.leave(fixture.event, first, Why::Left).await.unwrap();
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
    assert_eq!(fixture.slot(cheat).await.order, used);
    fixture.room.leave(fixture.event, cheat, Why::Bought).await.unwrap();
    fixture.arrive(&[next, last]).await;
    for (order, epoch) in [(used, Some(1)), (used, None), (OrderKey::new(7).unwrap(), None)] {
        let state = fixture.come_with(cheat, order, epoch).await;
        assert!(matches!(state, UserState::Waiting { ahead: 1, .. }), "behind the last user: {state:?}");
        fixture.room.leave(fixture.event, cheat, Why::Left).await.unwrap();
    }

    assert_eq!(fixture.come_back(cheat, used).await, UserState::Absent, "no new position as a substitute");

    let positions = [fixture.place(last).await, used];
    fixture.room.settle(fixture.event).await.unwrap();
    fixture.lose_everything().await;
    assert_eq!(fixture.come_back(cheat, used).await, UserState::Absent, "also after the store lost its data");
    for (user, order) in [(last, positions[0]), (cheat, positions[1])] {
        fixture.come_with(user, order, Some(1)).await;
    }
    assert_eq!(fixture.ahead(last).await, Some(0), "the ticket still holds");
    assert_eq!(fixture.ahead(cheat).await, Some(1));

    // Clearing ends slots too.
    let used = fixture.slot(next).await.order;
    let place = fixture.place(last).await;
    fixture.room.order(fixture.event, Order::Clear).await.unwrap();
    assert_eq!(
        fixture.come_back(last, place).await,
        UserState::Absent,
        "a ticket from before the clear is void"
    );
    fixture.arrive(&[last, late]).await;
    fixture.come_with(next, used, None).await;
    assert_eq!(fixture.ahead(next).await, Some(1));
    fixture.assert_fair().await;
}

/// Slots keep their ids, so entry tokens stay valid.
pub(super) async fn slots_survive_a_loss_of_the_store(mut fixture: Fixture) {
    let people = fixture.people(5);
    fixture.arrive(&people[..4]).await;
    fixture.room.leave(fixture.event, people[0], Why::Left).await.unwrap();
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
    let slots = [fixture.slot(people[1]).await, fixture.slot(people[2]).await];
    let place = fixture.place(people[3]).await;
    for life in 1..=2 {
        fixture.room.settle(fixture.event).await.unwrap();
        fixture.lose_everything().await;
        let found = [fixture.slot(people[1]).await, fixture.slot(people[2]).await];
        assert_eq!(
            found.map(|slot| (slot.id, slot.order, slot.since)),
            slots.map(|slot| (slot.id, slot.order, slot.since)),
            "after loss {life}"
        );
        assert_eq!(fixture.state(people[0]).await, UserState::Absent, "a slot that ended stays ended");
    }
    fixture.come_with(people[3], place, Some(1)).await;
    assert_eq!(fixture.ahead(people[3]).await, Some(0), "no admission above the threshold");
    fixture.room.leave(fixture.event, people[1], Why::Bought).await.unwrap();
    urr_testkit::until(super::LIMIT, async || {
        // The lock of a stopped worker takes a moment to expire.
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.is_in(people[3]).await
    })
    .await;
    let totals = fixture.room.order(fixture.event, Order::Look).await.unwrap();
    assert_eq!((totals.active, totals.waiting), (2, 0));
    let report = fixture.assert_fair().await;
    assert_eq!((report.admitted, report.most_active), (4, 2), "a restored slot is counted once");

    // Slots that an operator cleared are not restored.
    fixture.room.order(fixture.event, Order::Clear).await.unwrap();
    fixture.lose_everything().await;
    assert_eq!(fixture.state(people[2]).await, UserState::Absent);
    fixture.assert_fair().await;
}

/// Many requests detect the loss at once, and only one new generation begins.
pub(super) async fn a_lost_room_is_reopened_once(mut fixture: Fixture) {
    if fixture.kv.is_none() {
        return;
    }
    let user = fixture.people(1)[0];
    fixture.check(user).await;
    for generation in 2..40 {
        fixture.lose_everything().await;
        let (rooms, event) =
            ([fixture.another().await.unwrap(), std::sync::Arc::clone(&fixture.room)], fixture.event);
        let mut looking = tokio::task::JoinSet::new();
        for room in rooms.iter().cycle().take(40) {
            let room = std::sync::Arc::clone(room);
            looking.spawn(async move {
                for _ in 0..3 {
                    room.order(event, Order::Look).await.unwrap();
                }
            });
        }
        looking.join_all().await;
        let life = fixture.db.read("test.life", async |tx: &mut Tx<'_>| store::life(tx, event).await);
        let life: Result<Option<store::Life>, urr_db::Error> = life.await;
        assert_eq!(life.unwrap().map(|life| life.generation), Some(generation));
    }
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(0));
    assert!(fixture.is_in(user).await);
    fixture.assert_fair().await;
}

/// A lost room is not closed early: its users still get their positions back during the grace
/// period.
pub(super) async fn a_lost_room_is_not_closed_early(mut fixture: Fixture) {
    let (Room::Redis(_), people) = (&*fixture.room, fixture.people(2)) else { return };
    fixture.arrive(&people).await;
    fixture.room.settle(fixture.event).await.unwrap();
    fixture.lose_everything().await;
    let close = async |idle| fixture.room.close(fixture.event, 1, idle).await;
    assert_eq!(close(Duration::from_mins(1)).await, Ok(false), "it was in use a moment ago");
    assert_eq!(close(Duration::ZERO).await, Ok(true));
}

/// A worker that was frozen for longer than its lock lasts must not act on what it read before.
pub(super) async fn a_worker_without_the_lock_admits_no_users(fixture: Fixture) {
    static LAPSE: Script = Script::new("test.lapse", "return redis.call('DEL', KEYS[1])");
    let Some(kv) = &fixture.kv else { return };
    let (event, lock) = (fixture.event, [format!("admission:lock:{{{}}}", fixture.event)]);
    let lapse = async || kv.run(&LAPSE, &lock, &[] as &[Arg<'_>]).await.unwrap();
    let free = async |user| fixture.room.leave(event, user, Why::Left).await.unwrap();
    let people = fixture.people(4);
    fixture.arrive(&people).await;
    let (frozen, other) = (&fixture.room, fixture.another().await.unwrap());
    let before = frozen.turn(event).await.unwrap();
    assert_eq!(other.turn(event).await, Ok(AdmissionLock::Others));

    lapse().await;
    let turn = other.turn(event).await.unwrap();
    assert!(matches!(turn, AdmissionLock::Ours { .. }) && turn != before, "{before:?}, then {turn:?}");
    free(people[0]).await;
    assert_eq!(frozen.work(event, &before, Admissions::Open).await, Ok(0), "another worker holds the lock");
    assert_eq!(other.work(event, &turn, Admissions::Open).await, Ok(1));
    free(people[1]).await;
    lapse().await;
    assert_eq!(
        frozen.work(event, &before, Admissions::Open).await,
        Ok(0),
        "the lock is free, but this epoch is over"
    );
    assert_eq!(frozen.admit(event).await, Ok(1), "a worker that reads again may admit");
    free(people[2]).await;
    assert_eq!(
        frozen.work(event, &before, Admissions::Open).await,
        Ok(0),
        "it holds the lock in another epoch"
    );
    assert_eq!(frozen.admit(event).await, Ok(1));
    assert!(fixture.is_in(people[3]).await);
    fixture.assert_fair().await;
}

/// One process fails to record a slot that another has recorded meanwhile: its owner may have it
/// already.
pub(super) async fn a_slot_that_another_process_recorded_is_not_taken_back(fixture: Fixture) {
    let Room::Redis(room) = &*fixture.room else { return };
    let user = fixture.people(1)[0];
    fixture.check(user).await;
    let slot = fixture.slot(user).await;
    assert_eq!(room.know(fixture.event, &user.to_string(), &slot.id.to_string(), false).await, Ok(false));
    assert_eq!(fixture.slot(user).await.id, slot.id);
    fixture.assert_fair().await;
}

pub(super) async fn rooms_in_memory_belong_to_one_process(mut fixture: Fixture) {
    let (user, other) = (fixture.people(1)[0], fixture.ids.next());
    fixture.check(user).await;
    let second = fixture.another().await;
    if fixture.kv.is_some() || fixture.db.engine() == urr_db::EngineKind::Sqlite {
        // Rooms in Redis are shared; the directory of an embedded database is locked.
        assert!(second.is_ok());
        return;
    }
    let Err(refused) = second else { panic!("two processes opened the same rooms") };
    assert!(matches!(refused, CannotOpen::InUse), "{refused:?}");
    assert!(refused.to_string().contains("another process keeps the waiting rooms"), "{refused}");

    // A process frozen for so long that another took over writes nothing more and stops.
    let (frozen, tasks) = (std::sync::Arc::clone(&fixture.room), fixture.tasks.clone());
    let forget = async |tx: &mut Tx<'_>| {
        urr_db::statements! { TAKEN = postgres "update leases set expires_at = clock_timestamp(), owner = $1"; }
        tx.execute(&TAKEN, &[&uuid::Uuid::nil()]).await
    };
    let forgotten: Result<u64, urr_db::Error> = fixture.db.write("test.freeze", forget).await;
    forgotten.unwrap();
    fixture.tasks = urr_jobs::Tasks::new();
    fixture.room = fixture.another().await.unwrap();
    assert_eq!(frozen.check(other, user, None).await, Err(Closed));
    let stopping = tasks.token();
    tokio::select! {
        told = frozen.leave(fixture.event, user, Why::Left) => assert_eq!(told, Err(Closed)),
        () = stopping.cancelled() => {}
    }
    urr_testkit::until(super::LIMIT, async || tasks.failed().is_some()).await;
    assert!(fixture.is_in(user).await);
    fixture.assert_fair().await;
}

/// A crash right after the room opened must not lose an operator's decision.
pub(super) async fn initial_state_is_written_when_a_room_opens(fixture: Fixture) {
    fixture.room.order(fixture.event, Order::Threshold(7)).await.unwrap();
    fixture.room.order(fixture.event, Order::Pause).await.unwrap();
    assert_eq!(fixture.room.close(fixture.event, 1, Duration::ZERO).await, Ok(true));
    let (event, now) = (fixture.event, fixture.clock.now());
    let begun: Result<store::RoomRecord, urr_db::Error> =
        transaction!(fixture.db, "test.begin", async |tx: &mut Tx<'_>| {
            store::begin(tx, event, 1, now).await
        });
    let written =
        fixture.db.read("test.begun", async |tx: &mut Tx<'_>| store::after(tx, event, 2, 0, 10).await);
    let written: Result<Vec<_>, urr_db::Error> = written.await;
    let steps: Vec<Step> = written.unwrap().iter().map(|entry| entry.step).collect();
    assert_eq!(steps, [Step::Threshold { threshold: 7 }, Step::Paused]);
    assert_eq!(begun.unwrap().entries.len(), 2);
}

/// When the database does not accept a slot, its owner does not learn of it and, in Redis, returns
/// to the line. No other user is admitted first.
pub(super) async fn an_unrecorded_slot_returns_its_owner_to_the_line(fixture: Fixture) {
    urr_db::statements! {
        HIDE = "alter table journal rename to journal_away";
        SHOW = "alter table journal_away rename to journal";
    }
    let [first, second] = fixture.people(2)[..] else { panic!() };
    fixture.room.order(fixture.event, Order::Look).await.unwrap();
    fixture.room.settle(fixture.event).await.unwrap();
    fixture.rename(&HIDE).await;
    let began = fixture.clock.ticks();
    assert_eq!(
        fixture.room.check(fixture.event, first, None).await,
        Err(Closed),
        "a free slot that cannot be recorded is not given"
    );
    let second_told = fixture.room.check(fixture.event, second, None).await;
    assert!(!matches!(second_told, Ok(Answer { state: UserState::Active { .. }, .. })), "{second_told:?}");
    let took = fixture.clock.ticks().saturating_sub(began);
    assert!(took < Duration::from_secs(20), "the answer took {took:?}");
    fixture.rename(&SHOW).await;

    urr_testkit::until(super::LIMIT, async || fixture.room.status(fixture.event, first).await.is_ok()).await;
    let place = match fixture.state(first).await {
        UserState::Waiting { order, ahead: 0 } => order,
        // In memory a decided step is written as soon as the database accepts it.
        UserState::Active { slot, .. } if fixture.kv.is_none() => slot.order,
        other => panic!("{other:?}"),
    };
    fixture.check(second).await;
    urr_testkit::until(super::LIMIT, async || {
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.is_in(first).await
    })
    .await;
    assert_eq!(fixture.slot(first).await.order, place, "with the same position");
    assert_eq!(fixture.ahead(second).await, Some(0));
    fixture.assert_fair().await;
    if fixture.kv.is_some() {
        let returned = Step::Returned { user: first, order: place };
        assert!(
            fixture.entries().await.iter().any(|entry| entry.step == returned),
            "the journal has the return"
        );
    }
}

/// Reported by `outage` for as long as it lasts.
pub(super) async fn a_failing_journal_is_reported_as_outage(fixture: Fixture) {
    urr_db::statements! {
        HIDE = "alter table journal rename to journal_away";
        SHOW = "alter table journal_away rename to journal";
    }
    let [first, second] = fixture.people(2)[..] else { panic!() };
    let quiet = fixture.ids.next();
    fixture.check(first).await;
    fixture.room.check(quiet, second, None).await.unwrap();
    fixture.room.leave(quiet, second, Why::Left).await.unwrap();
    fixture.room.settle(quiet).await.unwrap();
    assert_eq!(fixture.room.outage(), None);
    fixture.rename(&HIDE).await;
    let left = fixture.room.leave(fixture.event, first, Why::Left).await;
    assert_eq!(left.is_err(), fixture.kv.is_none(), "in Redis the step is copied later");
    assert_eq!(fixture.room.admit(fixture.event).await, Err(Closed));
    let began = fixture.room.outage().unwrap();
    urr_testkit::until(super::LIMIT, async || {
        assert_eq!(fixture.room.admit(fixture.event).await, Err(Closed));
        // Another room that has nothing to write does not end the outage, nor does listing the
        // rooms.
        fixture.room.settle(quiet).await.unwrap();
        assert!(fixture.room.events().await.unwrap().contains(&fixture.event));
        fixture.room.outage().unwrap() > began + Duration::from_secs(1)
    })
    .await;
    fixture.rename(&SHOW).await;
    urr_testkit::until(super::LIMIT, async || fixture.room.admit(fixture.event).await.is_ok()).await;
    assert_eq!(fixture.room.outage(), None);
    assert!(matches!(fixture.check(second).await, UserState::Active { .. }));
    fixture.assert_fair().await;
}

/// A ticket restores its position even if the line is full meanwhile.
pub(super) async fn a_ticket_restores_its_position_in_a_full_line(fixture: Fixture) {
    let people = fixture.people(5);
    fixture.arrive(&people[..3]).await;
    let place = fixture.place(people[1]).await;
    fixture.room.leave(fixture.event, people[1], Why::Idle).await.unwrap();
    fixture.arrive(&people[3..4]).await;
    assert_eq!(fixture.check(people[4]).await, UserState::Full);
    let back = fixture.come_with(people[1], place, Some(1)).await;
    assert_eq!(back, UserState::Waiting { order: place, ahead: 0 });
    assert_eq!(fixture.check(people[4]).await, UserState::Full, "newcomers are still refused");
    fixture.assert_fair().await;
}

/// An empty room whose close cannot be written stays open.
pub(super) async fn a_room_that_cannot_be_closed_stays_open(fixture: Fixture) {
    urr_db::statements! {
        HIDE = "alter table rooms rename to rooms_away";
        SHOW = "alter table rooms_away rename to rooms";
    }
    let [user] = fixture.people(1)[..] else { panic!() };
    fixture.room.order(fixture.event, Order::Threshold(3)).await.unwrap();
    fixture.room.settle(fixture.event).await.unwrap();
    fixture.rename(&HIDE).await;
    assert_eq!(fixture.room.close(fixture.event, 1, Duration::ZERO).await, Err(Closed));
    fixture.rename(&SHOW).await;
    assert!(matches!(fixture.check(user).await, UserState::Active { .. }));
    fixture.assert_fair().await;
}

/// Redis's clock goes back by ten minutes: a slot still ends on time.
pub(super) async fn a_clock_set_back_does_not_extend_slots(fixture: Fixture) {
    static PUT_BACK: Script = Script::new(
        "test.put_back",
        "redis.call('HINCRBY', KEYS[1], 'noticed', ARGV[1]) return redis.call('ZINCRBY', KEYS[2], ARGV[1], ARGV[2])",
    );
    let Some(kv) = &fixture.kv else { return };
    let people = fixture.people(2);
    fixture.arrive(&people).await;
    let keys = ["room", "active"].map(|name| format!("{{{}}}:{name}", fixture.event));
    let (by, inside) = ("600000000", people[0].to_string());
    kv.run(&PUT_BACK, &keys, &[Arg::from(by), Arg::from(inside.as_str())]).await.unwrap();
    urr_testkit::until(super::LIMIT, async || {
        fixture.room.admit(fixture.event).await.unwrap();
        fixture.is_in(people[1]).await
    })
    .await;
    fixture.assert_fair().await;
}
