//! A failing room does not affect others.

use urr_contracts::queue::{EntryState, LeaveLine, StatusOf};
use urr_kernel::{EventId, UserId};
use urr_kv::{Arg, Script};
use urr_testkit::{STORY_LIMIT, until};

use crate::{sales::hear_of, stage::Stage, world::World};

pub(crate) static BREAK: Script = Script::new(
    "test.break",
    "redis.call('RENAME', KEYS[1], KEYS[2]) return redis.call('SET', KEYS[1], 'broken')",
);
pub(crate) static MEND: Script = Script::new("test.mend", "return redis.call('RENAME', KEYS[2], KEYS[1])");

/// Makes one room fail, as if its Redis Cluster node were down, or repairs it.
pub(crate) async fn turn(world: &World, event: EventId, script: &'static Script) {
    let keys = ["room", "room-away"].map(|name| format!("{{{event}}}:{name}"));
    world.kv().unwrap().run(script, &keys, &[] as &[Arg<'_>]).await.unwrap();
}

async fn is_in(world: &World, event: EventId, user: UserId) -> bool {
    let place = world.queue.status(&world.ctx(user), StatusOf { event }).await.unwrap();
    matches!(place.state, EntryState::Active { .. })
}

/// Rooms in memory share one journal, so they fail together.
pub(crate) async fn a_failing_room_does_not_stop_others(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [buyer, next, also, guest] = [(); 4].map(|()| world.somebody());
    // The failing one comes first in every list.
    let [broken, empty, whole] = [world.event, world.another_event(), world.another_event()];
    for (event, user) in [(broken, buyer), (broken, also), (empty, guest), (whole, buyer), (whole, next)] {
        world.check_with(user, event, None, None).await.unwrap();
    }
    world.queue.leave(&world.ctx(guest), LeaveLine { event: empty }).await.unwrap();
    world.settle(broken).await;
    for event in [broken, whole] {
        hear_of(&world, event, "RESERVATION_CONFIRMED", buyer, world.clock.now()).await;
    }
    turn(&world, broken, &BREAK).await;
    until(STORY_LIMIT, async || {
        world.admit().await;
        is_in(&world, whole, next).await
    })
    .await;
    world.leave_alone(empty).await;
    assert_eq!(world.tidy().await, 1, "the empty room is closed");
    assert_eq!(world.purchases().await, 1);

    // After the repair, pending work is completed.
    turn(&world, broken, &MEND).await;
    world.admit().await;
    assert!(!is_in(&world, broken, buyer).await);
    assert_eq!(world.purchases().await, 0);
    world.assert_fair().await;
}
