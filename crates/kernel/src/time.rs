//! Timestamps.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Scalar, Value, WrongValue};

/// A point in time, in microseconds since 1970 UTC. In JSON it is RFC 3339 with `Z`; in columns
/// TIMESTAMPTZ or INTEGER µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// The text is not a valid timestamp.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time with an offset, such as 2026-06-01T10:00:00+09:00")]
pub struct BadTimestamp;

/// Timestamps stay between 1900 and 9999, where all stores and text formats agree.
const MIN_MICROS: i64 = -2_208_988_800_000_000;
const MAX_MICROS: i64 = 253_370_764_800_000_000;

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

impl Timestamp {
    /// From microseconds since 1970 UTC, clamped to the years 1900 to 9998.
    pub const fn from_micros(micros: i64) -> Self {
        if micros < MIN_MICROS {
            Self(MIN_MICROS)
        } else if micros > MAX_MICROS {
            Self(MAX_MICROS)
        } else {
            Self(micros)
        }
    }

    /// Microseconds since 1970 UTC.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The time `by` later. Saturates at the year 9998.
    pub fn after(self, by: Duration) -> Self {
        Self::from_micros(self.0.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The time `by` earlier. Saturates at the year 1900.
    pub fn before(self, by: Duration) -> Self {
        Self::from_micros(self.0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = jiff::Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        at.fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at: jiff::Timestamp = text.parse().map_err(|_| BadTimestamp)?;
        let micros = at.as_microsecond();
        if (MIN_MICROS..=MAX_MICROS).contains(&micros) { Ok(Self(micros)) } else { Err(BadTimestamp) }
    }
}

impl TryFrom<String> for Timestamp {
    type Error = BadTimestamp;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> Self {
        at.to_string()
    }
}

impl Scalar for Timestamp {
    fn to_value(&self) -> Value<'_> {
        Value::Instant(*self)
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        match value {
            Value::Instant(at) => Ok(at),
            Value::Int(micros) => Ok(Self::from_micros(micros)),
            _ => Err(WrongValue { wanted: "an instant" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parsing_needs_an_offset_and_keeps_the_instant() {
        let seoul: Timestamp = "2026-06-01T10:00:00+09:00".parse().unwrap();
        assert_eq!(seoul.to_string(), "2026-06-01T01:00:00Z");
        assert_eq!("2026-06-01T10:00:00".parse::<Timestamp>(), Err(BadTimestamp));
        assert_eq!("tomorrow".parse::<Timestamp>(), Err(BadTimestamp));
    }

    #[test]
    fn arithmetic_saturates_and_never_wraps() {
        let end = Timestamp::from_micros(i64::MAX);
        assert_eq!(end.after(Duration::MAX), end);
        assert_eq!(end.since(end), Duration::ZERO);
        assert_eq!(Timestamp::from_micros(5).since(end), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn text_and_json_round_trip_every_microsecond(micros in MIN_MICROS..=MAX_MICROS) {
            let at = Timestamp::from_micros(micros);
            prop_assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
            let json = serde_json::to_string(&at).unwrap();
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), at);
        }
    }
}
