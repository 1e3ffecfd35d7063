//! Closed enums of the contract as columns.

use serde::{Serialize, de::DeserializeOwned};
use urr_kernel::{Scalar, Value, WrongValue};

/// An enum as the word it is on the wire, so that tables, messages and pages say the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<T>(pub(crate) T);

impl<T: Serialize + DeserializeOwned + Send + Sync> Scalar for Word<T> {
    fn to_value(&self) -> Value<'_> {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(word)) => Value::Text(word.into()),
            other => unreachable!("an enum without fields serialises to its word, not to {other:?}"),
        }
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        let word = serde_json::Value::String(String::from_value(value)?);
        serde_json::from_value(word).map(Self).map_err(|_| WrongValue { wanted: "a word we know" })
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::auth::{LoginMethod, TermsKind};

    use super::*;

    #[test]
    fn an_enum_is_the_word_that_is_on_the_wire() {
        assert_eq!(Word(TermsKind::Marketing).to_value(), Value::Text("MARKETING".into()));
        let Word(read) = Word::<LoginMethod>::from_value(Value::Text("password".into())).unwrap();
        assert_eq!(read, LoginMethod::Password);
        assert!(Word::<LoginMethod>::from_value(Value::Text("carrier pigeon".into())).is_err());
    }
}
