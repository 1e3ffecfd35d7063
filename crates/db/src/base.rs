//! The base migration that every domain's database runs, and this crate's own statements.

use crate::{Migration, Sql};

/// Runs before a domain's own migrations. Append only.
pub(crate) static BASE: &[Migration] = crate::migrations!["0000_base"];

crate::statements! {
    /// Health check.
    pub(crate) PING = "select 1";
}

/// Every statement of this crate, for the test that prepares them all on both engines.
pub fn base_statements() -> Vec<&'static Sql> {
    [
        STATEMENTS,
        crate::outbox::STATEMENTS,
        crate::inbox::STATEMENTS,
        crate::offsets::STATEMENTS,
        crate::dead_letters::STATEMENTS,
        crate::lease::STATEMENTS,
        crate::migrate::STATEMENTS,
    ]
    .concat()
}
