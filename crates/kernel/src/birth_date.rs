//! Birth dates and ages.

use std::{borrow::Cow, fmt, str::FromStr};

use jiff::{civil::Date, tz};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A birth date, such as `2001-02-28`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BirthDate(Date);

/// The text is not a valid birth date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a day, such as 2001-02-28")]
pub struct BadBirthDate;

/// Earlier years are rejected as implausible.
const FIRST_YEAR: i16 = 1880;

/// Ages are computed in Korean time, which has had one offset since 1988.
const KOREA: tz::Offset = tz::offset(9);

impl BirthDate {
    /// Age in full years, as Korean law counts: it grows at the beginning of each birthday. A
    /// birthday on 29 February counts as 1 March in other years. Zero before birth.
    pub fn age_at(self, at: Timestamp) -> u32 {
        let Ok(at) = jiff::Timestamp::from_microsecond(at.as_micros()) else { return 0 };
        let today = KOREA.to_datetime(at).date();
        let years = i32::from(today.year()) - i32::from(self.0.year());
        let had_birthday = (today.month(), today.day()) >= (self.0.month(), self.0.day());
        u32::try_from(years - i32::from(!had_birthday)).unwrap_or(0)
    }
}

impl fmt::Display for BirthDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BirthDate {
    type Err = BadBirthDate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let date: Date = text.parse().map_err(|_| BadBirthDate)?;
        // The parser also accepts other formats, and a time after the date.
        if date.year() >= FIRST_YEAR && date.to_string() == text { Ok(Self(date)) } else { Err(BadBirthDate) }
    }
}

impl TryFrom<String> for BirthDate {
    type Error = BadBirthDate;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<BirthDate> for String {
    fn from(date: BirthDate) -> Self {
        date.to_string()
    }
}

impl JsonSchema for BirthDate {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "BirthDate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(born: &str, at: &str) -> u32 {
        born.parse::<BirthDate>().unwrap().age_at(at.parse().unwrap())
    }

    #[test]
    fn age_grows_when_the_birthday_begins_in_korea() {
        assert_eq!(age("2007-11-16", "2026-11-15T23:59:59+09:00"), 18);
        assert_eq!(age("2007-11-16", "2026-11-16T00:00:00+09:00"), 19);
        assert_eq!(age("2007-11-16", "2026-11-15T15:00:00Z"), 19, "it is already the 16th in Seoul");
        assert_eq!(age("2008-02-29", "2027-02-28T23:59:59+09:00"), 18);
        assert_eq!(age("2008-02-29", "2027-03-01T00:00:00+09:00"), 19);
        assert_eq!(age("2030-01-01", "2026-01-01T00:00:00Z"), 0);
    }

    #[test]
    fn date_must_exist_and_has_one_format() {
        assert_eq!("1999-12-31".parse::<BirthDate>().unwrap().to_string(), "1999-12-31");
        let wrong = [
            "",
            "1999-02-29",
            "1999-13-01",
            "19991231",
            "1999-1-01",
            "1999/12/31",
            "0099-12-31",
            "１999-12-31",
        ];
        for text in wrong {
            assert_eq!(text.parse::<BirthDate>(), Err(BadBirthDate), "{text}");
        }
        assert!(serde_json::from_str::<BirthDate>("\"2001-02-30\"").is_err());
    }
}
