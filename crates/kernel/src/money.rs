//! Korean won. The smallest unit is one won, so integers are exact.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Scalar, Value, WrongValue, limits::MAX_KRW};

/// An amount of money, never negative and at most [`MAX_KRW`]. Arithmetic is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Krw(i64);

/// Why an amount is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Below zero.
    #[error("an amount of money is never negative")]
    Negative,
    /// Above [`MAX_KRW`].
    #[error("an amount of money is at most {MAX_KRW} won")]
    TooLarge,
}

impl JsonSchema for Krw {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Krw".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_KRW })
    }
}

impl Krw {
    /// Zero won.
    pub const ZERO: Self = Self(0);

    /// Validates an amount.
    pub const fn new(won: i64) -> Result<Self, MoneyError> {
        if won < 0 {
            Err(MoneyError::Negative)
        } else if won > MAX_KRW {
            Err(MoneyError::TooLarge)
        } else {
            Ok(Self(won))
        }
    }

    /// The number of won.
    pub const fn won(self) -> i64 {
        self.0
    }

    /// The sum; an error if it is out of range.
    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        Self::new(self.0.checked_add(other.0).ok_or(MoneyError::TooLarge)?)
    }

    /// The difference; an error if it is negative.
    pub fn checked_sub(self, other: Self) -> Result<Self, MoneyError> {
        Self::new(self.0.checked_sub(other.0).ok_or(MoneyError::Negative)?)
    }

    /// The amount times `times`; an error if it is out of range.
    pub fn checked_mul(self, times: u32) -> Result<Self, MoneyError> {
        Self::new(self.0.checked_mul(i64::from(times)).ok_or(MoneyError::TooLarge)?)
    }

    /// The sum of many amounts; an error if it is out of range.
    pub fn sum(amounts: impl IntoIterator<Item = Self>) -> Result<Self, MoneyError> {
        amounts.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }
}

impl TryFrom<i64> for Krw {
    type Error = MoneyError;

    fn try_from(won: i64) -> Result<Self, Self::Error> {
        Self::new(won)
    }
}

impl From<Krw> for i64 {
    fn from(amount: Krw) -> Self {
        amount.0
    }
}

impl fmt::Display for Krw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "₩{}", self.0)
    }
}

impl Scalar for Krw {
    fn to_value(&self) -> Value<'_> {
        Value::Int(self.0)
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        Self::new(i64::from_value(value)?).map_err(|_| WrongValue { wanted: "an amount in won" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_out_of_range_are_rejected() {
        assert_eq!(Krw::new(-1), Err(MoneyError::Negative));
        assert_eq!(Krw::new(MAX_KRW + 1), Err(MoneyError::TooLarge));
        assert!(serde_json::from_str::<Krw>("-5").is_err());
        assert_eq!(serde_json::to_string(&Krw::new(150_000).unwrap()).unwrap(), "150000");
    }

    proptest! {
        #[test]
        fn adding_then_subtracting_is_the_identity(a in 0..=MAX_KRW / 2, b in 0..=MAX_KRW / 2) {
            let (a, b) = (Krw::new(a).unwrap(), Krw::new(b).unwrap());
            prop_assert_eq!(a.checked_add(b).unwrap().checked_sub(b).unwrap(), a);
        }

        #[test]
        fn arithmetic_never_leaves_the_range(a in 0..=MAX_KRW, b in 0..=MAX_KRW, n in any::<u32>()) {
            let (a, b) = (Krw::new(a).unwrap(), Krw::new(b).unwrap());
            for amount in [a.checked_add(b), a.checked_sub(b), a.checked_mul(n)].into_iter().flatten() {
                prop_assert!((0..=MAX_KRW).contains(&amount.won()));
            }
        }
    }
}
