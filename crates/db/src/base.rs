//! What every domain's database has: the base migration, and the statements of this crate itself.

use crate::{Migration, Sql, dead_letters, inbox, lease, migrate, offsets, outbox};

/// Runs before a domain's own migrations. Only ever add at the end.
pub(crate) static BASE: &[Migration] = crate::migrations!["0000_base", "0000_lighter_outbox"];

crate::statements! {
    /// Whether anybody answers.
    pub(crate) PING = "select 1";
}

/// Every statement of this crate, for its own prepare-everything test and for whoever checks a whole product.
pub fn base_statements() -> Vec<&'static Sql> {
    let all =
        [STATEMENTS, outbox::STATEMENTS, inbox::STATEMENTS, offsets::STATEMENTS, dead_letters::STATEMENTS];
    all.iter()
        .chain(&[lease::STATEMENTS, migrate::STATEMENTS])
        .flat_map(|group| group.iter().copied())
        .collect()
}
