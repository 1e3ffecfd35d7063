//! Demo events.

use urr_contracts::catalog::EventStatus;

use crate::world::World;

pub(crate) async fn the_first_start_adds_demo_events_and_the_second_adds_none(world: &World) {
    assert!(urr_catalog::demo::seed(&world.service).await.unwrap());
    assert!(!urr_catalog::demo::seed(&world.service).await.unwrap());
    assert_eq!(world.titles(Some(EventStatus::OnSale), None).await.len(), 3);
    assert_eq!(world.titles(Some(EventStatus::Upcoming), None).await.len(), 2);
    assert_eq!(world.titles(Some(EventStatus::Ended), None).await.len(), 1);
    let standing = world.titles(Some(EventStatus::OnSale), Some("standing 막차")).await;
    assert_eq!(standing, Vec::<String>::new(), "descriptions are not searched");
    assert_eq!(world.titles(None, Some("네온까치")).await.len(), 1);
}

pub(crate) async fn concurrent_starts_add_the_demo_events_once(world: &World) {
    let seed = || urr_catalog::demo::seed(&world.service);
    let (one, other, third) = tokio::join!(seed(), seed(), seed());
    let filled = [one.unwrap(), other.unwrap(), third.unwrap()];
    assert_eq!(filled.iter().filter(|filled| **filled).count(), 1, "{filled:?}");
    assert_eq!(world.count().await, 6);
}
