//! Behaviour after a loss: of a slot, a room, a second of Redis, a process.

use std::time::Duration;

use urr_db::{Tx, transaction};
use urr_kernel::OrderKey;
use urr_kv::{Arg, Script};

use super::trial::Trial;
use crate::{
    hall::Standing,
    journal::{Step, Why, store},
    room::{Answer, CannotOpen, Closed, Door, Order, Room, Turn},
};

/// A position is good for one slot, whichever token names it, also after the store has lost
/// everything.
pub(super) async fn a_position_is_good_for_one_slot(mut trial: Trial) {
    let people = trial.people(5);
    let [first, cheat, next, last, late] = people[..] else { panic!() };
    trial.arrive(&[first, cheat]).await;
    let used = trial.place(cheat).await;
    trial.room.leave(trial.event, first, Why::Left).await.unwrap();
    assert_eq!(trial.room.admit(trial.event).await, Ok(1));
    assert_eq!(trial.slot(cheat).await.order, used);
    trial.room.leave(trial.event, cheat, Why::Bought).await.unwrap();
    trial.arrive(&[next, last]).await;
    for (order, epoch) in [(used, Some(1)), (used, None), (OrderKey::new(7).unwrap(), None)] {
        let standing = trial.come_with(cheat, order, epoch).await;
        assert!(matches!(standing, Standing::Waiting { ahead: 1, .. }), "behind the last user: {standing:?}");
        trial.room.leave(trial.event, cheat, Why::Left).await.unwrap();
    }

    assert_eq!(trial.come_back(cheat, used).await, Standing::Absent, "no new position as a substitute");

    let places = [trial.place(last).await, used];
    trial.room.settle(trial.event).await.unwrap();
    trial.lose_everything().await;
    assert_eq!(trial.come_back(cheat, used).await, Standing::Absent, "also after the store lost its data");
    for (user, order) in [(last, places[0]), (cheat, places[1])] {
        trial.come_with(user, order, Some(1)).await;
    }
    assert_eq!(trial.ahead(last).await, Some(0), "the ticket still holds");
    assert_eq!(trial.ahead(cheat).await, Some(1));

    // Clearing ends slots too.
    let used = trial.slot(next).await.order;
    let place = trial.place(last).await;
    trial.room.order(trial.event, Order::Clear).await.unwrap();
    assert_eq!(
        trial.come_back(last, place).await,
        Standing::Absent,
        "a ticket from before the clear is void"
    );
    trial.arrive(&[last, late]).await;
    trial.come_with(next, used, None).await;
    assert_eq!(trial.ahead(next).await, Some(1));
    trial.assert_fair().await;
}

/// Slots keep their ids, so entry tokens stay valid.
pub(super) async fn slots_survive_a_loss_of_the_store(mut trial: Trial) {
    let people = trial.people(5);
    trial.arrive(&people[..4]).await;
    trial.room.leave(trial.event, people[0], Why::Left).await.unwrap();
    assert_eq!(trial.room.admit(trial.event).await, Ok(1));
    let slots = [trial.slot(people[1]).await, trial.slot(people[2]).await];
    let place = trial.place(people[3]).await;
    for life in 1..=2 {
        trial.room.settle(trial.event).await.unwrap();
        trial.lose_everything().await;
        let found = [trial.slot(people[1]).await, trial.slot(people[2]).await];
        assert_eq!(
            found.map(|slot| (slot.id, slot.order, slot.since)),
            slots.map(|slot| (slot.id, slot.order, slot.since)),
            "after loss {life}"
        );
        assert_eq!(trial.standing(people[0]).await, Standing::Absent, "a slot that ended stays ended");
    }
    trial.come_with(people[3], place, Some(1)).await;
    assert_eq!(trial.ahead(people[3]).await, Some(0), "no admission above the threshold");
    trial.room.leave(trial.event, people[1], Why::Bought).await.unwrap();
    urr_testkit::until(super::LIMIT, async || {
        // The lock of a stopped worker takes a moment to expire.
        trial.room.admit(trial.event).await.unwrap();
        trial.is_in(people[3]).await
    })
    .await;
    let totals = trial.room.order(trial.event, Order::Look).await.unwrap();
    assert_eq!((totals.active, totals.waiting), (2, 0));
    let report = trial.assert_fair().await;
    assert_eq!((report.admitted, report.most_active), (4, 2), "a restored slot is counted once");

    // Slots that an operator cleared are not restored.
    trial.room.order(trial.event, Order::Clear).await.unwrap();
    trial.lose_everything().await;
    assert_eq!(trial.standing(people[2]).await, Standing::Absent);
    trial.assert_fair().await;
}

