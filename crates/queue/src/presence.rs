//! Room time: only time in which users could be active counts.
//!
//! A frozen process, an outage of all processes or a clock set forward looks as if all users had
//! become idle at once. They have not, so that time is skipped: it costs no position and no slot. A
//! clock set back would extend every timeout, so that time counts twice: room time never goes back.

use std::time::Duration;

use urr_kernel::{Clock, Timestamp};

/// Admission runs in every room each second. A gap counts only up to this length. `room.lua` has
/// the same number.
const LONGEST_GAP: Duration = Duration::from_secs(3);

/// [`LONGEST_GAP`] scaled for a clock that may run fast.
pub(crate) fn longest_gap(clock: &Clock) -> Duration {
    let second = Duration::from_secs(1);
    let speed = second.as_micros() / clock.real(second).as_micros().max(1);
    LONGEST_GAP * u32::try_from(speed).unwrap_or(u32::MAX)
}

/// Room time of one room.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// When it was last advanced.
    noticed: Option<Timestamp>,
    /// Skipped time in microseconds; negative if the clock was set back.
    away: i64,
    longest_gap: Duration,
}

impl Presence {
    /// Advances room time.
    pub(crate) fn notice(&mut self, now: Timestamp, longest_gap: Duration) {
        self.longest_gap = longest_gap;
        self.away += self.missed(now);
        self.noticed = Some(now);
    }

    /// Skips a period without any process, at restart.
    pub(crate) fn skip(&mut self, time: Duration, longest_gap: Duration) {
        let missed = time.saturating_sub(longest_gap).as_micros();
        self.away = self.away.saturating_add(i64::try_from(missed).unwrap_or(i64::MAX));
    }

    /// Converts to room time.
    pub(crate) fn here(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_micros(now.as_micros() - self.away - self.missed(now))
    }

    /// Converts from room time.
    pub(crate) fn outside(&self, here: Timestamp) -> Timestamp {
        Timestamp::from_micros(here.as_micros() + self.away)
    }

    /// How much of the time since the last advance is skipped.
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
    fn gaps_do_not_count() {
        let gap = longest_gap(&Clock::system());
        let mut presence = Presence::default();
        assert_eq!(presence.here(at(100)), at(100));
        for second in 0..=10 {
            presence.notice(at(second), gap);
        }
        assert_eq!(presence.here(at(13)), at(13), "a short delay counts");
        assert_eq!(presence.here(at(3_610)), at(13), "an hour without a process is skipped");
        presence.notice(at(3_610), gap);
        presence.notice(at(3_611), gap);
        assert_eq!(presence.here(at(3_611)), at(14), "then time counts again");
        assert_eq!(presence.outside(at(14)), at(3_611));
        // A worker that is always late must not stop room time for good.
        let mut late = Presence::default();
        for second in (0..=100).step_by(5) {
            late.notice(at(second), gap);
        }
        assert_eq!(late.here(at(100)), at(60));
    }

    #[test]
    fn room_time_never_goes_back() {
        let gap = longest_gap(&Clock::system());
        let mut presence = Presence::default();
        presence.notice(at(1_000), gap);
        assert_eq!(presence.here(at(400)), at(1_000), "room time never goes back");
        presence.notice(at(400), gap);
        presence.notice(at(402), gap);
        assert_eq!(presence.here(at(402)), at(1_002), "room time advances at once");
        assert_eq!(presence.outside(at(1_002)), at(402));
        // Once the clock is corrected, room time is as if nothing had happened.
        presence.notice(at(1_005), gap);
        assert_eq!(presence.here(at(1_005)), at(1_005));
    }

    #[test]
    fn the_longest_gap_scales_with_a_fast_clock() {
        assert_eq!(longest_gap(&Clock::system()), LONGEST_GAP);
        assert_eq!(longest_gap(&Clock::lapse(60)).as_secs(), 180);
    }
}
