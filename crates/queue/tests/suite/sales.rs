//! Waiting before, during and after a sale.

use std::time::Duration;

use urr_contracts::{
    catalog::EventStatus,
    queue::{EntryState, Error, LeaveLine, SetThreshold, StatusOf},
};
use urr_db::{Tx, outbox};
use urr_kernel::{EventId, Timestamp, UserId};
use urr_testkit::{STORY_LIMIT, until};
use uuid::Uuid;

use crate::{stage::Stage, world::World};

async fn told(world: &World, user: UserId) -> Result<EntryState, Error> {
    let place = world.queue.status(&world.ctx(user), StatusOf { event: world.event }).await;
    place.map(|place| place.state)
}

pub(crate) async fn users_wait_before_the_sale_without_admissions(stage: &Stage) {
    let Some(world) = stage.slots(2).await else { return };
    world.catalog.set_status(world.event, EventStatus::Upcoming);
    let people: Vec<UserId> = (0..4).map(|_| world.somebody()).collect();
    for (number, user) in (1..).zip(&people) {
        let place = world.check(*user).await.unwrap();
        assert!(place.opens_at.is_some(), "the answer has the opening time");
        assert!(
            matches!(place.state, EntryState::Waiting { position, .. } if position == number),
            "{place:?}"
        );
    }
    for _ in 0..3 {
        world.admit().await;
    }
    assert_eq!(world.position(people[0]).await, Some(1), "no admissions before the sale");
    assert_eq!(world.inside().await, (0, 4));

    world.catalog.set_status(world.event, EventStatus::OnSale);
    until(STORY_LIMIT, async || {
        world.admit().await;
        world.inside().await == (2, 2)
    })
    .await;
    for user in &people[..2] {
        let place = world.status(*user).await;
        assert!(matches!(place.state, EntryState::Active { .. }), "admitted in order of arrival");
        assert_eq!(place.opens_at, None);
    }
    world.check(world.somebody()).await.unwrap();
    assert_eq!(world.position(people[2]).await, Some(1), "later users do not pass earlier ones");
    world.assert_fair().await;
}

pub(crate) async fn a_finished_sale_stops_admissions_with_an_error(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [first, second] = [(); 2].map(|()| world.somebody());
    for user in [first, second] {
        world.check(user).await.unwrap();
    }
    assert_eq!(world.inside().await, (1, 1));
    for (status, error) in
        [(EventStatus::Cancelled, Error::EventCancelled), (EventStatus::Ended, Error::SaleEnded)]
    {
        world.catalog.set_status(world.event, status);
        until(STORY_LIMIT, async || {
            world.wait(Duration::from_secs(1));
            told(&world, second).await == Err(error.clone())
        })
        .await;
        assert_eq!(told(&world, first).await, Err(error.clone()));
        assert_eq!(world.check(second).await, Err(error), "joining returns the same error");
        let more = SetThreshold { event: world.event, threshold: 5 };
        world.queue.set_threshold(&world.admin(), more).await.unwrap();
        world.admit().await;
        assert_eq!(world.inside().await, (1, 1), "no admissions after the sale");
    }

    // Once the sale reopens, the line continues.
    world.catalog.set_status(world.event, EventStatus::OnSale);
    until(STORY_LIMIT, async || {
        world.admit().await;
        world.inside().await == (2, 0)
    })
    .await;
    assert!(matches!(told(&world, second).await, Ok(EntryState::Active { .. })));
    world.assert_fair().await;
}

async fn hear(world: &World, kind: &str, buyer: UserId, at: Timestamp) {
    hear_of(world, world.event, kind, buyer, at).await;
}

