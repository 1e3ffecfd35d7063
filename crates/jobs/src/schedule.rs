//! When recurring work is due.

use std::time::Duration;

use jiff::{Timestamp as Instant, ToSpan as _, civil, tz::TimeZone};
use urr_kernel::Timestamp;

/// A rule for when work recurs. Pure: it computes the next time after a given time and reads no
/// clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule(Rule);

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Every(Duration),
    Daily { at: civil::Time, zone: TimeZone },
}

/// An invalid schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchedule {
    /// The period is too short.
    #[error("a period must be at least {} ms", MIN_PERIOD.as_millis())]
    TooOften,
    /// Not a time of day.
    #[error("{hour:02}:{minute:02} is not a time of day")]
    NoSuchTime {
        /// The hour that was given.
        hour: u8,
        /// The minute that was given.
        minute: u8,
    },
    /// Not in the time zone database.
    #[error("there is no time zone named {0:?}")]
    NoSuchZone(String),
}

/// A shorter period would be polling; use a nudge instead.
const MIN_PERIOD: Duration = Duration::from_millis(10);

impl Schedule {
    /// Every `period`, counted from the start of the previous run.
    pub fn every(period: Duration) -> Result<Self, BadSchedule> {
        if period < MIN_PERIOD { Err(BadSchedule::TooOften) } else { Ok(Self(Rule::Every(period))) }
    }

    /// Once per calendar day of a zone such as `Asia/Seoul`. If a daylight saving change skips that
    /// time, the run moves by the same step (02:30 becomes 03:30); if the time occurs twice, it
    /// runs at the first.
    pub fn daily(hour: u8, minute: u8, zone: &str) -> Result<Self, BadSchedule> {
        let no_such_time = BadSchedule::NoSuchTime { hour, minute };
        let part = |n: u8| i8::try_from(n).map_err(|_| no_such_time.clone());
        let at = civil::Time::new(part(hour)?, part(minute)?, 0, 0).map_err(|_| no_such_time.clone())?;
        let zone = TimeZone::get(zone).map_err(|_| BadSchedule::NoSuchZone(zone.to_owned()))?;
        Ok(Self(Rule::Daily { at, zone }))
    }

    /// The period, if it is fixed. Fixed periods use the monotonic clock, which does not jump.
    pub fn period(&self) -> Option<Duration> {
        match &self.0 {
            Rule::Every(period) => Some(*period),
            Rule::Daily { .. } => None,
        }
    }

    /// The first due time after `after`; always later than `after`.
    pub fn next(&self, after: Timestamp) -> Timestamp {
        match &self.0 {
            Rule::Every(period) => after.after(*period),
            Rule::Daily { at, zone } => daily(*at, zone, after).unwrap_or_else(|| after.after(DAY)),
        }
    }
}

/// The length of a day once the calendar ends (after the year 9998).
const DAY: Duration = Duration::from_hours(24);

/// Candidates on three days cover every case: today's may be over, and tomorrow's may be the same
/// instant as today's where a zone once skipped a whole day.
const CANDIDATE_DAYS: i32 = 3;

fn daily(at: civil::Time, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let after = Instant::from_microsecond(after.as_micros()).ok()?;
    let today = zone.to_datetime(after).date();
    (0..CANDIDATE_DAYS)
        .filter_map(|days| {
            let date = today.checked_add(days.days()).ok()?;
            zone.to_timestamp(date.to_datetime(at)).ok()
        })
        .find(|due| *due > after)
        .map(|due| Timestamp::from_micros(due.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[track_caller]
    fn assert_next(schedule: &Schedule, after: &str, due: &str) {
        assert_eq!(schedule.next(at(after)), at(due), "after {after}");
    }

    #[test]
    fn every_counts_from_the_previous_run() {
        let schedule = Schedule::every(Duration::from_secs(90)).unwrap();
        assert_next(&schedule, "2026-06-01T10:00:00Z", "2026-06-01T10:01:30Z");
    }

    #[test]
    fn daily_uses_the_calendar_day_of_the_zone() {
        let seoul = Schedule::daily(4, 0, "Asia/Seoul").unwrap();
        assert_next(&seoul, "2026-06-01T03:59:59+09:00", "2026-06-01T04:00:00+09:00");
        assert_next(&seoul, "2026-06-01T04:00:00+09:00", "2026-06-02T04:00:00+09:00");
        assert_next(&seoul, "2026-05-31T20:00:00Z", "2026-06-01T19:00:00Z");
    }

    #[test]
    fn time_skipped_by_daylight_saving_moves_by_the_step() {
        let berlin = Schedule::daily(2, 30, "Europe/Berlin").unwrap();
        assert_next(&berlin, "2026-03-28T12:00:00+01:00", "2026-03-29T03:30:00+02:00");
        assert_next(&berlin, "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00");
    }

    #[test]
    fn time_repeated_by_daylight_saving_runs_once() {
        let berlin = Schedule::daily(2, 30, "Europe/Berlin").unwrap();
        assert_next(&berlin, "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00");
        assert_next(&berlin, "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00");
        // Started between the two occurrences: this day's run is over.
        assert_next(&berlin, "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00");
    }

    #[test]
    fn zone_that_skipped_a_whole_day_still_advances() {
        let apia = Schedule::daily(12, 0, "Pacific/Apia").unwrap();
        let mut due = at("2011-12-29T12:00:00-10:00");
        for _ in 0..3 {
            let next = apia.next(due);
            assert!(next > due);
            due = next;
        }
    }

    #[test]
    fn invalid_schedules_are_rejected() {
        assert_eq!(Schedule::every(Duration::ZERO), Err(BadSchedule::TooOften));
        assert_eq!(Schedule::daily(24, 0, "UTC"), Err(BadSchedule::NoSuchTime { hour: 24, minute: 0 }));
        assert_eq!(Schedule::daily(0, 200, "UTC"), Err(BadSchedule::NoSuchTime { hour: 0, minute: 200 }));
        let nowhere = Schedule::daily(4, 0, "Asia/Atlantis").unwrap_err();
        assert_eq!(nowhere.to_string(), r#"there is no time zone named "Asia/Atlantis""#);
    }

    const ZONES: [&str; 6] =
        ["Asia/Seoul", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "UTC"];

    proptest! {
        #[test]
        fn daily_is_due_exactly_once_on_every_day(
            zone in 0..ZONES.len(), hour in 0_u8..24, minute in 0_u8..60, day in 0_i64..20_000,
        ) {
            let schedule = Schedule::daily(hour, minute, ZONES[zone]).unwrap();
            let tz = TimeZone::get(ZONES[zone]).unwrap();
            let mut due = schedule.next(Timestamp::from_micros(day * 86_400_000_000));
            for _ in 0..4 {
                let next = schedule.next(due);
                let date = |at: Timestamp| tz.to_datetime(Instant::from_microsecond(at.as_micros()).unwrap()).date();
                // A gap at midnight moves 00:00 to 01:00 of the same day, so each day still has one
                // run.
                prop_assert_eq!(date(next), date(due).tomorrow().unwrap());
                let hours = next.since(due).as_secs_f64() / 3_600.0;
                prop_assert!((22.9..=25.1).contains(&hours), "{} hours between runs", hours);
                due = next;
            }
        }
    }
}
