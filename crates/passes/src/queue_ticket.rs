//! The queue ticket: a position in an event's own queue, in the cookie `urr-queue-ticket`. It
//! restores the position if the queue's store lost it.

use std::time::Duration;

use urr_kernel::{EventId, OrderKey, Timestamp, UserId};

use crate::{
    Key, Refusal, Secret,
    compact::{Compact, Fields, within},
};

/// How long a position is kept for a user who does not return.
pub const LIFETIME: Duration = Duration::from_hours(24);

/// The cookie of the ticket. Cookie paths separate the tickets of several events.
pub const COOKIE: &str = "urr-queue-ticket";

const PURPOSE: &str = "queue-ticket";
const KIND: u8 = b'Q';
const LENGTH: usize = 16 + 16 + 3 * 8;

/// The key for queue tickets.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// The contents of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The event.
    pub event: EventId,
    /// The user.
    pub user: UserId,
    /// The sort key of the position.
    pub order: OrderKey,
    /// The queue's epoch, which changes when the queue is cleared. Tickets of an earlier epoch are
    /// void.
    pub epoch: u64,
    /// When the user joined.
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
            .uuid(ticket.user.as_uuid())
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
            user: UserId::from_uuid(read.uuid()?),
            order: read.order()?,
            epoch: read.number()?,
            issued: read.instant()?,
        };
        within(ticket.issued, LIFETIME, now)?;
        Ok(ticket)
    }
}