/// Many requests detect the loss at once, and only one new generation begins.
pub(super) async fn a_lost_room_is_reopened_once(mut trial: Trial) {
    if trial.kv.is_none() {
        return;
    }
    let user = trial.people(1)[0];
    trial.check(user).await;
    for generation in 2..40 {
        trial.lose_everything().await;
        let (rooms, event) =
            ([trial.another().await.unwrap(), std::sync::Arc::clone(&trial.room)], trial.event);
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
        let life = trial.db.read("test.life", async |tx: &mut Tx<'_>| store::life(tx, event).await);
        let life: Result<Option<store::Life>, urr_db::Error> = life.await;
        assert_eq!(life.unwrap().map(|life| life.generation), Some(generation));
    }
    assert_eq!(trial.room.admit(trial.event).await, Ok(0));
    assert!(trial.is_in(user).await);
    trial.assert_fair().await;
}

/// A lost room is not closed early: its users still get their positions back during the grace
/// period.
pub(super) async fn a_lost_room_is_not_closed_early(mut trial: Trial) {
    let (Room::Redis(_), people) = (&*trial.room, trial.people(2)) else { return };
    trial.arrive(&people).await;
    trial.room.settle(trial.event).await.unwrap();
    trial.lose_everything().await;
    let close = async |idle| trial.room.close(trial.event, 1, idle).await;
    assert_eq!(close(Duration::from_mins(1)).await, Ok(false), "it was in use a moment ago");
    assert_eq!(close(Duration::ZERO).await, Ok(true));
}

/// A worker that was frozen for longer than its lock lasts must not act on what it read before.
pub(super) async fn a_worker_without_the_lock_admits_no_users(trial: Trial) {
    static LAPSE: Script = Script::new("test.lapse", "return redis.call('DEL', KEYS[1])");
    let Some(kv) = &trial.kv else { return };
    let (event, lock) = (trial.event, [format!("admission:lock:{{{}}}", trial.event)]);
    let lapse = async || kv.run(&LAPSE, &lock, &[] as &[Arg<'_>]).await.unwrap();
    let free = async |user| trial.room.leave(event, user, Why::Left).await.unwrap();
    let people = trial.people(4);
    trial.arrive(&people).await;
    let (frozen, other) = (&trial.room, trial.another().await.unwrap());
    let before = frozen.turn(event).await.unwrap();
    assert_eq!(other.turn(event).await, Ok(Turn::Others));

    lapse().await;
    let turn = other.turn(event).await.unwrap();
    assert!(matches!(turn, Turn::Ours { .. }) && turn != before, "{before:?}, then {turn:?}");
    free(people[0]).await;
    assert_eq!(frozen.work(event, &before, Door::Open).await, Ok(0), "another worker holds the lock");
    assert_eq!(other.work(event, &turn, Door::Open).await, Ok(1));
    free(people[1]).await;
    lapse().await;
    assert_eq!(
        frozen.work(event, &before, Door::Open).await,
        Ok(0),
        "the lock is free, but this epoch is over"
    );
    assert_eq!(frozen.admit(event).await, Ok(1), "a worker that reads again may admit");
    free(people[2]).await;
    assert_eq!(frozen.work(event, &before, Door::Open).await, Ok(0), "it holds the lock in another epoch");
    assert_eq!(frozen.admit(event).await, Ok(1));
    assert!(trial.is_in(people[3]).await);
    trial.assert_fair().await;
}

/// One process fails to record a slot that another has recorded meanwhile: its owner may have it
/// already.
pub(super) async fn a_slot_that_another_process_recorded_is_not_taken_back(trial: Trial) {
    let Room::Redis(room) = &*trial.room else { return };
    let user = trial.people(1)[0];
    trial.check(user).await;
    let slot = trial.slot(user).await;
    assert_eq!(room.know(trial.event, &user.to_string(), &slot.id.to_string(), false).await, Ok(false));
    assert_eq!(trial.slot(user).await.id, slot.id);
    trial.assert_fair().await;
}

pub(super) async fn rooms_in_memory_belong_to_one_process(mut trial: Trial) {
    let (user, other) = (trial.people(1)[0], trial.ids.next());
    trial.check(user).await;
    let second = trial.another().await;
    if trial.kv.is_some() || trial.db.engine() == urr_db::EngineKind::Sqlite {
        // Rooms in Redis are shared; the directory of an embedded database is locked.
        assert!(second.is_ok());
        return;
    }
    let Err(refused) = second else { panic!("two processes opened the same rooms") };
    assert!(matches!(refused, CannotOpen::InUse), "{refused:?}");
    assert!(refused.to_string().contains("another process keeps the waiting rooms"), "{refused}");

    // A process frozen for so long that another took over writes nothing more and stops.
    let (frozen, tasks) = (std::sync::Arc::clone(&trial.room), trial.tasks.clone());
    let forget = async |tx: &mut Tx<'_>| {
        urr_db::statements! { TAKEN = postgres "update leases set expires_at = clock_timestamp(), owner = $1"; }
        tx.execute(&TAKEN, &[&uuid::Uuid::nil()]).await
    };
    let forgotten: Result<u64, urr_db::Error> = trial.db.write("test.freeze", forget).await;
    forgotten.unwrap();
    trial.tasks = urr_jobs::Tasks::new();
    trial.room = trial.another().await.unwrap();
    assert_eq!(frozen.check(other, user, None).await, Err(Closed));
    let stopping = tasks.token();
    tokio::select! {
        told = frozen.leave(trial.event, user, Why::Left) => assert_eq!(told, Err(Closed)),
        () = stopping.cancelled() => {}
    }
    urr_testkit::until(super::LIMIT, async || tasks.failed().is_some()).await;
    assert!(trial.is_in(user).await);
    trial.assert_fair().await;
}

/// A crash right after the room opened must not lose an operator's decision.
pub(super) async fn initial_state_is_written_when_a_room_opens(trial: Trial) {
    trial.room.order(trial.event, Order::Threshold(7)).await.unwrap();
    trial.room.order(trial.event, Order::Pause).await.unwrap();
    assert_eq!(trial.room.close(trial.event, 1, Duration::ZERO).await, Ok(true));
    let (event, now) = (trial.event, trial.clock.now());
    let begun: Result<store::Kept, urr_db::Error> =
        transaction!(trial.db, "test.begin", async |tx: &mut Tx<'_>| {
            store::begin(tx, event, 1, now).await
        });
    let written =
        trial.db.read("test.begun", async |tx: &mut Tx<'_>| store::after(tx, event, 2, 0, 10).await);
    let written: Result<Vec<_>, urr_db::Error> = written.await;
    let steps: Vec<Step> = written.unwrap().iter().map(|entry| entry.step).collect();
    assert_eq!(steps, [Step::Threshold { threshold: 7 }, Step::Paused]);
    assert_eq!(begun.unwrap().entries.len(), 2);
}

/// When the database does not accept a slot, its owner does not learn of it and, in Redis, returns
/// to the line. No other user is admitted first.
pub(super) async fn an_unrecorded_slot_returns_its_owner_to_the_line(trial: Trial) {
    urr_db::statements! {
        HIDE = "alter table journal rename to journal_away";
        SHOW = "alter table journal_away rename to journal";
    }
    let [first, second] = trial.people(2)[..] else { panic!() };
    trial.room.order(trial.event, Order::Look).await.unwrap();
    trial.room.settle(trial.event).await.unwrap();
    trial.rename(&HIDE).await;
    let began = trial.clock.ticks();
    assert_eq!(
        trial.room.check(trial.event, first, None).await,
        Err(Closed),
        "a free slot that cannot be recorded is not given"
    );
    let second_told = trial.room.check(trial.event, second, None).await;
    assert!(!matches!(second_told, Ok(Answer { standing: Standing::Active { .. }, .. })), "{second_told:?}");
    let took = trial.clock.ticks().saturating_sub(began);
    assert!(took < Duration::from_secs(20), "the answer took {took:?}");
    trial.rename(&SHOW).await;

    urr_testkit::until(super::LIMIT, async || trial.room.status(trial.event, first).await.is_ok()).await;
    let place = match trial.standing(first).await {
        Standing::Waiting { order, ahead: 0 } => order,
        // In memory a decided step is written as soon as the database accepts it.
        Standing::Active { slot, .. } if trial.kv.is_none() => slot.order,
        other => panic!("{other:?}"),
    };
    trial.check(second).await;
    urr_testkit::until(super::LIMIT, async || {
        trial.room.admit(trial.event).await.unwrap();
        trial.is_in(first).await
    })
    .await;
    assert_eq!(trial.slot(first).await.order, place, "with the same position");
    assert_eq!(trial.ahead(second).await, Some(0));
    trial.assert_fair().await;
    if trial.kv.is_some() {
        let returned = Step::Returned { user: first, order: place };
        assert!(
            trial.entries().await.iter().any(|entry| entry.step == returned),
            "the journal has the return"
        );
    }
}

/// Reported by `outage` for as long as it lasts.
pub(super) async fn a_failing_journal_is_reported_as_outage(trial: Trial) {
    urr_db::statements! {
        HIDE = "alter table journal rename to journal_away";
        SHOW = "alter table journal_away rename to journal";
    }
    let [first, second] = trial.people(2)[..] else { panic!() };
    let quiet = trial.ids.next();
    trial.check(first).await;
    trial.room.check(quiet, second, None).await.unwrap();
    trial.room.leave(quiet, second, Why::Left).await.unwrap();
    trial.room.settle(quiet).await.unwrap();
    assert_eq!(trial.room.outage(), None);
    trial.rename(&HIDE).await;
    let left = trial.room.leave(trial.event, first, Why::Left).await;
    assert_eq!(left.is_err(), trial.kv.is_none(), "in Redis the step is copied later");
    assert_eq!(trial.room.admit(trial.event).await, Err(Closed));
    let began = trial.room.outage().unwrap();
    urr_testkit::until(super::LIMIT, async || {
        assert_eq!(trial.room.admit(trial.event).await, Err(Closed));
        // Another room that has nothing to write does not end the outage, nor does listing the
        // rooms.
        trial.room.settle(quiet).await.unwrap();
        assert!(trial.room.events().await.unwrap().contains(&trial.event));
        trial.room.outage().unwrap() > began + Duration::from_secs(1)
    })
    .await;
    trial.rename(&SHOW).await;
    urr_testkit::until(super::LIMIT, async || trial.room.admit(trial.event).await.is_ok()).await;
    assert_eq!(trial.room.outage(), None);
    assert!(matches!(trial.check(second).await, Standing::Active { .. }));
    trial.assert_fair().await;
}

/// A ticket restores its position even if the line is full meanwhile.
pub(super) async fn a_ticket_restores_its_position_in_a_full_line(trial: Trial) {
    let people = trial.people(5);
    trial.arrive(&people[..3]).await;
    let place = trial.place(people[1]).await;
    trial.room.leave(trial.event, people[1], Why::Idle).await.unwrap();
    trial.arrive(&people[3..4]).await;
    assert_eq!(trial.check(people[4]).await, Standing::Full);
    let back = trial.come_with(people[1], place, Some(1)).await;
    assert_eq!(back, Standing::Waiting { order: place, ahead: 0 });
    assert_eq!(trial.check(people[4]).await, Standing::Full, "newcomers are still refused");
    trial.assert_fair().await;
}

/// An empty room whose close cannot be written stays open.
pub(super) async fn a_room_that_cannot_be_closed_stays_open(trial: Trial) {
    urr_db::statements! {
        HIDE = "alter table rooms rename to rooms_away";
        SHOW = "alter table rooms_away rename to rooms";
    }
    let [user] = trial.people(1)[..] else { panic!() };
    trial.room.order(trial.event, Order::Threshold(3)).await.unwrap();
    trial.room.settle(trial.event).await.unwrap();
    trial.rename(&HIDE).await;
    assert_eq!(trial.room.close(trial.event, 1, Duration::ZERO).await, Err(Closed));
    trial.rename(&SHOW).await;
    assert!(matches!(trial.check(user).await, Standing::Active { .. }));
    trial.assert_fair().await;
}

/// Redis's clock goes back by ten minutes: a slot still ends on time.
pub(super) async fn a_clock_set_back_does_not_extend_slots(trial: Trial) {
    static PUT_BACK: Script = Script::new(
        "test.put_back",
        "redis.call('HINCRBY', KEYS[1], 'noticed', ARGV[1]) return redis.call('ZINCRBY', KEYS[2], ARGV[1], ARGV[2])",
    );
    let Some(kv) = &trial.kv else { return };
    let people = trial.people(2);
    trial.arrive(&people).await;
    let keys = ["room", "active"].map(|name| format!("{{{}}}:{name}", trial.event));
    let (by, inside) = ("600000000", people[0].to_string());
    kv.run(&PUT_BACK, &keys, &[Arg::from(by), Arg::from(inside.as_str())]).await.unwrap();
    urr_testkit::until(super::LIMIT, async || {
        trial.room.admit(trial.event).await.unwrap();
        trial.is_in(people[1]).await
    })
    .await;
    trial.assert_fair().await;
}
