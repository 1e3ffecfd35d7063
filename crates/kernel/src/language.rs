//! The language of mails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The language of mails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Korean.
    #[default]
    Ko,
    /// English.
    En,
}
