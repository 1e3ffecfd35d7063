//! Recently issued tickets. Two tabs of one browser that join at the same moment, or a retry before
//! the cookie was stored, get one position.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use urr_kernel::{EventId, Timestamp, VisitorId};
use urr_passes::vwr_ticket::{LIFETIME, Ticket};

/// Tickets per generation; two generations are kept. At 150 bytes each that is at most 15 MB, and
/// covers five to ten seconds at ten thousand arrivals per second.
const GENERATION: usize = 50_000;

#[derive(Debug, Default)]
pub(crate) struct RecentTickets(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<(EventId, VisitorId), Ticket>,
    old: HashMap<(EventId, VisitorId), Ticket>,
}

impl RecentTickets {
    /// The ticket of a browser for this opening of a room, if it is still valid.
    pub(crate) fn find(
        &self,
        event: EventId,
        visitor: VisitorId,
        epoch: u64,
        now: Timestamp,
    ) -> Option<Ticket> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            generations.young.get(&(event, visitor)).or_else(|| generations.old.get(&(event, visitor)));
        found.copied().filter(|ticket| is_good(ticket, epoch, now))
    }

    /// Stores a new ticket, unless its browser has one. Returns the one that counts.
    pub(crate) fn keep(&self, ticket: Ticket) -> Ticket {
        if let Some(earlier) = self.find(ticket.event, ticket.visitor, ticket.epoch, ticket.issued) {
            return earlier;
        }
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= GENERATION {
            generations.old = std::mem::take(&mut generations.young);
        }
        *generations
            .young
            .entry((ticket.event, ticket.visitor))
            .and_modify(|known| {
                if !is_good(known, ticket.epoch, ticket.issued) {
                    *known = ticket;
                }
            })
            .or_insert(ticket)
    }
}
fn is_good(ticket: &Ticket, epoch: u64, now: Timestamp) -> bool {
    ticket.epoch == epoch && now < ticket.issued.after(LIFETIME)
}

#[cfg(test)]
mod tests {
    use urr_kernel::OrderKey;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_browser_has_one_valid_ticket_per_opening() {
        let (event, visitor) = (EventId::from_uuid(Uuid::nil()), VisitorId::from_uuid(Uuid::nil()));
        let start = Timestamp::from_micros(1);
        let ticket = |position, epoch, issued| Ticket {
            event,
            visitor,
            position,
            order: OrderKey::counted(start, position),
            epoch,
            issued,
        };
        let recent_tickets = RecentTickets::default();
        assert_eq!(recent_tickets.keep(ticket(1, 1, start)).position, 1);
        assert_eq!(recent_tickets.keep(ticket(2, 1, start)).position, 1, "two tabs share one position");
        assert_eq!(
            recent_tickets.keep(ticket(3, 2, start)).position,
            3,
            "another opening gives another position"
        );
        let a_day_later = start.after(LIFETIME);
        assert_eq!(recent_tickets.find(event, visitor, 2, a_day_later), None);
        assert_eq!(
            recent_tickets.keep(ticket(4, 2, a_day_later)).position,
            4,
            "an expired ticket is replaced"
        );
        assert_eq!(recent_tickets.find(event, visitor, 2, a_day_later).map(|found| found.position), Some(4));
    }
}
