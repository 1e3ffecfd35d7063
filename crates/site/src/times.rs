//! Formatting of times, in the time zone of the venues.

use std::sync::LazyLock;

use jiff::{civil::Weekday, tz::TimeZone};
use urr_kernel::Timestamp;

use crate::words::Lang;

/// Without a time zone database a fixed offset gives the same result: Korea has no summer time.
static SEOUL: LazyLock<TimeZone> =
    LazyLock::new(|| TimeZone::get("Asia/Seoul").unwrap_or_else(|_| TimeZone::fixed(jiff::tz::offset(9))));

/// A date with time: `2026년 6월 1일 (월) 10:00`, `Mon 1 June 2026, 10:00`.
pub(crate) fn moment(lang: Lang, at: Timestamp) -> String {
    let Some(at) = civil(at) else { return at.to_string() };
    format!("{}{}{:02}:{:02}", day(lang, at.date()), lang.pick(" ", ", "), at.hour(), at.minute())
}

/// A date: `2026년 6월 1일 (월)`, `Mon 1 June 2026`.
pub(crate) fn date(lang: Lang, at: Timestamp) -> String {
    civil(at).map_or_else(|| at.to_string(), |civil| day(lang, civil.date()))
}

fn civil(at: Timestamp) -> Option<jiff::civil::DateTime> {
    let at = jiff::Timestamp::from_microsecond(at.as_micros()).ok()?;
    Some(at.to_zoned(SEOUL.clone()).datetime())
}

fn day(lang: Lang, date: jiff::civil::Date) -> String {
    let (year, month, day) = (date.year(), date.month(), date.day());
    let weekday = weekday(lang, date.weekday());
    match lang {
        Lang::Ko => format!("{year}년 {month}월 {day}일 ({weekday})"),
        Lang::En => format!("{weekday} {day} {} {year}", MONTHS[usize::from(month.unsigned_abs()) - 1]),
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn weekday(lang: Lang, weekday: Weekday) -> &'static str {
    let (ko, en) = match weekday {
        Weekday::Monday => ("월", "Mon"),
        Weekday::Tuesday => ("화", "Tue"),
        Weekday::Wednesday => ("수", "Wed"),
        Weekday::Thursday => ("목", "Thu"),
        Weekday::Friday => ("금", "Fri"),
        Weekday::Saturday => ("토", "Sat"),
        Weekday::Sunday => ("일", "Sun"),
    };
    lang.pick(ko, en)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_time_zone_of_seoul() {
        let at: Timestamp = "2026-05-31T15:05:00Z".parse().unwrap();
        assert_eq!(moment(Lang::Ko, at), "2026년 6월 1일 (월) 00:05");
        assert_eq!(moment(Lang::En, at), "Mon 1 June 2026, 00:05");
        assert_eq!(date(Lang::En, at), "Mon 1 June 2026");
    }
}
