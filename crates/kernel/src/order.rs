//! The sort key of a queue entry.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Scalar, Timestamp, Value, WrongValue};

/// The sort key of a queue: smaller is earlier. Roughly the microsecond at which the first tier saw
/// the user, adjusted slightly so that no two entries of a queue are equal.
///
/// Below 2^53, so that Redis scores and JavaScript numbers represent it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u64", into = "u64")]
#[schemars(inline)]
pub struct OrderKey(u64);

/// A number too large for an order key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an order key must be below 2^53")]
pub struct BadOrderKey;

impl OrderKey {
    /// The largest key, reached in the year 2255.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// A key from its number; `None` if the number is too large.
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The key of the `nth` user counted from `start`.
    ///
    /// One microsecond per user: counted users keep exactly the order of the count, whatever the
    /// clocks of several machines say, and come before everyone who arrives after counting has
    /// stopped.
    pub fn counted(start: Timestamp, nth: u64) -> Self {
        Self(Self::at(start).0.saturating_add(nth).min(Self::MAX.0))
    }

    /// The key of a user who arrived at `now`, unless it is already taken.
    pub fn at(now: Timestamp) -> Self {
        Self(u64::try_from(now.as_micros()).unwrap_or(0).min(Self::MAX.0))
    }

    /// The next larger key.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1).min(Self::MAX.0))
    }

    /// The number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for OrderKey {
    type Error = BadOrderKey;

    fn try_from(number: u64) -> Result<Self, BadOrderKey> {
        Self::new(number).ok_or(BadOrderKey)
    }
}

impl From<OrderKey> for u64 {
    fn from(key: OrderKey) -> Self {
        key.0
    }
}

impl fmt::Display for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Scalar for OrderKey {
    fn to_value(&self) -> Value<'_> {
        Value::Int(i64::try_from(self.0).expect("below 2^53"))
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        let number = i64::from_value(value)?;
        u64::try_from(number).ok().and_then(Self::new).ok_or(WrongValue { wanted: "a place in line" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_keys_keep_their_order_and_precede_later_arrivals() {
        let start = Timestamp::from_micros(1_790_000_000_000_000);
        assert!(OrderKey::counted(start, 1) < OrderKey::counted(start, 2));
        let an_hour_later = Timestamp::from_micros(start.as_micros() + 3_600_000_000);
        assert!(OrderKey::counted(start, 1_000_000) < OrderKey::at(an_hour_later));
    }

    #[test]
    fn key_fits_into_a_double() {
        assert_eq!(OrderKey::new(1 << 53), None);
        assert_eq!(OrderKey::MAX.next(), OrderKey::MAX);
        assert_eq!(OrderKey::counted(Timestamp::from_micros(i64::MAX), u64::MAX), OrderKey::MAX);
        assert_eq!(OrderKey::at(Timestamp::from_micros(-1)).as_u64(), 0);
    }
}
