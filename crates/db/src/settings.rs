//! Settings of the SQL engine.

use std::path::PathBuf;

use urr_settings::{PostgresUrl, Problems, Size, choice, settings};

use crate::{PostgresConfig, SqliteOptions};

choice! {
    /// Which SQL engine is used.
    pub enum StorageKind {
        /// Files in the data directory.
        Sqlite = "sqlite",
        /// A PostgreSQL server.
        Postgres = "postgres",
    }
}

settings! {
    /// `[storage]`.
    pub struct Settings in "storage" "The SQL engine that holds the truth about seats and money." {
        /// `sqlite` keeps one file per domain in the data directory; `postgres` needs
        /// `storage.url`.
        pub kind: StorageKind = "sqlite",
        /// The PostgreSQL database, with the login the process uses.
        pub url: Option<PostgresUrl> = "",
        /// The same database with a login that may create roles and schemas: only `urr migrate`
        /// uses it. Without it, `storage.url` is used.
        pub admin_url: Option<PostgresUrl> = "",
        /// The certificate authority of the server, as PEM; the machine's own list if left out. A
        /// server beyond loopback is always reached over TLS unless the URL says `sslmode=disable`.
        pub ca_file: Option<PathBuf> = "",
        /// Connections per domain and process. PostgreSQL allows 100 in all by default.
        pub pool: Size<1, 1_000> = "16",
        /// Whether concurrent SQLite writes share one fsync. Off is slower and no safer; it exists
        /// to be measured.
        pub group_commit: bool = "true",
    }
}

impl Settings {
    /// Whether files are used.
    pub fn is_sqlite(&self) -> bool {
        self.kind == StorageKind::Sqlite
    }

    /// How to reach PostgreSQL, if it is used.
    pub fn postgres(&self) -> Option<PostgresConfig> {
        let url = self.url.as_ref().filter(|_| !self.is_sqlite())?;
        Some(PostgresConfig {
            admin_url: self.admin_url.as_ref().map(|url| url.expose().to_owned()),
            ca_file: self.ca_file.clone(),
            pool_size: self.pool,
            ..PostgresConfig::new(url.expose())
        })
    }

    /// How files are opened.
    pub fn sqlite(&self) -> SqliteOptions {
        SqliteOptions { group_commit: self.group_commit, ..SqliteOptions::default() }
    }

    /// Reports settings of the engine that is not used, and what the other one lacks.
    pub fn check(&self, problems: &mut Problems<'_>) {
        if !self.is_sqlite() {
            if self.url.is_none() {
                problems.missing(const { Self::info("storage.url") }, "storage.kind = postgres needs it");
            }
            return;
        }
        for info in const {
            [Self::info("storage.url"), Self::info("storage.admin_url"), Self::info("storage.ca_file")]
        } {
            problems.stray(info, "is only for storage.kind = postgres; set that too, or remove it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_pool_size_matches_the_config_default() {
        assert_eq!(Settings::default().pool, PostgresConfig::new("").pool_size);
    }
}
