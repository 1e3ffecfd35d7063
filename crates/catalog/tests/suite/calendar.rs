//! Events: create, list, search, cancel.

use std::time::Duration;

use urr_contracts::catalog::{
    CancelEvent, CreateEvent, Error, EventOf, EventStatus, ListEvents, ListLayouts, SaleOf, SeatsOf,
};
use urr_kernel::{CommonError, EventId, Krw};

use crate::world::{HOUR, World, ticket_type};

pub(crate) async fn a_seated_event_gets_its_prices_and_places_from_its_hall(world: &World) {
    let asked = CreateEvent {
        description: Some("첫 줄\n둘째 줄".to_owned()),
        address: Some("서울특별시 마포구 가온길 12".to_owned()),
        artist_name: Some("구름공방".to_owned()),
        poster_image_url: Some("/posters/slow.webp".to_owned()),
        max_seats_per_reservation: Some(2),
        max_seats_per_user: Some(6),
        ..world.seated("느린 오후", "small_theater").await
    };
    let made = world.create(asked.clone()).await;
    assert_eq!(world.event(made.event.id).await, made, "the response matches the stored event");

    let event = &made.event;
    assert_eq!((&event.title, &event.venue), (&asked.title, &asked.venue));
    assert_eq!((&event.description, &event.address), (&asked.description, &asked.address));
    assert_eq!(event.artist_name, asked.artist_name);
    assert_eq!(event.poster_image_url, asked.poster_image_url);
    assert_eq!(
        (event.event_at, event.sale_start_at, event.sale_end_at),
        (asked.event_at, asked.sale_start_at, asked.sale_end_at)
    );
    assert_eq!((event.layout, event.ticket_type_count), (asked.layout, 0));
    assert_eq!((event.min_price, event.max_price), (Krw::new(70_000).ok(), Krw::new(150_000).ok()));
    assert_eq!((event.places, event.places_reserved), (265, 0));
    assert_eq!(event.status, EventStatus::OnSale);
    assert_eq!((made.max_seats_per_reservation, made.max_seats_per_user), (2, 6));
    assert_eq!((made.created_at, made.updated_at), (world.clock.now(), world.clock.now()));
    assert_eq!(made.ticket_types, []);

    let sale = world.catalog.sale(&world.anonymous(), SaleOf { event: event.id }).await.unwrap();
    assert_eq!(
        (sale.event, sale.card.title, sale.cancelled, sale.seats),
        (event.id, asked.title, false, 265)
    );
    assert_eq!((sale.sale_start_at, sale.sale_end_at), (asked.sale_start_at, asked.sale_end_at));
    assert_eq!((sale.max_seats_per_reservation, sale.max_seats_per_user), (2, 6));
}

pub(crate) async fn a_standing_event_is_sold_by_ticket_type(world: &World) {
    let ticket_types = vec![
        ticket_type("스탠딩", 88_000, 500),
        ticket_type("발코니", 99_000, 60),
        ticket_type("얼리버드", 69_000, 100),
    ];
    let made = world.create(CreateEvent { ticket_types, ..world.standing("막차까지") }).await;
    assert_eq!(world.event(made.event.id).await, made);
    let names: Vec<_> =
        made.ticket_types.iter().map(|kind| (kind.name.as_str(), kind.total_quantity)).collect();
    assert_eq!(names, [("발코니", 60), ("스탠딩", 500), ("얼리버드", 100)], "most expensive first");
    assert_eq!((made.event.places, made.event.ticket_type_count, made.event.layout), (660, 3, None));
    assert_eq!((made.event.min_price, made.event.max_price), (Krw::new(69_000).ok(), Krw::new(99_000).ok()));

    let event = made.event.id;
    assert_eq!(world.catalog.sale(&world.anonymous(), SaleOf { event }).await.unwrap().seats, 0);
    let page = world.catalog.seats(&world.anonymous(), SeatsOf { event, from: 0 }).await.unwrap();
    assert_eq!((page.seats, page.next), (vec![], None));
}

