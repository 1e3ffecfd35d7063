//! A room's own time: that in which people could show signs of life.
//!
//! A process that stood still, an outage of all of them or a clock that was put forward looks as if everybody had fallen silent at once.
//! They have not, so that time does not count: nobody loses a place or a slot in it. A clock that was put back would keep everybody for
//! as long again, so that time counts twice: a room's own time never goes back.

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
    /// How much time does not count, in microseconds; less than nothing where a clock was put back.
    away: i64,
    longest_gap: Duration,
}

impl Presence {
    /// The room is there now.
    pub(crate) fn notice(&mut self, now: Timestamp, longest_gap: Duration) {
        self.longest_gap = longest_gap;
        self.away += self.missed(now);
        self.noticed = Some(now);
    }

    /// The room was not there for so long, as whoever reads it back knows.
    pub(crate) fn skip(&mut self, time: Duration, longest_gap: Duration) {
        let missed = time.saturating_sub(longest_gap).as_micros();
        self.away = self.away.saturating_add(i64::try_from(missed).unwrap_or(i64::MAX));
    }

    /// What time it is for the room.
    pub(crate) fn here(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_micros(now.as_micros() - self.away - self.missed(now))
    }

    /// What time it is outside when it is `here` in the room.
    pub(crate) fn outside(&self, here: Timestamp) -> Timestamp {
        Timestamp::from_micros(here.as_micros() + self.away)
    }

    /// How much of the time since it was last there does not count.
    fn missed(&self, now: Timestamp) -> i64 {
        let Some(noticed) = self.noticed else { return 0 };
        let silent = now.as_micros() - noticed.as_micros();
        let longest_gap = i64::try_from(self.longest_gap.as_micros()).unwrap_or(i64::MAX);
        if silent < 0 { silent } else { (silent - longest_gap).max(0) }
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
    fn a_clock_that_is_put_back_stops_nobodys_time() {
        let gap = longest_gap(&Clock::system());
        let mut presence = Presence::default();
        presence.notice(at(1_000), gap);
        assert_eq!(presence.here(at(400)), at(1_000), "it never goes back");
        presence.notice(at(400), gap);
        presence.notice(at(402), gap);
        assert_eq!(presence.here(at(402)), at(1_002), "and goes on at once");
        assert_eq!(presence.outside(at(1_002)), at(402));
        // Put right again, it is as if nothing had happened.
        presence.notice(at(1_005), gap);
        assert_eq!(presence.here(at(1_005)), at(1_005));
    }

    #[test]
    fn a_clock_that_runs_fast_is_away_for_as_long() {
        assert_eq!(longest_gap(&Clock::system()), LONGEST_GAP);
        assert_eq!(longest_gap(&Clock::lapse(60)).as_secs(), 180);
    }
}
