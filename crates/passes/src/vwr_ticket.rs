//! The Tier 1 ticket: a place in the line in front of everything. On the wire it is called `requestId`; a browser keeps it and shows
//! it when its place comes up. Nothing about it is stored anywhere else.

use std::time::Duration;

use urr_kernel::{EventId, OrderKey, Timestamp, VisitorId};

use crate::{
    Key, Refusal, Secret,
    compact::{Compact, Fields, within},
};

/// How long a place is kept for whoever does not come back.
pub const LIFETIME: Duration = Duration::from_hours(24);

const PURPOSE: &str = "vwr-ticket";
const KIND: u8 = b'T';
const LENGTH: usize = 16 + 16 + 4 * 8;

/// The key for Tier 1 tickets.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// What a ticket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// For which event.
    pub event: EventId,
    /// To which browser it was given.
    pub visitor: VisitorId,
    /// The place, counted from one.
    pub position: u64,
    /// What Tier 2 sorts by.
    pub order: OrderKey,
    /// Which opening of the room counted the place. Places of an earlier one are void.
    pub epoch: u64,
    /// When it was given.
    pub issued: Timestamp,
}

/// Makes and reads tickets. Signs with the first key, reads with all.
#[derive(Clone, Debug)]
pub struct Tickets(Compact);

impl Tickets {
    /// Tickets of any of `keys`, made by the first.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(Compact::new(KIND, keys))
    }

    /// The ticket as text.
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

    /// What the ticket says, if it is one of ours and good at `now`.
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
