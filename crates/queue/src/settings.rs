//! The numbers a room lives by.

use std::time::Duration;

/// What a room allows. Set once for the whole process; an event's own threshold is kept with its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many may be in at once, unless an operator says otherwise for an event.
    pub threshold: u32,
    /// A slot ends this long after the last sign of life.
    pub slot_idle: Duration,
    /// A slot ends this long after it was given, whatever its owner does.
    pub slot_total: Duration,
    /// A place in line ends this long after the last sign of life; the ticket brings it back.
    pub waiting_idle: Duration,
    /// How many may wait for one event.
    pub max_waiting: usize,
    /// In how many lines one user may stand at a time.
    pub max_events_per_user: usize,
    /// People let in per event and second at most: what the sale behind the door digests.
    pub batch: usize,
    /// How long the journal of a closed room is kept.
    pub journal_kept: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            threshold: 1_000,
            slot_idle: Duration::from_mins(10),
            slot_total: Duration::from_mins(20),
            waiting_idle: Duration::from_mins(10),
            max_waiting: 50_000,
            max_events_per_user: 3,
            batch: 100,
            journal_kept: Duration::from_hours(24 * 90),
        }
    }
}
