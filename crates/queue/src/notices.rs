//! Telling others of everybody who came in. It is told when they hear of it themselves: that is when their slot is of use.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

/// Somebody came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// At which event.
    pub event: EventId,
    /// Who.
    pub user: UserId,
    /// Into which slot: another one each time.
    pub slot: Uuid,
    /// When they heard of it.
    pub at: Timestamp,
}

/// Whoever wants to know who came in. It must not wait for anything, and nobody learns whether it failed: an admission is one all the same.
pub trait Notices: Send + Sync {
    /// Somebody came in.
    fn admitted(&self, admitted: Admitted);
}

/// Slots that are remembered as told: those who are in ask again and again. Two sets of so many are 4 MB at most; whoever is told of a slot
/// once more learns nothing new.
const REMEMBERED: usize = 50_000;

/// Tells each admission once, as far as this process remembers.
pub(crate) struct Teller {
    notices: Option<Arc<dyn Notices>>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    newer: HashSet<Uuid>,
    older: HashSet<Uuid>,
}

impl Teller {
    pub(crate) fn new(notices: Option<Arc<dyn Notices>>) -> Self {
        Self { notices, told: Mutex::default() }
    }

    /// Somebody hears that they are in.
    pub(crate) fn tell(&self, admitted: Admitted) {
        let Some(notices) = &self.notices else { return };
        let is_news = self.told.lock().unwrap_or_else(PoisonError::into_inner).is_new(admitted.slot);
        if is_news {
            notices.admitted(admitted);
        }
    }
}

impl Told {
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
    fn a_slot_is_news_once_and_what_is_remembered_is_bounded() {
        let mut told = Told::default();
        let slots = u128::try_from(REMEMBERED).unwrap() * 3;
        for slot in 0..slots {
            assert!(told.is_new(Uuid::from_u128(slot)));
            assert!(!told.is_new(Uuid::from_u128(slot)));
            assert!(told.newer.len() + told.older.len() <= 2 * REMEMBERED);
        }
        assert!(!told.is_new(Uuid::from_u128(slots - 1)), "the latest are remembered");
    }
}
