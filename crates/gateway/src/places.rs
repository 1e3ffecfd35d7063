//! Who needs no pass of the line in front of everything, because they have a place behind it.
//!
//! An operator may open that line in the middle of a sale. Whoever waits in the line of the seats by then, or is inside, was seen
//! before anybody in the new one; sending them to its end would let others overtake them. A pass is also shorter than a wait: whoever
//! got past the line hours ago has none any more when their turn comes. Both carry a token of the place that they have, signed for
//! their account and this event, and it stands in for the pass.
//!
//! It opens the way back to that place and to no other. The signature does not tell whether the place was used meanwhile, so the line of
//! the seats is told that a line stands in front ([`OnlyResume`](urr_http::OnlyResume)), and gives whoever comes the place that their
//! tokens tell of or none: a token that is kept after its slot has ended leads nobody past those who wait in front. So it is with a pass.

use http::HeaderMap;
use urr_http::cookie;
use urr_kernel::{EventId, Timestamp, UserId};
use urr_passes::{
    entry::Entries,
    queue_ticket::{self, Tickets},
};

use crate::slots;

/// Entry tokens that are looked at: a header and the cookies of a few events in which somebody is at once. More are nobody's.
const MAX_ENTRIES: usize = 4;

/// Reads what people carry who are inside or wait for it.
#[derive(Clone, Debug)]
pub struct Places {
    entries: Entries,
    tickets: Tickets,
}

impl Places {
    /// Believes what these read.
    pub fn new(entries: Entries, tickets: Tickets) -> Self {
        Self { entries, tickets }
    }

    /// The accounts whose places at an event a request tells of. Tokens are copied easily: whoever asks has to be one of them.
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
