//! Db and Tx over SQLite and PostgreSQL: statements, group commit, migrations, outbox, inbox, leases.
