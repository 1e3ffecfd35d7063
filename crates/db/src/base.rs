//! What every domain's database has: the base migration, and the statements of this crate itself.

use crate::{Migration, Sql};

/// Runs before a domain's own migrations. Only ever add at the end.
pub(crate) static BASE: &[Migration] = crate::migrations!["0000_base", "0000_lighter_outbox"];

crate::statements! {
    /// Whether anybody answers.
    pub(crate) PING = "select 1";
}

/// Every statement of this crate, for its own prepare-everything test and for whoever checks a whole product.
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
