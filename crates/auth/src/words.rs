//! Enums of the contract as database columns.

use serde::{Serialize, de::DeserializeOwned};
use urr_kernel::{Scalar, Value, WrongValue};

/// An enum stored as its serialised word, so that tables, messages and pages use the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<T>(pub(crate) T);

impl<T: Serialize + DeserializeOwned + Send + Sync> Scalar for Word<T> {
    fn to_value(&self) -> Value<'_> {
        Value::Text(word(&self.0).into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        parse(&String::from_value(value)?).map(Self).ok_or(WrongValue { wanted: "a known word" })
    }
}

/// The serialised word of an enum without fields.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("an enum without fields serialises to its word, not to {other:?}"),
    }
}

/// Parses a word.
pub(crate) fn parse<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

#[cfg(test)]
mod tests {
    use urr_contracts::auth::{LoginMethod, TermsKind};

    use super::*;

    #[test]
    fn enums_are_stored_as_their_serialised_word() {
        assert_eq!(Word(TermsKind::Marketing).to_value(), Value::Text("MARKETING".into()));
        let Word(read) = Word::<LoginMethod>::from_value(Value::Text("password".into())).unwrap();
        assert_eq!(read, LoginMethod::Password);
        assert!(Word::<LoginMethod>::from_value(Value::Text("carrier pigeon".into())).is_err());
    }
}
