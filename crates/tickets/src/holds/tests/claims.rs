//! Single claims whose sale ends, or whose number is taken, between two steps.

use std::{sync::Arc, time::Duration};

use urr_contracts::tickets::{Error, SeatMapOf, SeatStatus, Tickets as _};

use super::{World, hold_request};
use crate::{Failure, holds};

/// A claim may be queued for a while. The time at which it starts counts.
pub(super) async fn a_claim_that_starts_after_the_sale_is_rejected(world: &World) {
    let (now, minute) = (world.clock.now(), Duration::from_mins(1));
    let (event, seats) = world.event_on_sale(2, (now, now.after(minute)));
    let claim = Arc::new(world.claim(&world.buyer(), &hold_request(event, &seats[..1])).await);
    world.clock.advance(minute);
    let refused = world.service.claim(&claim).await;
    let Err(Failure::Refused(refused)) = refused else {
        panic!("the claim succeeded after the end of the sale")
    };
    assert_eq!(refused, Error::SaleEnded { ended_at: now.after(minute) });
    let map = world.service.seat_map(&world.buyer(), SeatMapOf { event }).await.unwrap();
    assert!(map.seats.iter().all(|seat| seat.status == SeatStatus::Available));
}

pub(super) async fn a_colliding_reservation_number_is_replaced(world: &World) {
    let (event, seats) = world.event(2);
    let first = world.hold(&world.buyer(), hold_request(event, &seats[..1])).await;
    let mut claim = world.claim(&world.buyer(), &hold_request(event, &seats[1..])).await;
    claim.reservation.number.clone_from(&first.number);
    let second = holds::enter(&world.service, Arc::new(claim), &mut None).await.unwrap();
    assert_ne!(second.number, first.number);
    assert_eq!(second.seats[0].id, seats[1]);
}
