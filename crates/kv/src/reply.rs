//! Replies of Redis, without the types of the client crate.

use redis::Value;

use crate::Error;

/// A reply. These are all the types Lua returns: a status is bytes, `true` is 1, `false` is nil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nil.
    Nil,
    /// A whole number.
    Int(i64),
    /// Text or bytes.
    Bytes(Vec<u8>),
    /// A list of replies.
    List(Vec<Reply>),
}

impl Reply {
    /// The number, or [`Error::Reply`] for another type.
    pub fn int(&self) -> Result<i64, Error> {
        match self {
            Self::Int(number) => Ok(*number),
            other => Err(other.unexpected("a number")),
        }
    }

    /// The bytes, or [`Error::Reply`] for another type.
    pub fn bytes(&self) -> Result<&[u8], Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.unexpected("bytes")),
        }
    }

    /// The elements of a list, or [`Error::Reply`] for another type.
    pub fn list(&self) -> Result<&[Self], Error> {
        match self {
            Self::List(list) => Ok(list),
            other => Err(other.unexpected("a list")),
        }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let found = match self {
            Self::Nil => "nothing",
            Self::Int(_) => "a number",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
        };
        Error::Reply(format!("expected {wanted}, found {found}"))
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        let list = |values: Vec<Value>| Self::List(values.into_iter().map(Self::from).collect());
        match value {
            Value::Int(number) => Self::Int(number),
            Value::Boolean(yes) => Self::Int(i64::from(yes)),
            Value::BulkString(bytes) => Self::Bytes(bytes),
            Value::SimpleString(text) | Value::VerbatimString { text, .. } => Self::Bytes(text.into_bytes()),
            Value::Okay => Self::Bytes(b"OK".to_vec()),
            Value::Double(number) => Self::Bytes(number.to_string().into_bytes()),
            Value::Array(values) | Value::Set(values) => list(values),
            Value::Map(pairs) => list(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
            Value::Attribute { data, .. } => Self::from(*data),
            // Nil. Pushes and errors are filtered out earlier.
            _ => Self::Nil,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reply_type_is_converted() {
        let value = Value::Array(vec![
            Value::Nil,
            Value::Int(-3),
            Value::BulkString(vec![0, 255]),
            Value::Okay,
            Value::Map(vec![(Value::SimpleString("a".to_owned()), Value::Boolean(true))]),
        ]);
        let expected = Reply::List(vec![
            Reply::Nil,
            Reply::Int(-3),
            Reply::Bytes(vec![0, 255]),
            Reply::Bytes(b"OK".to_vec()),
            Reply::List(vec![Reply::Bytes(b"a".to_vec()), Reply::Int(1)]),
        ]);
        assert_eq!(Reply::from(value), expected);
    }

    #[test]
    fn a_type_mismatch_names_both_types() {
        let error = Reply::Nil.int().unwrap_err();
        assert_eq!(error, Error::Reply("expected a number, found nothing".to_owned()));
        assert!(Reply::Int(1).list().is_err() && Reply::Int(1).bytes().is_err());
    }
}
