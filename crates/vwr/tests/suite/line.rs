//! Positions, tickets and passes, through the contract.

use std::sync::Arc;

use tokio::task::JoinSet;
use urr_contracts::vwr::{Actions, ActionsOf, Assign, CheckTicket, Checked, Error, GiveOrder, Order, RoomOf};
use urr_kernel::{Actor, CommonError, OrderKey, Role};
use urr_passes::{Secret, vwr_ticket};

use super::world::{World, passes, tickets};

pub(crate) async fn every_visitor_gets_one_position_in_order(world: &World) {
    let event = world.ids.next();
    assert_eq!(world.try_assign(event, world.ids.next()).await, Err(Error::NotActive));
    let event = world.open().await;
    let mut arrivals = JoinSet::new();
    for _ in 0..300 {
        let (vwr, ctx, visitor) = (Arc::clone(&world.vwr), world.anybody(), world.ids.next());
        arrivals.spawn(async move {
            let assigned = vwr.assign(&ctx, Assign { event, visitor, ticket: None }).await.unwrap();
            (visitor, assigned)
        });
    }
    let arrived = arrivals.join_all().await;
    let mut places: Vec<u64> = arrived.iter().map(|(_, assigned)| assigned.place.position).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=300).collect::<Vec<u64>>());

    let tickets = tickets();
    let opened_at = world.vwr.room(&world.anybody(), RoomOf { event }).await.unwrap().opened_at;
    for (visitor, assigned) in &arrived {
        let ticket = tickets.verify(&assigned.ticket, world.clock.now()).unwrap();
        assert_eq!(ticket.order, OrderKey::counted(opened_at, assigned.place.position));
        assert_eq!((ticket.event, ticket.visitor), (event, *visitor));
    }
    let (visitor, assigned) = &arrived[0];
    let again = world.try_assign(event, *visitor).await.unwrap();
    assert_eq!(again.place.position, assigned.place.position, "a repeated request returns the same position");
    let shown = Assign { event, visitor: *visitor, ticket: Some(assigned.ticket.clone()) };
    assert_eq!(world.vwr.assign(&world.anybody(), shown).await.unwrap().ticket, assigned.ticket);
}

/// Batches of arrivals follow each other without a gap.
pub(crate) async fn consecutive_batches_leave_no_gap(world: &World) {
    let event = world.open().await;
    let mut arrivals = JoinSet::new();
    for _ in 0..8 {
        let (vwr, ctx, ids) = (Arc::clone(&world.vwr), world.anybody(), world.ids.clone());
        arrivals.spawn(async move {
            let mut places = Vec::new();
            for _ in 0..100 {
                let request = Assign { event, visitor: ids.next(), ticket: None };
                places.push(vwr.assign(&ctx, request).await.unwrap().place.position);
            }
            assert!(places.is_sorted(), "positions follow the order of arrival: {places:?}");
            places
        });
    }
    let mut places: Vec<u64> = arrivals.join_all().await.concat();
    places.sort_unstable();
    assert_eq!(places, (1..=800).collect::<Vec<u64>>());
}

pub(crate) async fn a_ticket_becomes_one_pass(world: &World) {
    let event = world.open().await;
    let (first, assigned) = world.assign(event).await;
    let (second, behind) = world.assign(event).await;
    let Checked::Waiting { place } = world.check(event, first, &assigned.ticket).await.unwrap() else {
        panic!("no visitor was admitted yet")
    };
    assert_eq!((place.position, place.ahead, place.serving), (1, 0, 0));
    world.order(event, Order::Advance { batch: 1 }).await;
    let Checked::Admitted { token, .. } = world.check(event, first, &assigned.ticket).await.unwrap() else {
        panic!("the visitor's turn has come")
    };
    let pass = passes().verify(&token, world.clock.now()).unwrap().pass;
    assert_eq!((pass.event, pass.visitor, pass.position), (event, first, 1));
    assert!(matches!(world.check(event, second, &behind.ticket).await, Ok(Checked::Waiting { .. })));
    let again =
        CheckTicket { event, ticket: assigned.ticket, visitor: Some(first), pass: Some(token.clone()) };
    let again = world.vwr.check(&world.anybody(), again).await.unwrap();
    assert!(matches!(again, Checked::Admitted { token: same, .. } if same == token));
    let foreign = CheckTicket { event, ticket: behind.ticket, visitor: Some(second), pass: Some(token) };
    let foreign = world.vwr.check(&world.anybody(), foreign).await.unwrap();
    assert!(matches!(foreign, Checked::Waiting { .. }), "another browser's pass is ignored");
}

