//! Tickets and the passes they become. No visitor data is stored, and a check reads no store.

use urr_contracts::vwr::{Assign, Assigned, CheckTicket, Checked, Error, Room};
use urr_kernel::{OrderKey, Timestamp};
use urr_passes::{
    vwr_pass::{self, Pass},
    vwr_ticket::Ticket,
};
use uuid::Uuid;

use crate::{Failure, position_batcher, rules, service::Service};

/// The browser's position: the one it has, or the next.
pub(crate) async fn assign(service: &Service, request: Assign) -> Result<Assigned, Failure> {
    let (room, speed) = service.room_cache.room(request.event)?.ok_or(Error::NotActive)?;
    if !room.active {
        return Err(Error::NotActive.into());
    }
    let now = service.clock.now();
    let held = request.ticket.and_then(|text| service.tickets.verify(&text, now).ok());
    let held = held.filter(|ticket| ticket.visitor == request.visitor && is_of(ticket, &room));
    let held = held.or_else(|| service.recent_tickets.find(room.event, request.visitor, room.epoch, now));
    let (ticket, room) = if let Some(ticket) = held {
        (ticket, room)
    } else {
        let counted = position_batcher::next(&service.batcher, request.event).await?;
        let ticket = Ticket {
            event: request.event,
            visitor: request.visitor,
            position: counted.position,
            order: OrderKey::counted(counted.room.opened_at, counted.position),
            epoch: counted.room.epoch,
            issued: now,
        };
        metrics::counter!("urr_vwr_assigned_total").increment(1);
        (service.recent_tickets.keep(ticket), counted.room)
    };
    let place = rules::place(&room, ticket.position, speed);
    Ok(Assigned { ticket: service.tickets.sign(&ticket), place })
}

/// Whether a ticket's turn has come.
pub(crate) fn check(service: &Service, request: &CheckTicket) -> Result<Checked, Error> {
    let now = service.clock.now();
    let ticket = service.tickets.verify(&request.ticket, now).map_err(|_| Error::PositionNotFound)?;
    let (room, speed) = service.room_cache.room(request.event)?.ok_or(Error::PositionNotFound)?;
    if !is_of(&ticket, &room) {
        return Err(Error::PositionNotFound);
    }
    if request.visitor != Some(ticket.visitor) {
        return Err(Error::NotYourPlace);
    }
    let place = rules::place(&room, ticket.position, speed);
    if room.active && ticket.position > room.serving {
        return Ok(Checked::Waiting { place });
    }
    let (token, expires_at) = pass(service, &ticket, request.pass.as_deref(), now);
    Ok(Checked::Admitted { place, token, expires_at })
}

/// Whether the ticket belongs to the current opening of this room.
fn is_of(ticket: &Ticket, room: &Room) -> bool {
    ticket.event == room.event && ticket.epoch == room.epoch
}

/// The pass of a ticket: the same one as long as it is valid.
fn pass(service: &Service, ticket: &Ticket, held: Option<&str>, now: Timestamp) -> (String, Timestamp) {
    let pass =
        Pass { event: ticket.event, visitor: ticket.visitor, order: ticket.order, position: ticket.position };
    if let Some(held) = held
        && let Ok(verified) = service.passes.verify(held, now)
        && verified.pass == pass
    {
        return (held.to_owned(), verified.expires);
    }
    metrics::counter!("urr_vwr_passes_total").increment(1);
    let token = service.passes.sign_since(ticket.issued, &pass, name(ticket), now);
    (token, now.after(vwr_pass::LIFETIME))
}

/// All passes of a ticket have the same id.
fn name(ticket: &Ticket) -> Uuid {
    let count = (u128::from(ticket.epoch) << 64) | u128::from(ticket.position);
    Uuid::from_u128(ticket.event.as_uuid().as_u128() ^ ticket.visitor.as_uuid().as_u128() ^ count)
}
