//! A line follows its sale: before it, while it lasts, and once there is nothing to wait for.

use urr_contracts::{
    catalog::EventStatus,
    queue::{Error, SetThreshold, Standing, StatusOf},
};
use urr_kernel::UserId;
use urr_testkit::until;

use super::{LIMIT, World, stories::assert_fair};
use crate::room::Order;

async fn told(world: &World, user: UserId) -> Result<Standing, Error> {
    let place = world.queue.status(&world.ctx(user), StatusOf { event: world.event }).await;
    place.map(|place| place.standing)
}

async fn inside(world: &World) -> (usize, usize) {
    let totals = world.service.rooms().unwrap().order(world.event, Order::Look).await.unwrap();
    (totals.active, totals.waiting)
}

pub(crate) async fn before_a_sale_people_take_places_and_nobody_comes_in(world: World) {
    world.catalog.put(world.event, EventStatus::Upcoming);
    let people: Vec<UserId> = (0..4).map(|_| world.somebody()).collect();
    for (number, user) in (1..).zip(&people) {
        let place = world.check(*user).await.unwrap();
        assert!(place.opens_at.is_some(), "it is said when");
        assert!(
            matches!(place.standing, Standing::Waiting { position, .. } if position == number),
            "{place:?}"
        );
    }
    for _ in 0..3 {
        world.admit().await;
    }
    assert_eq!(world.position(people[0]).await, Some(1), "there is room, and no sale");
    assert_eq!(inside(&world).await, (0, 4));

    world.catalog.put(world.event, EventStatus::OnSale);
    until(LIMIT, async || {
        world.admit().await;
        inside(&world).await == (2, 2)
    })
    .await;
    for user in &people[..2] {
        let place = world.status(*user).await;
        assert!(matches!(place.standing, Standing::Active { .. }), "in the order in which they came");
        assert_eq!(place.opens_at, None);
    }
    world.check(world.somebody()).await.unwrap();
    assert_eq!(world.position(people[2]).await, Some(1), "and nobody who comes later goes first");
    assert_fair(&world).await;
}

pub(crate) async fn a_sale_that_is_over_lets_nobody_in_and_says_so(world: World) {
    let [first, second] = [(); 2].map(|()| world.somebody());
    for user in [first, second] {
        world.check(user).await.unwrap();
    }
    assert_eq!(inside(&world).await, (1, 1));
    for (status, error) in
        [(EventStatus::Cancelled, Error::EventCancelled), (EventStatus::Ended, Error::SaleEnded)]
    {
        world.catalog.put(world.event, status);
        until(LIMIT, async || told(&world, second).await == Err(error.clone())).await;
        assert_eq!(told(&world, first).await, Err(error.clone()));
        assert_eq!(world.check(second).await, Err(error), "as it is said to whoever comes");
        let more = SetThreshold { event: world.event, threshold: 5 };
        world.queue.set_threshold(&world.admin(), more).await.unwrap();
        world.admit().await;
        assert_eq!(inside(&world).await, (1, 1), "there is room, and no sale");
    }

    // Sold again, the line goes on where it was.
    world.catalog.put(world.event, EventStatus::OnSale);
    until(LIMIT, async || {
        world.admit().await;
        inside(&world).await == (2, 0)
    })
    .await;
    assert!(matches!(told(&world, second).await, Ok(Standing::Active { .. })));
    assert_fair(&world).await;
}
