//! The place in line.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Scalar, Timestamp, Value, WrongValue};

/// What a line is sorted by: the smaller, the earlier. Roughly the microsecond in which the first tier saw somebody, moved by a
/// few so that no two in a line are equal.
///
/// Below 2^53, so that Redis scores and JavaScript keep every bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u64", into = "u64")]
#[schemars(inline)]
pub struct OrderKey(u64);

/// A number that is no place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place in line is below 2^53")]
pub struct BadOrderKey;

impl OrderKey {
    /// The last place there is: in the year 2255.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// A key from its number, unless the number is too large for one.
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The key of somebody who came `nth` among those counted from `start`.
    ///
    /// A microsecond each: whoever is counted has exactly the order of the count, whatever the clocks of several machines say, and
    /// still comes before everybody who arrives when counting has stopped.
    pub fn counted(start: Timestamp, nth: u64) -> Self {
        Self(Self::at(start).0.saturating_add(nth).min(Self::MAX.0))
    }

    /// The key of somebody who came at `now`, provided nobody else did.
    pub fn at(now: Timestamp) -> Self {
        Self(u64::try_from(now.as_micros()).unwrap_or(0).min(Self::MAX.0))
    }

    /// The place right behind this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1).min(Self::MAX.0))
    }

    /// The bare number.
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
    fn a_count_keeps_its_order_and_comes_before_whoever_arrives_later() {
        let start = Timestamp::from_micros(1_790_000_000_000_000);
        assert!(OrderKey::counted(start, 1) < OrderKey::counted(start, 2));
        let an_hour_later = Timestamp::from_micros(start.as_micros() + 3_600_000_000);
        assert!(OrderKey::counted(start, 1_000_000) < OrderKey::at(an_hour_later));
    }

    #[test]
    fn a_key_fits_into_a_double() {
        assert_eq!(OrderKey::new(1 << 53), None);
        assert_eq!(OrderKey::MAX.next(), OrderKey::MAX);
        assert_eq!(OrderKey::counted(Timestamp::from_micros(i64::MAX), u64::MAX), OrderKey::MAX);
        assert_eq!(OrderKey::at(Timestamp::from_micros(-1)).as_u64(), 0);
    }
}
