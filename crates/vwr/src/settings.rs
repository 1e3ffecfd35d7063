//! Settings of Tier 1 of the waiting room.

use urr_settings::{Problems, choice, settings};

choice! {
    /// Which store counts places.
    pub enum CountersKind {
        /// Redis if there is one, else memory.
        Auto = "auto",
        /// A table of DynamoDB.
        DynamoDb = "dynamodb",
    }
}

settings! {
    /// `[vwr]`.
    pub struct Settings in "vwr"
        "Tier 1 of the waiting room: the line in front of the whole site. Operators open its rooms."
    {
        /// `auto` counts places in Redis if there is one, else in memory; `dynamodb` in the table
        /// `<vwr.table_prefix>-vwr-counters`, which `urr migrate` creates, and needs `aws.region`.
        pub counters: CountersKind = "auto",
        /// Prefix of the table's name.
        pub table_prefix: String = "urr",
    }
}

impl Settings {
    /// Whether positions are counted in DynamoDB.
    pub fn uses_dynamodb(&self) -> bool {
        self.counters == CountersKind::DynamoDb
    }

    /// Reports a prefix that is not used or that DynamoDB does not allow.
    pub fn check(&self, problems: &mut Problems<'_>) {
        let prefix = const { Self::info("vwr.table_prefix") };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !self.uses_dynamodb() {
            problems.stray(prefix, "is only for vwr.counters = dynamodb; set that too, or remove it");
        } else if !(1..=200).contains(&self.table_prefix.len()) || !self.table_prefix.bytes().all(is_plain) {
            problems.stray(prefix, "may have 200 letters, digits, hyphens, dots and underscores");
        }
    }
}
