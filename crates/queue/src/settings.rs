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
    /// A place at the front of the line ends this long after the last sign of life, and one further back later: [`Limits::silence`]. The
    /// ticket brings it back.
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

impl Limits {
    /// How long somebody with so many ahead of them may show no sign of life.
    ///
    /// Whoever's turn may come soon must have been heard of lately, or the slot would be given to nobody. Whoever is far costs nothing,
    /// and is told to stay away for up to two thirds of the time in which the line could get to them at full speed (`places::rules`).
    /// With three times what is left of that, and [`Self::waiting_idle`], nobody who does so falls silent, be they a tenth late, as long
    /// as the line gets shorter by letting people in. Where many ahead give up at once somebody may be sent away before they ask
    /// again; their ticket brings their place back.
    pub(crate) fn silence(&self, ahead: usize) -> Duration {
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.waiting_idle.saturating_add(self.silence_per_person().saturating_mul(ahead))
    }

    /// How much longer for each who is ahead.
    pub(crate) fn silence_per_person(&self) -> Duration {
        Duration::from_secs(3) / u32::try_from(self.batch).unwrap_or(u32::MAX).max(1)
    }
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
