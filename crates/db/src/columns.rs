//! Enums and JSON documents as columns and parameters.

use serde::{Serialize, de::DeserializeOwned};
use urr_kernel::{Scalar, Value, WrongValue};

/// An enum without fields, stored as its serialised word, so that tables, messages and the API use
/// the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumText<T>(pub T);

impl<T: Serialize + DeserializeOwned + Send + Sync> Scalar for EnumText<T> {
    fn to_value(&self) -> Value<'_> {
        Value::Text(enum_text(&self.0).into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        let word = String::from_value(value)?;
        parse_enum(&word).map(Self).ok_or(WrongValue { wanted: "a word of the enum" })
    }
}

/// The serialised word of an enum without fields.
///
/// # Panics
///
/// If the value is not such an enum.
pub fn enum_text<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => panic!("an enum without fields serialises to its word, not to {other:?}"),
    }
}

/// The enum without fields of a serialised word.
pub fn parse_enum<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

/// A value serialised once, for a JSON column or parameter.
#[derive(Clone, Debug)]
pub struct JsonText(String);

impl JsonText {
    /// Serialises a value.
    ///
    /// # Panics
    ///
    /// If the value cannot be serialised, such as a map whose keys are not strings.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(serde_json::to_string(value).expect("columns are plain data, which serialises"))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scalar for JsonText {
    fn to_value(&self) -> Value<'_> {
        Value::Json((&*self.0).into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        String::from_value(value).map(Self)
    }
}

/// The value of a JSON column.
#[derive(Clone, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned + Send + Sync> Scalar for Json<T> {
    fn to_value(&self) -> Value<'_> {
        Value::Json(JsonText::of(&self.0).0.into())
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        let read = serde_json::from_str(&String::from_value(value)?);
        read.map(Self).map_err(|_| WrongValue { wanted: "a document of the column's type" })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        FirstKind,
    }

    #[test]
    fn enums_are_stored_as_their_serialised_word() {
        assert_eq!(EnumText(Kind::FirstKind).to_value(), Value::Text("first_kind".into()));
        let EnumText(read) = EnumText::<Kind>::from_value(Value::Text("first_kind".into())).unwrap();
        assert_eq!(read, Kind::FirstKind);
        assert!(EnumText::<Kind>::from_value(Value::Text("second".into())).is_err());
    }

    #[test]
    fn a_document_of_another_type_is_an_error() {
        let Json(read) = Json::<Vec<u8>>::from_value(Value::Text("[1,2]".into())).unwrap();
        assert_eq!(read, [1, 2]);
        assert!(Json::<Vec<u8>>::from_value(Value::Text("{}".into())).is_err());
    }
}
