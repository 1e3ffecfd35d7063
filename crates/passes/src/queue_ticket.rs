//! The queue ticket: a place in an event's own line, in the cookie `urr-queue-ticket`. It brings the place back when the store that
//! kept the line has lost it.

use std::time::Duration;

use urr_kernel::{EventId, OrderKey, Timestamp, UserId};

use crate::{
    Key, Refusal, Secret,
    compact::{Compact, Fields, within},
};

/// How long a place is kept for whoever does not come back.
pub const LIFETIME: Duration = Duration::from_hours(24);

/// The cookie with the place in line. Paths tell those of several events apart.
pub const COOKIE: &str = "urr-queue-ticket";

const PURPOSE: &str = "queue-ticket";
const KIND: u8 = b'Q';
const LENGTH: usize = 16 + 16 + 3 * 8;

/// The key for queue tickets.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// What a ticket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// For which event.
    pub event: EventId,
    /// Whose place it is.
    pub user: UserId,
    /// The place.
    pub order: OrderKey,
    /// Since when the line has not been cleared. Places in a line that was cleared are void.
    pub epoch: u64,
    /// When its owner joined.
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
            .uuid(ticket.user.as_uuid())
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
            user: UserId::from_uuid(read.uuid()?),
            order: read.order()?,
            epoch: read.number()?,
            issued: read.instant()?,
        };
        within(ticket.issued, LIFETIME, now)?;
        Ok(ticket)
    }
}