pub(crate) async fn invalid_events_are_rejected_and_not_stored(world: &World) {
    let good = || world.standing("ok");
    let (layout, admin) = (world.hall("small_theater").await.id, world.admin());
    let bad = [
        ("title", CreateEvent { title: " ".to_owned(), ..good() }),
        ("title", CreateEvent { title: "a\0b".to_owned(), ..good() }),
        ("venue", CreateEvent { venue: "x".repeat(201), ..good() }),
        ("description", CreateEvent { description: Some("x".repeat(5_001)), ..good() }),
        ("saleEndDate", CreateEvent { sale_end_at: good().sale_start_at, ..good() }),
        ("saleEndDate", CreateEvent { event_at: good().sale_start_at, ..good() }),
        (
            "posterImageUrl",
            CreateEvent { poster_image_url: Some("javascript:alert(1)".to_owned()), ..good() },
        ),
        ("maxSeatsPerUser", CreateEvent { max_seats_per_user: Some(11), ..good() }),
        ("maxSeatsPerReservation", CreateEvent { max_seats_per_reservation: Some(0), ..good() }),
        ("ticketTypes", CreateEvent { ticket_types: vec![], ..good() }),
        ("ticketTypes", CreateEvent { layout: Some(layout), ..good() }),
        ("ticketTypes", CreateEvent { ticket_types: vec![ticket_type("a", 1, 100_001)], ..good() }),
    ];
    for (wrong, request) in bad {
        let refused = world.catalog.create_event(&admin, request.clone()).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Invalid { field, .. } if field == wrong),
            "{refused:?} for {request:?}"
        );
    }
    let nowhere = CreateEvent { layout: Some(world.ids.next()), ticket_types: vec![], ..good() };
    assert_eq!(world.catalog.create_event(&admin, nowhere).await, Err(Error::LayoutNotFound));
    assert_eq!(world.count().await, 0);
}

pub(crate) async fn response_and_filter_agree_on_the_status_at_each_boundary(world: &World) {
    use EventStatus::{Cancelled, Ended, OnSale, Upcoming};
    let start = world.clock.now().after(HOUR);
    let end = start.after(HOUR);
    let request = CreateEvent {
        sale_start_at: start,
        sale_end_at: end,
        event_at: end.after(HOUR),
        ..world.standing("a")
    };
    let event = world.create(request.clone()).await.event.id;
    let called_off = world.create(CreateEvent { title: "called off".to_owned(), ..request }).await.event.id;
    world.catalog.cancel_event(&world.admin(), CancelEvent { event: called_off }).await.unwrap();

    let micro = Duration::from_micros(1);
    for (at, expected) in [
        (world.clock.now(), Upcoming),
        (start.before(micro), Upcoming),
        (start, OnSale),
        (end.before(micro), OnSale),
        (end, Ended),
        (end.after(2 * HOUR), Ended),
    ] {
        world.go_to(at);
        assert_eq!(world.event(event).await.event.status, expected, "at {at}");
        for status in [Upcoming, OnSale, Ended] {
            let listed = world.titles(Some(status), None).await;
            assert_eq!(listed == ["a"], status == expected, "{status:?} at {at}: {listed:?}");
        }
        assert_eq!(world.event(called_off).await.event.status, Cancelled);
        assert_eq!(world.titles(Some(Cancelled), None).await, ["called off"]);
    }
}

pub(crate) async fn events_are_paged_by_sale_start(world: &World) {
    let opens_in = |title: &str, hours: u32| {
        let start = world.clock.now().after(HOUR * hours);
        let (sale_end_at, event_at) = (start.after(HOUR), start.after(2 * HOUR));
        CreateEvent { sale_start_at: start, sale_end_at, event_at, ..world.standing(title) }
    };
    let mut twins = Vec::new();
    for (title, hours) in [("c", 5), ("a", 1), ("twin", 3), ("twin", 3), ("b", 2)] {
        let id = world.create(opens_in(title, hours)).await.event.id;
        if title == "twin" {
            twins.push(id);
        }
    }
    twins.sort();
    let page = async |page, limit| {
        let found = world.list(ListEvents { page, limit, ..ListEvents::default() }).await.unwrap();
        assert_eq!((found.page, found.limit, found.total), (page, limit, 5));
        found.events
    };
    let titles = |events: &[urr_contracts::catalog::EventSummary]| -> Vec<String> {
        events.iter().map(|event| event.title.clone()).collect()
    };
    assert_eq!(titles(&page(1, 100).await), ["a", "b", "twin", "twin", "c"]);
    assert_eq!(titles(&page(1, 2).await), ["a", "b"]);
    let second: Vec<EventId> = page(2, 2).await.iter().map(|event| event.id).collect();
    assert_eq!(second, twins, "sales with the same start are ordered by id");
    assert_eq!(titles(&page(3, 2).await), ["c"]);
    assert_eq!(titles(&page(4, 2).await), Vec::<String>::new());
    assert_eq!(titles(&page(u32::MAX, 100).await), Vec::<String>::new());
    for (page, limit, wrong) in [(0, 10, "page"), (1, 0, "limit"), (1, 101, "limit")] {
        let refused = world.list(ListEvents { page, limit, ..ListEvents::default() }).await.unwrap_err();
        assert!(matches!(&refused, Error::Invalid { field, .. } if field == wrong), "{refused:?}");
    }
}

