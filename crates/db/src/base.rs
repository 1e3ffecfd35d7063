//! What every domain's database has: the base migration, and the statements of this crate itself.

use crate::{Migration, Sql, dead_letters, inbox, lease, migrate, offsets, outbox};

/// Runs before a domain's own migrations.
pub(crate) static BASE: Migration = Migration {
    name: "0000_base",
    sqlite: include_str!("../migrations/sqlite/0000_base.sql"),
    postgres: include_str!("../migrations/postgres/0000_base.sql"),
};

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