pub(crate) async fn closing_the_room_admits_waiting_visitors(world: &World) {
    let event = world.open().await;
    let (visitor, assigned) = world.assign(event).await;
    world.order(event, Order::Deactivate).await;
    assert_eq!(world.try_assign(event, world.ids.next()).await, Err(Error::NotActive));
    let checked = world.check(event, visitor, &assigned.ticket).await.unwrap();
    assert!(matches!(checked, Checked::Admitted { .. }));
    world.order(event, Order::Activate { rate: None, fail_open: None }).await;
    let void = world.check(event, visitor, &assigned.ticket).await;
    assert_eq!(void, Err(Error::PositionNotFound), "tickets of the earlier opening are void");
    assert_eq!(
        world.try_assign(event, visitor).await.unwrap().place.position,
        1,
        "positions start from one again"
    );
}

pub(crate) async fn invalid_tickets_are_refused(world: &World) {
    let (event, other) = (world.open().await, world.open().await);
    let (visitor, assigned) = world.assign(event).await;
    world.order(event, Order::Advance { batch: 1 }).await;
    let ticket = assigned.ticket;
    let mut changed = ticket.clone().into_bytes();
    changed[20] = if changed[20] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    let foreign_key = vwr_ticket::Tickets::new([vwr_ticket::key(
        &Secret::new("another secret, which signs nothing here").unwrap(),
    )]);
    let tickets = tickets();
    let good = tickets.verify(&ticket, world.clock.now()).unwrap();
    let old = vwr_ticket::Ticket { issued: world.clock.now().before(vwr_ticket::LIFETIME), ..good };
    let (nobody, not_theirs) = (Err(Error::PositionNotFound), Err(Error::NotYourPlace));
    let stranger = world.ids.next();
    for (what, event, visitor, ticket, expected) in [
        ("forged", event, visitor, changed, &nobody),
        ("of another key", event, visitor, foreign_key.sign(&good), &nobody),
        ("expired", event, visitor, tickets.sign(&old), &nobody),
        ("of another event", other, visitor, ticket.clone(), &nobody),
        ("of no room", world.ids.next(), visitor, ticket.clone(), &nobody),
        ("a number made up by the client", event, visitor, "1".to_owned(), &nobody),
        ("another browser's", event, stranger, ticket.clone(), &not_theirs),
    ] {
        assert_eq!(world.check(event, visitor, &ticket).await, *expected, "{what}");
    }
    let unnamed = CheckTicket { event, ticket, visitor: None, pass: None };
    assert_eq!(world.vwr.check(&world.anybody(), unnamed).await, not_theirs);
}

pub(crate) async fn only_operators_decide(world: &World) {
    let event = world.open().await;
    let user = world.ctx(Actor::User { id: world.ids.next(), role: Role::User });
    let callers = [(world.anybody(), CommonError::SignInRequired), (user, CommonError::AdminRequired)];
    for (ctx, required) in callers {
        for order in [Order::Deactivate, Order::Pause, Order::Advance { batch: 1 }] {
            let refused = world.vwr.order(&ctx, GiveOrder { event, order }).await;
            assert_eq!(refused.unwrap_err(), Error::from(required));
        }
        let actions = ActionsOf { event, limit: 1 };
        assert_eq!(world.vwr.actions(&ctx, actions).await, Err(required.into()));
    }
    let operator = world.operator();
    let bad = world.vwr.order(&operator, GiveOrder { event, order: Order::Advance { batch: 0 } }).await;
    assert!(matches!(bad, Err(Error::BadBatch { .. })));
    let Actions { actions } = world.vwr.actions(&operator, ActionsOf { event, limit: 10 }).await.unwrap();
    assert_eq!(actions.len(), 1, "refused commands are not recorded: {actions:?}");
}
