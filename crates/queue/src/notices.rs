//! Reports every admission to a listener, once the user polls and gets the slot: only then is it of
//! use.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

/// An admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The event.
    pub event: EventId,
    /// The user.
    pub user: UserId,
    /// The slot; a new id for each admission.
    pub slot: Uuid,
    /// When the user first got it in an answer.
    pub at: Timestamp,
}

/// Listener for admissions. It must not block, and its failures are ignored: the admission stands.
pub trait Notices: Send + Sync {
    /// Called once per slot, as far as this process remembers.
    fn admitted(&self, admitted: Admitted);
}

/// Slots remembered as reported, because admitted users poll repeatedly. Two sets of this size take
/// at most 4 MB. Reporting a slot twice is harmless.
const REMEMBERED: usize = 50_000;

/// Reports each admission once, as far as this process remembers.
pub(crate) struct Teller {
    notices: Option<Arc<dyn Notices>>,
    reported: Mutex<ReportedSlots>,
}

#[derive(Default)]
struct ReportedSlots {
    newer: HashSet<Uuid>,
    older: HashSet<Uuid>,
}

impl Teller {
    pub(crate) fn new(notices: Option<Arc<dyn Notices>>) -> Self {
        Self { notices, reported: Mutex::default() }
    }

    /// Reports the admission unless its slot has been reported.
    pub(crate) fn tell(&self, admitted: Admitted) {
        let Some(notices) = &self.notices else { return };
        let is_news = self.reported.lock().unwrap_or_else(PoisonError::into_inner).is_new(admitted.slot);
        if is_news {
            notices.admitted(admitted);
        }
    }
}

impl ReportedSlots {
    fn is_new(&mut self, slot: Uuid) -> bool {
        if self.older.contains(&slot) || !self.newer.insert(slot) {
            return false;
        }
        if self.newer.len() >= REMEMBERED {
            self.older = mem::take(&mut self.newer);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_reported_once_and_memory_is_bounded() {
        let mut reported = ReportedSlots::default();
        let slots = u128::try_from(REMEMBERED).unwrap() * 3;
        for slot in 0..slots {
            assert!(reported.is_new(Uuid::from_u128(slot)));
            assert!(!reported.is_new(Uuid::from_u128(slot)));
            assert!(reported.newer.len() + reported.older.len() <= 2 * REMEMBERED);
        }
        assert!(!reported.is_new(Uuid::from_u128(slots - 1)), "recent slots are remembered");
    }
}
