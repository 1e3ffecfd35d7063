//! While the store is unreachable, or has not answered yet: visitors keep their tickets, and
//! admissions stop.

use axum::http::{Method, StatusCode, header};
use urr_contracts::vwr::{Assign, CheckTicket, Checked, Error, ListRooms, Order, RoomOf, Vwr as _};
use urr_kernel::{CommonError, EventId, OrderKey, VisitorId};
use urr_kv::KvConfig;
use urr_passes::vwr_ticket::Ticket;
use urr_testkit::{Proxy, STORY_LIMIT, Transport, services, until};

use super::{
    http::{Browser, text_of},
    world::{World, marks, secrets, tickets},
};

pub(crate) async fn a_process_without_rooms_yet_keeps_tickets(world: &World) {
    let event = world.open().await;
    let (visitor, assigned) = world.assign(event).await;
    let other = world.another(secrets());
    let stand = async || {
        let request = Assign { event, visitor, ticket: Some(assigned.ticket.clone()) };
        other.assign(&world.anybody(), request).await.map(|stood| stood.place.position)
    };
    let look = async || {
        let ticket = assigned.ticket.clone();
        let request = CheckTicket { event, ticket, visitor: Some(visitor), pass: None };
        let checked = other.check(&world.anybody(), request).await;
        checked.map(|checked| matches!(checked, Checked::Waiting { .. }))
    };
    assert_eq!(stand().await, Err(Error::Common(CommonError::Unavailable)));
    assert_eq!(look().await, Err(Error::Common(CommonError::Unavailable)));
    let room = other.room(&world.anybody(), RoomOf { event }).await;
    assert_eq!(room, Err(Error::Common(CommonError::Unavailable)));
    other.refresh().await.unwrap();
    assert_eq!(
        (stand().await, look().await),
        (Ok(assigned.place.position), Ok(true)),
        "the position is kept"
    );
}

pub(crate) async fn unavailable_until_the_store_has_answered(world: &World) {
    let rooms = async || world.vwr.rooms(&world.anybody(), ListRooms {}).await;
    assert_eq!(rooms().await, Err(Error::Common(CommonError::Unavailable)));
    world.service.refresh().await.unwrap();
    assert!(rooms().await.unwrap().rooms.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_wait_without_the_store_unless_the_room_fails_open() {
    let Some(redis) = services::redis() else { return };
    let mut proxy = Proxy::start(redis.trim_start_matches("redis://")).await;
    let config = KvConfig::single(format!("redis://{}", proxy.address()));
    let Some(world) = World::on_redis(&config, Transport::Local).await else { return };
    let (closed, open) = (world.open().await, world.ids.next());
    world.order(open, Order::Activate { rate: Some(0), fail_open: Some(true) }).await;
    world.service.refresh().await.unwrap();
    let mut places = Vec::new();
    for event in [closed, open] {
        places.push((event, world.assign(event).await));
    }
    proxy.cut().await;
    until(STORY_LIMIT, async || {
        assert!(world.service.refresh().await.is_err(), "the store is unreachable");
        !world.service.is_fresh()
    })
    .await;
    for (event, (visitor, assigned)) in &places {
        let checked = world.check(*event, *visitor, &assigned.ticket).await.unwrap();
        assert_eq!(matches!(checked, Checked::Admitted { .. }), *event == open);
    }
    let started = world.another(secrets());
    assert!(started.refresh().await.is_err());
    for (event, (visitor, assigned)) in &places {
        let (event, ticket) = (*event, assigned.ticket.clone());
        let request = CheckTicket { event, ticket, visitor: Some(*visitor), pass: None };
        let checked = started.check(&world.anybody(), request).await;
        assert_eq!(
            checked,
            Err(Error::Common(CommonError::Unavailable)),
            "a process that starts now has no rooms"
        );
    }
    assert_eq!(
        world.try_assign(closed, world.ids.next()).await,
        Err(Error::Common(CommonError::Unavailable))
    );
    assert_eq!(world.try_assign(open, world.ids.next()).await, Err(Error::NotActive), "the room fails open");
    proxy.restore().await;
    until(STORY_LIMIT, async || world.service.refresh().await.is_ok()).await;
    until(STORY_LIMIT, async || world.try_assign(closed, world.ids.next()).await.is_ok()).await;
    let (event, (visitor, assigned)) = &places[1];
    let checked = world.check(*event, *visitor, &assigned.ticket).await.unwrap();
    assert!(matches!(checked, Checked::Waiting { .. }), "it recovers by itself");
}

pub(crate) async fn routes_are_unavailable_until_the_first_refresh(world: &World) {
    let (event, visitor) = (world.ids.next::<EventId>(), world.ids.next::<VisitorId>());
    let (position, issued) = (7, world.clock.now());
    let order = OrderKey::counted(issued, position);
    let ticket = Ticket { event, visitor, position, order, epoch: 1, issued };
    let ticket = tickets().sign(&ticket);
    let mut browser = Browser::default();
    browser.0.insert("urr-visitor".to_owned(), marks().sign(visitor));
    browser.0.insert(format!("urr-vwr-{}", event.as_uuid().simple()), ticket.clone());
    let before = browser.0.clone();
    for (method, path) in [
        (Method::POST, format!("/vwr/assign/{event}")),
        (Method::GET, format!("/vwr/check/{event}/{ticket}")),
        (Method::GET, format!("/vwr/serving/{event}")),
        (Method::GET, format!("/vwr/status/{event}")),
        (Method::GET, format!("/edge/check?event={event}")),
    ] {
        let answer = browser.send(world, method, &path).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(answer.headers().contains_key(header::RETRY_AFTER), "{path}");
    }
    let plain = browser.send(world, Method::GET, &format!("/vwr/{event}?plain=1")).await;
    assert_eq!(plain.status(), StatusCode::OK);
    let text = text_of(plain).await;
    assert!(text.contains("http-equiv=\"refresh\"") && text.contains("class=\"warn\""), "{text}");
    assert_eq!(browser.0, before, "the browser keeps its ticket");
}
