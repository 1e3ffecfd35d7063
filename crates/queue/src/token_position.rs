//! Positions promised by verified tokens, and which of those promises hold.

use urr_kernel::{OrderKey, Timestamp};

use crate::journal::Source;

/// A position promised by a verified token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPosition {
    /// The order key.
    pub order: OrderKey,
    /// Epoch of a queue ticket, which is void once the line was cleared. `None` for a Tier 1 pass.
    pub epoch: Option<u64>,
    /// When the ticket was issued, or when the wait in Tier 1 began. A slot given later uses the
    /// promise up.
    pub since: Timestamp,
}

impl TokenPosition {
    /// The kind of token.
    pub(crate) fn source(&self) -> Source {
        if self.epoch.is_some() { Source::Ticket } else { Source::Pass }
    }
}

/// What a joining user may get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'a> {
    /// Promises of their tokens. The first that holds counts.
    pub(crate) promises: &'a [TokenPosition],
    /// Whether they get a new position if none holds.
    pub(crate) may_be_new: bool,
}

impl<'a> Claim<'a> {
    /// One promise, or else a new position.
    pub(crate) fn of(promise: Option<&'a TokenPosition>) -> Self {
        Self { promises: promise.map_or(&[], std::slice::from_ref), may_be_new: true }
    }

    /// The first promise that holds, and what is wrong with the others.
    pub(crate) fn kept(
        &self,
        flaw: impl Fn(&TokenPosition) -> Option<Flaw>,
    ) -> (Option<TokenPosition>, Flaws) {
        let (mut kept, mut flaws) = (None, Flaws::default());
        for promise in self.promises {
            match flaw(promise) {
                Some(flaw) => flaws.note(promise, flaw),
                None => kept = kept.or(Some(*promise)),
            }
        }
        (kept, flaws)
    }
}

/// Why a promise does not hold, as only the room can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The line was cleared after the token was issued.
    Void,
    /// The position was used, or the user has had a turn since.
    Used,
}

/// What is wrong with a user's promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    /// That of the queue ticket.
    pub ticket: Option<Flaw>,
    /// That of the Tier 1 pass.
    pub pass: Option<Flaw>,
}

impl Flaws {
    pub(crate) fn note(&mut self, promise: &TokenPosition, flaw: Flaw) {
        match promise.source() {
            Source::Ticket => self.ticket = Some(flaw),
            Source::Pass | Source::New => self.pass = Some(flaw),
        }
    }
}