pub(crate) async fn search_ignores_case_and_treats_wildcards_literally(world: &World) {
    let with = |title: &str, artist: &str, venue: &str, address: &str| CreateEvent {
        venue: venue.to_owned(),
        artist_name: Some(artist.to_owned()),
        address: Some(address.to_owned()),
        ..world.standing(title)
    };
    world.create(with("100% Live", "Neon Magpie", "차고지 라이브홀", "성동구 종점길 7")).await;
    world.create(with("1000 Lives", "Éclat d'Été", "모퉁이 소극장", "마포구 가온길 12")).await;
    world.create(with("snake_case", "C:\\band", "한빛나루 대극장", "영등포구 나루터로 301")).await;

    let found = async |search: &str| {
        let mut titles = world.titles(None, Some(search)).await;
        titles.sort();
        titles
    };
    assert_eq!(found("magpie").await, ["100% Live"]);
    assert_eq!(found("MAGPIE").await, ["100% Live"]);
    assert_eq!(found("éCLAT").await, ["1000 Lives"], "case is ignored beyond ASCII too");
    assert_eq!(found("소극장").await, ["1000 Lives"], "in the venue");
    assert_eq!(found("나루터로").await, ["snake_case"], "in the address");
    assert_eq!(found("  live ").await, ["100% Live", "1000 Lives"]);
    assert_eq!(found("100%").await, ["100% Live"], "`%` is literal");
    assert_eq!(found("e_c").await, ["snake_case"], "`_` is literal");
    assert_eq!(found("c:\\b").await, ["snake_case"], "a backslash is literal");
    assert_eq!(found("magpie 차고지").await, ["100% Live"], "a match may span artist and venue");
    assert_eq!(found("%").await, ["100% Live"]);
    assert_eq!(found("'; drop table events; --").await, Vec::<String>::new());
    assert_eq!(found("   ").await.len(), 3, "a blank search matches everything");
    assert_eq!(world.titles(Some(EventStatus::Ended), Some("live")).await, Vec::<String>::new());
    assert_eq!(world.titles(Some(EventStatus::OnSale), Some("magpie")).await, ["100% Live"]);
    for bad in ["a\0b".to_owned(), "x".repeat(101)] {
        let request = ListEvents { search: Some(bad), page: 1, limit: 10, status: None };
        assert!(matches!(world.list(request).await, Err(Error::Invalid { field, .. }) if field == "q"));
    }
}

pub(crate) async fn an_unknown_event_is_not_found_by_any_method(world: &World) {
    let (ctx, event): (_, EventId) = (world.admin(), world.ids.next());
    assert_eq!(world.catalog.sale(&ctx, SaleOf { event }).await, Err(Error::EventNotFound));
    assert_eq!(world.catalog.event(&ctx, EventOf { event }).await, Err(Error::EventNotFound));
    assert_eq!(world.catalog.seats(&ctx, SeatsOf { event, from: 0 }).await, Err(Error::EventNotFound));
    assert_eq!(world.catalog.cancel_event(&ctx, CancelEvent { event }).await, Err(Error::EventNotFound));
}

pub(crate) async fn cancelling_is_final_and_idempotent(world: &World) {
    let made = world.create(world.seated("궤도", "small_theater").await).await;
    let event = made.event.id;
    world.clock.advance(HOUR / 2);
    let called_off_at = world.clock.now();
    let first = world.catalog.cancel_event(&world.admin(), CancelEvent { event }).await.unwrap();
    assert_eq!(first.event.status, EventStatus::Cancelled);
    assert_eq!((first.created_at, first.updated_at), (made.created_at, called_off_at));
    assert!(world.catalog.sale(&world.anonymous(), SaleOf { event }).await.unwrap().cancelled);

    world.clock.advance(HOUR);
    let second = world.catalog.cancel_event(&world.admin(), CancelEvent { event }).await.unwrap();
    assert_eq!(second, first, "cancelling again changes nothing");
    let page = world.catalog.seats(&world.anonymous(), SeatsOf { event, from: 0 }).await.unwrap();
    assert_eq!(page.seats.len(), 265, "the seats stay readable for ticket holders");
}

pub(crate) async fn listing_halls_and_changing_events_requires_admin(world: &World) {
    let event = world.create(world.standing("궤도")).await.event;
    let callers =
        [(world.anonymous(), CommonError::SignInRequired), (world.buyer(), CommonError::AdminRequired)];
    for (ctx, required) in callers {
        assert_eq!(world.catalog.layouts(&ctx, ListLayouts {}).await, Err(required.into()));
        let asked = world.standing("mine");
        assert_eq!(world.catalog.create_event(&ctx, asked).await, Err(required.into()));
        let cancel = CancelEvent { event: event.id };
        assert_eq!(world.catalog.cancel_event(&ctx, cancel).await, Err(required.into()));
    }
    assert_eq!(world.event(event.id).await.event, event);
    assert_eq!(world.count().await, 1);
    let platform = urr_rpc::Ctx::system(&world.ids, &world.clock);
    assert!(world.catalog.layouts(&platform, ListLayouts {}).await.is_ok());
}
