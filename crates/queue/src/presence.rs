//! A room's own time: that in which people could show signs of life.
//!
//! A process that stood still, an outage of all of them or a clock that was put forward looks as if everybody had fallen silent at once.
//! They have not, so that time does not count: nobody loses a place or a slot in it.

use std::time::Duration;

use urr_kernel::{Clock, Timestamp};

/// Admission looks at every room each second. If nothing did for longer than this, the rest of that time does not count. The same number
/// is in `room.lua`.
const LONGEST_GAP: Duration = Duration::from_secs(3);

/// [`LONGEST_GAP`] by a clock that may run fast.
pub(crate) fn longest_gap(clock: &Clock) -> Duration {
    let second = Duration::from_secs(1);
    let speed = second.as_micros() / clock.real(second).as_micros().max(1);
    LONGEST_GAP * u32::try_from(speed).unwrap_or(u32::MAX)
}

/// How much of the time a room was there.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// When it was last there.
    noticed: Option<Timestamp>,
    /// How much time does not count.
    away: Duration,
    longest_gap: Duration,
}

impl Presence {
    /// The room is there now.
    pub(crate) fn notice(&mut self, now: Timestamp, longest_gap: Duration) {
        self.longest_gap = longest_gap;
        self.away += self.missed(now);
        self.noticed = self.noticed.max(Some(now));
    }

    /// What time it is for the room.
    pub(crate) fn here(&self, now: Timestamp) -> Timestamp {
        now.before(self.away + self.missed(now))
    }

    /// What time it is outside when it is `here` in the room.
    pub(crate) fn outside(&self, here: Timestamp) -> Timestamp {
        here.after(self.away)
    }

    fn missed(&self, now: Timestamp) -> Duration {
        self.noticed.map_or(Duration::ZERO, |noticed| now.since(noticed).saturating_sub(self.longest_gap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(1_790_000_000_000_000).after(Duration::from_secs(seconds))
    }

    #[test]
    fn time_in_which_nothing_happened_does_not_count() {
        let gap = longest_gap(&Clock::system());
        let mut presence = Presence::default();
        assert_eq!(presence.here(at(100)), at(100));
        for second in 0..=10 {
            presence.notice(at(second), gap);
        }
        assert_eq!(presence.here(at(13)), at(13), "a late second is a second");
        assert_eq!(presence.here(at(3_610)), at(13), "an hour away is not");
        presence.notice(at(3_610), gap);
        presence.notice(at(3_611), gap);
        assert_eq!(presence.here(at(3_611)), at(14), "and from then on it goes on");
        assert_eq!(presence.outside(at(14)), at(3_611));
        // A worker that is always late must not keep everybody for ever.
        let mut late = Presence::default();
        for second in (0..=100).step_by(5) {
            late.notice(at(second), gap);
        }
        assert_eq!(late.here(at(100)), at(60));
    }

    #[test]
    fn a_clock_that_runs_fast_is_away_for_as_long() {
        assert_eq!(longest_gap(&Clock::system()), LONGEST_GAP);
        assert_eq!(longest_gap(&Clock::lapse(60)).as_secs(), 180);
    }
}
