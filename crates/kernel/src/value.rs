//! SQL values for columns and parameters. Only `db` knows the database drivers.

use std::borrow::Cow;

use uuid::Uuid;

use crate::Timestamp;

/// One SQL value. Its column type depends on the engine: a UUID is UUID on PostgreSQL and BLOB on
/// SQLite.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'v> {
    /// NULL.
    Null,
    /// BOOLEAN, or INTEGER 0/1.
    Bool(bool),
    /// BIGINT or INT, or INTEGER.
    Int(i64),
    /// TEXT.
    Text(Cow<'v, str>),
    /// BYTEA, or BLOB.
    Bytes(Cow<'v, [u8]>),
    /// UUID, or BLOB of 16 bytes.
    Uuid(Uuid),
    /// TIMESTAMPTZ, or INTEGER microseconds.
    Instant(Timestamp),
    /// JSONB, or TEXT.
    Json(Cow<'v, str>),
}

/// A column has a type or value that the code does not expect: the schema and the code disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the column does not hold {wanted}")]
pub struct WrongValue {
    /// The expected type.
    pub wanted: &'static str,
}

/// A type that can be a parameter and a column.
pub trait Scalar: Send + Sync {
    /// Converts it to a parameter.
    fn to_value(&self) -> Value<'_>;

    /// Reads it from a column. SQLite has fewer types, so a UUID may arrive as bytes, a timestamp
    /// or a bool as an integer.
    fn from_value(value: Value<'_>) -> Result<Self, WrongValue>
    where
        Self: Sized;
}

impl Scalar for bool {
    fn to_value(&self) -> Value<'_> {
        Value::Bool(*self)
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        match value {
            Value::Bool(yes) => Ok(yes),
            Value::Int(0) => Ok(false),
            Value::Int(1) => Ok(true),
            _ => Err(WrongValue { wanted: "a boolean" }),
        }
    }
}

impl Scalar for i64 {
    fn to_value(&self) -> Value<'_> {
        Value::Int(*self)
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        match value {
            Value::Int(n) => Ok(n),
            _ => Err(WrongValue { wanted: "an integer" }),
        }
    }
}

macro_rules! narrow {
    ($($int:ty => $wanted:literal,)*) => {$(
        impl Scalar for $int {
            fn to_value(&self) -> Value<'_> {
                Value::Int(i64::from(*self))
            }

            fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
                <$int>::try_from(i64::from_value(value)?).map_err(|_| WrongValue { wanted: $wanted })
            }
        }
    )*};
}

narrow! {
    i32 => "a 32-bit integer",
    u32 => "a 32-bit count",
    u8 => "an 8-bit count",
}

impl Scalar for String {
    fn to_value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        match value {
            Value::Text(text) | Value::Json(text) => Ok(text.into_owned()),
            _ => Err(WrongValue { wanted: "text" }),
        }
    }
}

impl Scalar for &str {
    fn to_value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }

    fn from_value(_: Value<'_>) -> Result<Self, WrongValue> {
        Err(WrongValue { wanted: "text that outlives its row" })
    }
}

impl Scalar for Vec<u8> {
    fn to_value(&self) -> Value<'_> {
        Value::Bytes(Cow::Borrowed(self))
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        match value {
            Value::Bytes(bytes) => Ok(bytes.into_owned()),
            _ => Err(WrongValue { wanted: "bytes" }),
        }
    }
}

impl Scalar for Uuid {
    fn to_value(&self) -> Value<'_> {
        Value::Uuid(*self)
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        match value {
            Value::Uuid(uuid) => Ok(uuid),
            Value::Bytes(bytes) => {
                Self::from_slice(&bytes).map_err(|_| WrongValue { wanted: "a UUID of 16 bytes" })
            }
            _ => Err(WrongValue { wanted: "a UUID" }),
        }
    }
}

impl<T: Scalar> Scalar for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Scalar::to_value)
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_values_convert_to_the_richer_types() {
        let id = Uuid::from_u128(7);
        assert_eq!(Uuid::from_value(Value::Bytes(Cow::Borrowed(id.as_bytes()))), Ok(id));
        assert_eq!(Timestamp::from_value(Value::Int(5)), Ok(Timestamp::from_micros(5)));
        assert_eq!(bool::from_value(Value::Int(1)), Ok(true));
        assert_eq!(Option::<i64>::from_value(Value::Null), Ok(None));
    }

    #[test]
    fn unexpected_column_type_is_an_error() {
        assert!(bool::from_value(Value::Int(2)).is_err());
        assert!(u32::from_value(Value::Int(-1)).is_err());
        assert!(Uuid::from_value(Value::Bytes(Cow::Borrowed(b"short"))).is_err());
        assert!(i64::from_value(Value::Text(Cow::Borrowed("7"))).is_err());
    }
}
