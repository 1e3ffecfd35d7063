//! Who got which ticket a moment ago: two tabs of one browser that ask at once, or one that asks again before it has kept its
//! ticket, stand in line once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use urr_kernel::{EventId, VisitorId};
use urr_passes::vwr_ticket::Ticket;

/// Tickets of one generation; two are kept. At 150 bytes each that is 15 MB at most, and at ten thousand arrivals a second it
/// reaches back five to ten seconds.
const GENERATION: usize = 50_000;

/// The latest tickets.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<(EventId, VisitorId), Ticket>,
    old: HashMap<(EventId, VisitorId), Ticket>,
}

impl Recent {
    /// The ticket that a browser got for this opening of a room.
    pub(crate) fn find(&self, event: EventId, visitor: VisitorId, epoch: u64) -> Option<Ticket> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            generations.young.get(&(event, visitor)).or_else(|| generations.old.get(&(event, visitor)));
        found.copied().filter(|ticket| ticket.epoch == epoch)
    }

    /// Remembers a ticket, unless its browser has one. Answers with the one that counts.
    pub(crate) fn keep(&self, ticket: Ticket) -> Ticket {
        if let Some(earlier) = self.find(ticket.event, ticket.visitor, ticket.epoch) {
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
                if known.epoch != ticket.epoch {
                    *known = ticket;
                }
            })
            .or_insert(ticket)
    }
}
