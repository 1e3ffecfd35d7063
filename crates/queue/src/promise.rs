//! Places that verified tokens promise, and which of those promises hold.

use urr_kernel::{OrderKey, Timestamp};

use crate::journal::Source;

/// A place that a verified token promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The place.
    pub order: OrderKey,
    /// A queue ticket is void once the line was cleared. A Tier 1 pass knows nothing of that.
    pub epoch: Option<u64>,
    /// When the ticket was given, or when the wait in Tier 1 began. Whoever was let in later has had what it promises.
    pub since: Timestamp,
}

impl Promise {
    /// Which token tells of it.
    pub(crate) fn source(&self) -> Source {
        if self.epoch.is_some() { Source::Ticket } else { Source::Pass }
    }
}

/// What somebody claims who comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'a> {
    /// What their tokens promise. The first that holds is their place, and one that does not hides no other.
    pub(crate) promises: &'a [Promise],
    /// Whether they get a new place if none holds.
    pub(crate) may_be_new: bool,
}

impl<'a> Claim<'a> {
    /// One place, or else a new one.
    pub(crate) fn of(promise: Option<&'a Promise>) -> Self {
        Self { promises: promise.map_or(&[], std::slice::from_ref), may_be_new: true }
    }

    /// The promise that counts, and what is wrong with the others.
    pub(crate) fn kept(&self, flaw: impl Fn(&Promise) -> Option<Flaw>) -> (Option<Promise>, Flaws) {
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

/// Why a promise does not hold. Only the room knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The line was cleared since.
    Void,
    /// The slot for which the place was good has ended, or that of a place behind it.
    Used,
}

/// What is wrong with the promises that somebody came with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    /// With that of a queue ticket.
    pub ticket: Option<Flaw>,
    /// With that of a Tier 1 pass.
    pub pass: Option<Flaw>,
}

impl Flaws {
    pub(crate) fn note(&mut self, promise: &Promise, flaw: Flaw) {
        match promise.source() {
            Source::Ticket => self.ticket = Some(flaw),
            Source::Pass | Source::New => self.pass = Some(flaw),
        }
    }
}
