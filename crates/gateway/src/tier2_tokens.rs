//! Tokens that replace a Tier 1 pass: of a position or a slot in Tier 2, behind the Tier 1 line.
//!
//! An operator may open Tier 1 during a sale. Users who already wait in Tier 2, or are admitted,
//! came before the visitors of the new line; sending them to its end would let others overtake
//! them. A pass also expires sooner than a long wait in Tier 2. Both groups carry a token of their
//! position or slot, signed for their account and this event, which is accepted instead of a pass.
//!
//! Such a token leads back to that position or slot only. The signature does not prove that the
//! position is unused, so Tier 2 is informed that Tier 1 is open
//! ([`OnlyResume`](urr_http::OnlyResume)) and gives the caller the position of their tokens or
//! none. A token kept after its slot has ended therefore does not bypass the line. The same holds
//! for a pass.

use http::HeaderMap;
use urr_http::cookie;
use urr_kernel::{EventId, Timestamp, UserId};
use urr_passes::{
    entry::Entries,
    queue_ticket::{self, Tickets},
};

use crate::slots;

/// Entry tokens examined per request: a header, and the cookies of a few events at once. More are
/// ignored.
const MAX_ENTRIES: usize = 4;

/// Verifies entry tokens and queue tickets.
#[derive(Clone, Debug)]
pub struct Tier2Tokens {
    entries: Entries,
    tickets: Tickets,
}

impl Tier2Tokens {
    /// Creates a verifier from those of both kinds of token.
    pub fn new(entries: Entries, tickets: Tickets) -> Self {
        Self { entries, tickets }
    }

    /// Returns the owners of the valid tokens of a request for an event. Tokens can be copied, so
    /// the caller must be one of them.
    pub(crate) fn owners(
        &self,
        event: EventId,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> impl Iterator<Item = UserId> {
        let entries = slots::carried(headers).take(MAX_ENTRIES);
        let entries = entries.filter_map(move |token| self.entries.verify(token, now).ok());
        let inside = entries.filter(move |entry| entry.event == event).map(|entry| entry.user);
        let ticket = cookie(headers, queue_ticket::COOKIE).into_iter();
        let ticket = ticket.filter_map(move |text| self.tickets.verify(text, now).ok());
        inside.chain(ticket.filter(move |ticket| ticket.event == event).map(|ticket| ticket.user))
    }
}