pub(crate) async fn hear_of(world: &World, event: EventId, kind: &str, buyer: UserId, at: Timestamp) {
    let payload = format!(
        r#"{{"type":"{kind}","reservationId":"{}","userId":"{buyer}","eventId":"{event}","totalAmount":1,"seatCount":1,"expiresAt":"2026-06-01T03:00:00Z","paymentMethod":"card"}}"#,
        Uuid::nil(),
    );
    let (id, topic) = (world.ids.next(), "reservation-events".into());
    let message = outbox::Message { id, topic, key: String::new(), kind: kind.into(), payload, at };
    let consumers = urr_queue::consumers(&world.service);
    let [consumer] = consumers.as_slice() else { panic!("one consumer") };
    if !consumer.wants(&message) {
        return;
    }
    let applied = world.db().write("test.hear", async |tx: &mut Tx<'_>| {
        consumer.apply(tx, &message).await.unwrap();
        Ok::<_, urr_db::Error>(())
    });
    applied.await.unwrap();
}

pub(crate) async fn a_purchase_frees_the_slot(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [buyer, next] = [(); 2].map(|()| world.somebody());
    world.check(buyer).await.unwrap();
    world.check(next).await.unwrap();
    assert_eq!(world.inside().await, (1, 1));
    for kind in ["RESERVATION_CREATED", "RESERVATION_CONFIRMED", "RESERVATION_CONFIRMED"] {
        hear(&world, kind, buyer, world.clock.now()).await;
    }
    assert_eq!(world.purchases().await, 1);
    world.admit().await;
    assert_eq!(world.purchases().await, 0);
    assert_eq!(told(&world, buyer).await, Ok(EntryState::Absent));
    let is_in = async |user| matches!(told(&world, user).await, Ok(EntryState::Active { .. }));
    until(STORY_LIMIT, async || {
        world.admit().await;
        is_in(next).await
    })
    .await;

    // A late message of an earlier purchase affects neither the position nor the slot of another
    // turn.
    let late = async || {
        hear(&world, "RESERVATION_CONFIRMED", buyer, world.clock.now().before(Duration::from_mins(1))).await;
        assert_eq!(world.purchases().await, 1);
        world.admit().await;
        assert_eq!(world.purchases().await, 0);
    };
    world.check(buyer).await.unwrap();
    late().await;
    assert_eq!(world.position(buyer).await, Some(1));
    world.queue.leave(&world.ctx(next), LeaveLine { event: world.event }).await.unwrap();
    until(STORY_LIMIT, async || {
        world.admit().await;
        is_in(buyer).await
    })
    .await;
    late().await;
    assert!(is_in(buyer).await);
    world.assert_fair().await;
}

pub(crate) async fn a_room_follows_the_setting_until_an_operator_decides(stage: &Stage) {
    let Some(mut world) = stage.slots(1).await else { return };
    let event = world.event;
    let user = world.somebody();
    world.check(user).await.unwrap();
    assert_eq!(world.inside().await, (1, 0));
    let leave = async |world: &World, user| world.queue.leave(&world.ctx(user), LeaveLine { event }).await;
    leave(&world, user).await.unwrap();
    for threshold in [0, 5, 0] {
        world.restart_with(threshold).await;
        assert_eq!(world.status(user).await.threshold, threshold, "an open room follows");
    }
    world.check(user).await.unwrap();
    assert_eq!(world.inside().await, (0, 1), "all users wait");
    leave(&world, user).await.unwrap();
    world.leave_alone(event).await;
    assert_eq!(world.tidy().await, 1);
    world.restart_with(5).await;
    world.check(user).await.unwrap();
    assert_eq!(
        (world.inside().await, world.status(user).await.threshold),
        ((1, 0), 5),
        "a closed room follows when it opens"
    );
    leave(&world, user).await.unwrap();

    world.queue.set_threshold(&world.admin(), SetThreshold { event, threshold: 3 }).await.unwrap();
    world.restart_with(9).await;
    assert_eq!(world.status(user).await.threshold, 3, "an operator's value is kept");
    world.leave_alone(event).await;
    assert_eq!(world.tidy().await, 1);
    world.restart_with(8).await;
    world.check(user).await.unwrap();
    assert_eq!(world.status(user).await.threshold, 3);
    world.assert_fair().await;
}
