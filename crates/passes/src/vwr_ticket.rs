//! The Tier 1 ticket: a position in the Tier 1 queue of an event. In the API it is called
//! `requestId`. The browser keeps it and presents it when its turn comes; the server stores nothing
//! about it.

use std::time::Duration;

use urr_kernel::{EventId, OrderKey, Timestamp, VisitorId};

use crate::{
    Key, Refusal, Secret,
    compact::{Compact, Fields, within},
};

/// How long a position is kept for a browser that does not return.
pub const LIFETIME: Duration = Duration::from_hours(24);

const PURPOSE: &str = "vwr-ticket";
const KIND: u8 = b'T';
const LENGTH: usize = 16 + 16 + 4 * 8;

/// The key for Tier 1 tickets.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// The contents of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The event.
    pub event: EventId,
    /// The browser it was issued to.
    pub visitor: VisitorId,
    /// The position, counted from one.
    pub position: u64,
    /// The sort key that Tier 2 uses.
    pub order: OrderKey,
    /// The opening of the room that assigned the position. Positions of earlier openings are void.
    pub epoch: u64,
    /// When it was issued.
    pub issued: Timestamp,
}

/// Signs and verifies tickets: the first key signs, all keys verify.
#[derive(Clone, Debug)]
pub struct Tickets(Compact);

impl Tickets {
    /// Signs with the first of `keys` and verifies with all of them.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(Compact::new(KIND, keys))
    }

    /// Signs a ticket.
    pub fn sign(&self, ticket: &Ticket) -> String {
        let fields = Fields::default()
            .uuid(ticket.event.as_uuid())
            .uuid(ticket.visitor.as_uuid())
            .number(ticket.position)
            .number(ticket.order.as_u64())
            .number(ticket.epoch)
            .instant(ticket.issued);
        self.0.sign(&fields)
    }

    /// Returns the contents if the ticket is genuine and valid at `now`.
    pub fn verify(&self, text: &str, now: Timestamp) -> Result<Ticket, Refusal> {
        let fields = self.0.verify(text, LENGTH)?;
        let mut read = fields.read();
        let ticket = Ticket {
            event: EventId::from_uuid(read.uuid()?),
            visitor: VisitorId::from_uuid(read.uuid()?),
            position: read.number()?,
            order: read.order()?,
            epoch: read.number()?,
            issued: read.instant()?,
        };
        within(ticket.issued, LIFETIME, now)?;
        Ok(ticket)
    }
}
