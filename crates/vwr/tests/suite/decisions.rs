//! A command given to one process is applied by every other.

use std::time::Duration;

use urr_contracts::vwr::{CheckTicket, Checked, GiveOrder, Order, Room, RoomOf, Vwr as _};
use urr_testkit::{STORY_LIMIT, until};

use super::world::{World, background, secrets};

/// Time within which every process applies a command.
const WITHIN: Duration = Duration::from_secs(1);

/// Whether a room reflects the command.
type Followed = fn(&Room) -> bool;

/// Time advances only by the refresh period of the other process, which has refreshed by then.
pub(crate) async fn every_process_applies_a_command_within_a_second(world: &World) {
    let event = world.open().await;
    let (visitor, assigned) = world.assign(event).await;
    let other = world.another(secrets());
    let look = background(&other, "vwr.look");
    look.run().await.unwrap();
    let seen = async || other.room(&world.anybody(), RoomOf { event }).await.unwrap();
    let is_in = async || {
        let ticket = assigned.ticket.clone();
        let request = CheckTicket { event, ticket, visitor: Some(visitor), pass: None };
        matches!(other.check(&world.anybody(), request).await, Ok(Checked::Admitted { .. }))
    };
    let decisions: [(Order, Followed); 5] = [
        (Order::Pause, |room| room.paused),
        (Order::Resume, |room| !room.paused),
        (Order::Rate { rate: 7 }, |room| room.rate == 7),
        (Order::Advance { batch: 1 }, |room| room.serving == 1),
        (Order::Deactivate, |room| !room.active),
    ];
    for (order, is_followed) in decisions {
        assert!(!is_followed(&seen().await), "{order:?} is not visible yet");
        world.vwr.order(&world.operator(), GiveOrder { event, order }).await.unwrap();
        let mut passed = Duration::ZERO;
        while !is_followed(&seen().await) {
            // The command may come right after a refresh, and a refresh may take a whole period.
            passed += 2 * look.period();
            assert!(passed <= WITHIN, "{order:?} is not applied after {passed:?}");
            look.run().await.unwrap();
        }
        assert_eq!(is_in().await, matches!(order, Order::Advance { .. } | Order::Deactivate), "{order:?}");
    }
}

pub(crate) async fn visitors_are_admitted_by_background_work(world: &World) {
    let event = world.open().await;
    let (visitor, assigned) = world.assign(event).await;
    world.order(event, Order::Rate { rate: 1_000 }).await;
    let advance = background(&world.service, "vwr.advance");
    until(STORY_LIMIT, async || {
        advance.run().await.unwrap();
        matches!(world.check(event, visitor, &assigned.ticket).await, Ok(Checked::Admitted { .. }))
    })
    .await;
}
