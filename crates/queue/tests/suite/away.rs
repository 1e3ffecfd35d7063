//! Redis becomes unreachable while users hold slots: they continue to buy, admissions stop, and it
//! recovers by itself.

use std::time::Duration;

use urr_contracts::queue::{ClearRoom, EntryState, Error, LeaveLine, SlotOf, StatusOf};
use urr_db::{Tx, statements};
use urr_kernel::{Actor, CommonError, EventId, UserId};
use urr_kv::{Arg, Script};
use urr_passes::{entry, entry::Entries};
use urr_testkit::{STORY_LIMIT, until};
use uuid::Uuid;

use crate::{
    sales::hear_of,
    stage::Stage,
    troubles::{BREAK, MEND, turn},
    world::World,
};

statements! {
    HIDE = "alter table journal rename to journal_away";
    SHOW = "alter table journal_away rename to journal";
}

static LOSE: Script =
    Script::new("test.lose", "for _, key in ipairs(KEYS) do redis.call('DEL', key) end return 1");

/// The check that the sale makes with every request.
async fn goes_on(world: &World, event: EventId, user: UserId, slot: Uuid) -> Result<bool, Error> {
    let state = world.queue.slot(&world.acting(Actor::System), SlotOf { event, user, slot }).await;
    state.map(|state| state.open)
}

/// Joins and is admitted at once. Returns the slot.
async fn come_in(world: &World, user: UserId) -> Uuid {
    let place = world.check(user).await.unwrap();
    let EntryState::Active { entry_token, .. } = &place.state else { panic!("{place:?}") };
    let entries = Entries::new([entry::key(&world.secret)]);
    entries.verify(entry_token.expose(), world.clock.now()).unwrap().slot
}

/// Every request of the user gets 503.
async fn assert_closed(world: &World, user: UserId) {
    let (ctx, event) = (world.ctx(user), world.event);
    assert_eq!(world.check(user).await.unwrap_err(), Error::Common(CommonError::Unavailable));
    assert_eq!(
        world.queue.status(&ctx, StatusOf { event }).await.unwrap_err(),
        Error::Common(CommonError::Unavailable)
    );
    assert_eq!(
        world.queue.leave(&ctx, LeaveLine { event }).await.unwrap_err(),
        Error::Common(CommonError::Unavailable)
    );
}

pub(crate) async fn slots_stay_valid_and_admissions_stop_without_redis(stage: &Stage) {
    let Some(world) = stage.slots(4).await else { return };
    let event = world.event;
    let [inside, left, buyer, regular, waiting, stranger] = [(); 6].map(|()| world.somebody());
    let slot = come_in(&world, inside).await;
    let slot_left = come_in(&world, left).await;
    let slot_used = come_in(&world, buyer).await;
    let slot_since = come_in(&world, regular).await;
    world.check(waiting).await.unwrap();
    assert_eq!(world.position(waiting).await, Some(1));
    // The slot of the buyer is not freed yet; the other user bought with an earlier slot.
    let now = world.clock.now();
    hear_of(&world, event, "RESERVATION_CONFIRMED", buyer, now).await;
    hear_of(&world, event, "RESERVATION_CONFIRMED", regular, now.before(Duration::from_mins(1))).await;
    world.queue.leave(&world.ctx(left), LeaveLine { event }).await.unwrap();
    world.settle(event).await;
    assert_eq!(
        goes_on(&world, event, buyer, slot_used).await,
        Ok(true),
        "the slot is not freed in Redis yet"
    );

    world.cut().await;
    for (user, slot, expected) in [
        (inside, slot, true),
        (regular, slot_since, true),
        (left, slot_left, false),
        (buyer, slot_used, false),
        (inside, slot_since, false),
        (waiting, slot, false),
        (stranger, slot, false),
    ] {
        assert_eq!(goes_on(&world, event, user, slot).await, Ok(expected), "{user} with {slot}");
    }
    assert_eq!(goes_on(&world, world.another_event(), inside, slot).await, Ok(false));
    let foreign = world.queue.slot(&world.ctx(stranger), SlotOf { event, user: inside, slot }).await;
    assert_eq!(foreign.unwrap_err(), Error::Common(CommonError::SignInRequired));
    for user in [inside, waiting, stranger] {
        assert_closed(&world, user).await;
    }

    world.restore().await;
    until(STORY_LIMIT, async || world.queue.status(&world.ctx(waiting), StatusOf { event }).await.is_ok())
        .await;
    assert_eq!(world.position(waiting).await, Some(1), "no admissions, and no lost positions");
    assert_eq!(goes_on(&world, event, inside, slot).await, Ok(true));
    assert_eq!(world.purchases().await, 2);
    world.admit().await;
    assert_eq!(world.purchases().await, 0);
    assert_eq!(goes_on(&world, event, buyer, slot_used).await, Ok(false));
    assert_eq!(goes_on(&world, event, regular, slot_since).await, Ok(true));
    world.assert_fair().await;

    // An operator's decision is written before the answer.
    let clear = ClearRoom { event, confirmed: Some(event) };
    world.queue.clear(&world.admin(), clear).await.unwrap();
    world.cut().await;
    assert_eq!(goes_on(&world, event, inside, slot).await, Ok(false));
}

pub(crate) async fn slots_are_unknown_without_redis_and_journal(stage: &Stage) {
    let Some(world) = stage.slots(4).await else { return };
    let (user, event) = (world.somebody(), world.event);
    let slot = come_in(&world, user).await;
    world.settle(event).await;
    world.cut().await;
    for (statement, expected) in [(&HIDE, None), (&SHOW, Some(true))] {
        let renamed: Result<u64, urr_db::Error> =
            world.db().write("test.rename", async |tx: &mut Tx<'_>| tx.execute(statement, &[]).await).await;
        renamed.unwrap();
        assert_eq!(goes_on(&world, event, user, slot).await.ok(), expected);
    }
}

/// A Redis that answers may still change the room, and the journal may lag behind it.
pub(crate) async fn a_redis_that_answers_is_not_unreachable(stage: &Stage) {
    let Some(world) = stage.slots(4).await else { return };
    let (user, event) = (world.somebody(), world.event);
    let slot = come_in(&world, user).await;
    turn(&world, event, &BREAK).await;
    assert_eq!(
        goes_on(&world, event, user, slot).await,
        Err(Error::Common(CommonError::Unavailable)),
        "Redis answers but cannot run the script"
    );
    turn(&world, event, &MEND).await;
    assert_eq!(goes_on(&world, event, user, slot).await, Ok(true));

    let keys =
        ["queue", "active", "seen", "slots", "room", "journal"].map(|name| format!("{{{event}}}:{name}"));
    world.kv().unwrap().run(&LOSE, &keys, &[] as &[Arg<'_>]).await.unwrap();
    assert_eq!(
        goes_on(&world, event, user, slot).await,
        Ok(true),
        "Redis has lost the room, which is restored"
    );
    assert_eq!(world.inside().await, (1, 0));
    world.assert_fair().await;
}
