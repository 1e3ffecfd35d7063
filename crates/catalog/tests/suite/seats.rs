//! Halls and seats.

use std::collections::HashSet;

use urr_contracts::catalog::{
    Error, FindSeats, ListLayouts, MAX_SEATS_PER_LOOKUP, MAX_SEATS_PER_PAGE, Seat, SeatsOf, SeatsPage,
};
use urr_kernel::{EventId, SeatId};

use crate::world::World;

async fn page(world: &World, event: EventId, from: u32) -> SeatsPage {
    world.catalog.seats(&world.anonymous(), SeatsOf { event, from }).await.unwrap()
}

pub(crate) async fn a_new_installation_has_the_default_halls(world: &World) {
    let halls = world.catalog.layouts(&world.admin(), ListLayouts {}).await.unwrap().layouts;
    let named: Vec<_> = halls.iter().map(|hall| (hall.name.as_str(), hall.total_seats)).collect();
    let expected = [
        ("small_theater", 265),
        ("large_theater", 1_250),
        ("sports_stadium", 4_900),
        ("grand_stadium", 50_000),
    ];
    assert_eq!(named, expected, "smallest first");
    let vip = &halls[0].sections[0];
    assert_eq!((vip.name.as_str(), vip.rows, vip.seats_per_row, vip.start_row), ("VIP", 3, 10, 1));
    assert_eq!(vip.price.won(), 150_000);
}

pub(crate) async fn seats_are_returned_in_plan_order(world: &World) {
    let event = world.create(world.seated("궤도", "large_theater").await).await.event.id;
    let all = page(world, event, 0).await;
    assert_eq!((all.seats.len(), all.next), (1_250, None));
    let labels: Vec<_> = all.seats.iter().map(|seat| seat.label.as_str()).collect();
    assert_eq!(labels[..2], ["VIP-1-1", "VIP-1-2"]);
    assert_eq!(labels[100], "R-6-1");
    assert_eq!(labels[1_249], "A-40-40");
    let last = &all.seats[1_249];
    assert_eq!((last.section.as_str(), last.grade.as_str(), last.row, last.number), ("A", "A", 40, 40));
    assert_eq!(last.price.won(), 70_000);
    assert_eq!(labels.iter().collect::<HashSet<_>>().len(), 1_250);
    assert_eq!(page(world, event, 1_249).await.seats, all.seats[1_249..]);
    assert_eq!(page(world, event, 1_250).await, SeatsPage { seats: vec![], next: None });
    assert_eq!(page(world, event, u32::MAX).await, SeatsPage { seats: vec![], next: None });
    assert_eq!(page(world, event, 0).await, all, "seats never change");
}

pub(crate) async fn a_stadium_of_50_000_seats_is_created_and_read_in_pages(world: &World) {
    let made = world.create(world.seated("만조", "grand_stadium").await).await.event;
    assert_eq!(made.places, 50_000);
    let mut seats: Vec<Seat> = Vec::new();
    let mut from = Some(0);
    while let Some(start) = from {
        let page = page(world, made.id, start).await;
        assert_eq!(page.seats.len(), MAX_SEATS_PER_PAGE as usize);
        seats.extend(page.seats);
        from = page.next;
    }
    assert_eq!(seats.len(), 50_000);
    let ids: HashSet<SeatId> = seats.iter().map(|seat| seat.id).collect();
    assert_eq!(ids.len(), 50_000, "no seat is returned twice");
    assert_eq!((seats[0].label.as_str(), seats[49_999].label.as_str()), ("Ground-1-1", "Upper-276-250"));
    assert_eq!(made.min_price.unwrap(), seats.iter().map(|seat| seat.price).min().unwrap());
}

pub(crate) async fn seats_are_found_with_their_events(world: &World) {
    let one = world.create(world.seated("하나", "small_theater").await).await.event.id;
    let two = world.create(world.seated("둘", "small_theater").await).await.event.id;
    let seat_of_one = page(world, one, 0).await.seats[7].id;
    let seat_of_two = page(world, two, 0).await.seats[8].id;
    let stranger: SeatId = world.ids.next();
    let find = async |seats: Vec<SeatId>| {
        world.catalog.find_seats(&world.anonymous(), FindSeats { seats }).await.map(|found| found.seats)
    };
    assert_eq!(
        find(vec![seat_of_two, stranger, seat_of_one]).await.unwrap(),
        [(seat_of_two, two), (seat_of_one, one)]
    );
    assert_eq!(find(vec![]).await.unwrap(), []);
    assert!(find(vec![stranger; MAX_SEATS_PER_LOOKUP]).await.is_ok());
    let refused = find(vec![stranger; MAX_SEATS_PER_LOOKUP + 1]).await;
    assert!(matches!(refused, Err(Error::Invalid { field, .. }) if field == "seats"));
}
