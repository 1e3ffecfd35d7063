//! SQLite encoding of [`Value`]: a UUID is a 16-byte BLOB, a timestamp INTEGER microseconds, JSON
//! is TEXT.

use std::{borrow::Cow, error::Error as StdError};

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use urr_kernel::Value;

/// A parameter to be bound.
pub(crate) struct Bind<'v>(pub(crate) Value<'v>);

impl ToSql for Bind<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match &self.0 {
            Value::Null => ValueRef::Null,
            Value::Bool(yes) => ValueRef::Integer(i64::from(*yes)),
            Value::Int(n) => ValueRef::Integer(*n),
            Value::Text(text) | Value::Json(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            Value::Uuid(id) => ValueRef::Blob(id.as_bytes()),
            Value::Instant(at) => ValueRef::Integer(at.as_micros()),
        }))
    }
}

/// Decodes a column. SQLite has fewer types than [`Value`], so the target type decides how bytes
/// and integers are read.
pub(crate) fn from_row<'r>(
    row: &'r rusqlite::Row<'_>,
    column: usize,
) -> Result<Value<'r>, Box<dyn StdError + Send + Sync>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => Value::Int(n),
        ValueRef::Text(text) => Value::Text(Cow::Borrowed(std::str::from_utf8(text)?)),
        ValueRef::Blob(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
        ValueRef::Real(_) => return Err("a floating point number, which no column uses".into()),
    })
}
