//! Conversion between [`Value`] and PostgreSQL's binary format.

use std::{borrow::Cow, error::Error as StdError, fmt};

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use urr_kernel::{Scalar, Timestamp, Value};
use uuid::Uuid;

type Wire<T> = Result<T, Box<dyn StdError + Send + Sync>>;

/// PostgreSQL counts microseconds from 2000-01-01 UTC.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// The version byte in front of a binary JSONB value.
const JSONB_VERSION: u8 = 1;

/// Supported types of columns and parameters. Others need a cast in the statement; the usual one is
/// NUMERIC from `sum(bigint)`.
const KNOWN: [Type; 12] = [
    Type::BOOL,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::XID8,
    Type::TEXT,
    Type::VARCHAR,
    Type::BYTEA,
    Type::UUID,
    Type::TIMESTAMPTZ,
    Type::JSON,
    Type::JSONB,
];

/// Whether this crate can encode and decode the type.
pub(crate) fn is_known(ty: &Type) -> bool {
    KNOWN.contains(ty)
}

/// A parameter to be encoded.
pub(crate) struct Param<'p>(&'p dyn Scalar);

impl fmt::Debug for Param<'_> {
    /// Omits the value: it may be a secret, and drivers print parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameter")
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Wire<IsNull> {
        match (self.0.to_value(), ty) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::Bool(yes), &Type::BOOL) => out.put_u8(u8::from(yes)),
            (Value::Int(n), &Type::INT2) => out.put_i16(i16::try_from(n)?),
            (Value::Int(n), &Type::INT4) => out.put_i32(i32::try_from(n)?),
            (Value::Int(n), &Type::INT8) => out.put_i64(n),
            (Value::Int(n), &Type::XID8) => out.put_u64(u64::try_from(n)?),
            (Value::Text(text) | Value::Json(text), &Type::TEXT | &Type::VARCHAR | &Type::JSON) => {
                out.put_slice(text.as_bytes());
            }
            (Value::Text(text) | Value::Json(text), &Type::JSONB) => {
                out.put_u8(JSONB_VERSION);
                out.put_slice(text.as_bytes());
            }
            (Value::Bytes(bytes), &Type::BYTEA) => out.put_slice(&bytes),
            (Value::Uuid(id), &Type::UUID) => out.put_slice(id.as_bytes()),
            (Value::Instant(at), &Type::TIMESTAMPTZ) => out.put_i64(at.as_micros() - POSTGRES_EPOCH_MICROS),
            (value, ty) => return Err(format!("{} cannot be sent as {ty}", kind(&value)).into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) => "an integer",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
        Value::Uuid(_) => "a UUID",
        Value::Instant(_) => "an instant",
        Value::Json(_) => "a document",
    }
}

/// Parameters as a named iterator type: with a closure here the compiler cannot prove that the
/// futures holding it are `Send`.
pub(crate) struct Params<'p>(pub(crate) std::slice::Iter<'p, &'p dyn Scalar>);

impl<'p> Iterator for Params<'p> {
    type Item = Param<'p>;

    fn next(&mut self) -> Option<Param<'p>> {
        self.0.next().map(|param| Param(*param))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Params<'_> {}

/// A decoded column.
struct Column<'c>(Value<'c>);

impl<'c> FromSql<'c> for Column<'c> {
    fn from_sql(ty: &Type, raw: &'c [u8]) -> Wire<Self> {
        let text = |raw: &'c [u8]| -> Wire<Cow<'c, str>> { Ok(Cow::Borrowed(std::str::from_utf8(raw)?)) };
        Ok(Self(match *ty {
            Type::BOOL => Value::Bool(raw == [1]),
            Type::INT2 => Value::Int(i16::from_be_bytes(raw.try_into()?).into()),
            Type::INT4 => Value::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::INT8 => Value::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::XID8 => Value::Int(i64::try_from(u64::from_be_bytes(raw.try_into()?))?),
            Type::TEXT | Type::VARCHAR => Value::Text(text(raw)?),
            Type::BYTEA => Value::Bytes(Cow::Borrowed(raw)),
            Type::UUID => Value::Uuid(Uuid::from_slice(raw)?),
            Type::TIMESTAMPTZ => {
                let micros = i64::from_be_bytes(raw.try_into()?);
                Value::Instant(Timestamp::from_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS)))
            }
            Type::JSON => Value::Json(text(raw)?),
            Type::JSONB => match raw.split_first() {
                Some((&JSONB_VERSION, json)) => Value::Json(text(json)?),
                _ => return Err("JSONB of an unknown version".into()),
            },
            _ => return Err(format!("a column of type {ty}; cast it in the statement").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Wire<Self> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Decodes a column.
pub(crate) fn from_row(row: &tokio_postgres::Row, column: usize) -> Wire<Value<'_>> {
    Ok(row.try_get::<_, Column<'_>>(column)?.0)
}
