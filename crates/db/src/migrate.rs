//! Migrations: per domain and engine, embedded in the binary, applied once and never edited.
//!
//! Not a library: refinery covers both engines but opens its own connections, so it would need both
//! drivers a second time and could not run as the domain's role.

use std::{fmt::Write as _, time::Duration};

use sha2::{Digest as _, Sha256};
use urr_kernel::Timestamp;

use crate::{Db, EngineKind, Error, Tx, base::BASE, statements};

/// Time limit of one migration statement on PostgreSQL: indexing a large table takes minutes.
const PATIENCE: Duration = Duration::from_mins(10);

/// A domain's name and migrations.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    /// Name of the file, the schema and the role: lower-case letters and underscores.
    pub name: &'static str,
    /// In the order of application. Append only. Built with [`migrations!`](crate::migrations).
    pub migrations: &'static [Migration],
}

/// One migration, with a text per engine.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The file name without `.sql`, such as `0001_holds`.
    pub name: &'static str,
    /// The SQL for SQLite.
    pub sqlite: &'static str,
    /// The SQL for PostgreSQL.
    pub postgres: &'static str,
}

/// The migrations of the calling crate, from `migrations/sqlite/<name>.sql` and
/// `migrations/postgres/<name>.sql`.
///
/// ```
/// use urr_db::{Domain, migrations};
///
/// pub static DOMAIN: Domain = Domain { name: "tickets", migrations: migrations!["0000_base"] };
/// ```
#[macro_export]
macro_rules! migrations {
    ($($name:literal),* $(,)?) => {
        &[$($crate::Migration {
            name: $name,
            sqlite: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres/", $name, ".sql")),
        }),*]
    };
}

impl Domain {
    /// The PostgreSQL role that owns the domain's tables.
    pub(crate) fn role(&self) -> String {
        format!("urr_{}", self.name)
    }

    /// Validates the name, because it becomes part of file names and SQL.
    pub(crate) fn check_name(&self) -> Result<(), Error> {
        let harmless = self.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if harmless && !self.name.is_empty() {
            return Ok(());
        }
        Err(Error::bug(format!(
            "{:?} is not a valid domain name: use lower-case letters and underscores",
            self.name
        )))
    }
}

impl Migration {
    fn text(&self, engine: EngineKind) -> &'static str {
        match engine {
            EngineKind::Sqlite => self.sqlite,
            EngineKind::Postgres => self.postgres,
        }
    }

    fn checksum(&self, engine: EngineKind) -> String {
        Sha256::digest(self.text(engine)).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn file(&self, engine: EngineKind) -> String {
        let folder = match engine {
            EngineKind::Sqlite => "sqlite",
            EngineKind::Postgres => "postgres",
        };
        format!("migrations/{folder}/{}.sql", self.name)
    }
}

statements! {
    /// Whether the table of applied migrations exists.
    HISTORY_EXISTS = sqlite "select count(*) from sqlite_schema where name = 'schema_history'"
                     postgres "select count(*) from pg_class where oid = to_regclass('schema_history')";

    /// The applied migrations.
    HISTORY = "select name, checksum from schema_history order by seq";

    /// Records an applied migration.
    RECORD = "insert into schema_history (seq, name, checksum, applied_at) values ($1, $2, $3, $4)";

    /// The server's durability setting.
    DURABILITY = postgres "select current_setting('synchronous_commit')";
}

const CREATE_HISTORY_SQLITE: &str = "create table if not exists schema_history (
    seq integer primary key, name text not null unique, checksum text not null, applied_at integer not null) strict";

/// The advisory lock serialises concurrent migrators. Timeouts that protect requests are lifted for
/// this transaction.
const PREPARE_POSTGRES: &str = "
    set local statement_timeout = 0; set local lock_timeout = '60s'; set local idle_in_transaction_session_timeout = 0;
    select pg_advisory_xact_lock(hashtext('urr migrate'), hashtext(current_schema()));
    create table if not exists schema_history (
        seq bigint primary key, name text not null unique, checksum text not null, applied_at timestamptz not null)";

impl Db {
    /// Applies pending migrations, each in its own transaction, and returns their names. Safe to
    /// run from two processes at once. Fails if an applied migration was edited or is unknown to
    /// this binary.
    pub async fn migrate(&self) -> Result<Vec<&'static str>, Error> {
        let (count, now) = (BASE.len() + self.domain().migrations.len(), self.now());
        let mut applied = Vec::new();
        // Each iteration applies one migration; the last one finds none pending.
        for _ in 0..=count {
            let next = self.write_patiently("db.migrate", PATIENCE, async |tx: &mut Tx<'_>| {
                self.apply_next(tx, now).await
            });
            match next.await? {
                Some(name) => applied.push(name),
                None => break,
            }
        }
        Ok(applied)
    }

    async fn apply_next(&self, tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<&'static str>, Error> {
        let engine = self.engine();
        match engine {
            EngineKind::Sqlite => tx.script(CREATE_HISTORY_SQLITE).await?,
            EngineKind::Postgres => tx.script(PREPARE_POSTGRES).await?,
        }
        let found = history(tx).await?;
        let Some(next) = self.first_missing(&found)? else { return Ok(None) };
        let text = next.text(engine);
        if engine == EngineKind::Sqlite && text.to_ascii_lowercase().contains("deferrable") {
            return Err(self.refuse(
                next,
                "has a deferred constraint, which would be checked at COMMIT and fail the writes that share it",
            ));
        }
        tx.script(text).await.map_err(|e| self.refuse(next, "failed").because(e))?;
        let seq = i64::try_from(found.len()).unwrap_or(i64::MAX);
        tx.execute(&RECORD, &[&seq, &next.name, &next.checksum(engine), &now]).await?;
        Ok(Some(next.name))
    }

    /// Start-up check: all migrations are applied, none is unknown, and the server's commits are
    /// durable.
    pub async fn check_migrated(&self) -> Result<(), Error> {
        let (found, durability) = self
            .read("db.check_migrated", async |tx: &mut Tx<'_>| {
                let exists: i64 = tx.one(&HISTORY_EXISTS, &[], |row| row.get(0)).await?;
                let found = if exists == 0 { Vec::new() } else { history(tx).await? };
                let durability: Option<String> = match self.engine() {
                    EngineKind::Sqlite => None,
                    EngineKind::Postgres => tx.optional(&DURABILITY, &[], |row| row.get(0)).await?,
                };
                Ok::<_, Error>((found, durability))
            })
            .await?;
        if let Some(missing) = self.first_missing(&found)? {
            return Err(self.refuse(missing, "has not been applied: run `urr migrate`"));
        }
        if durability.as_deref() == Some("off") {
            return Err(Error::bug(format!(
                "{}: synchronous_commit is off, so the server would lose sales it has acknowledged",
                self.domain().name
            )));
        }
        Ok(())
    }

    /// The first pending migration.
    fn first_missing(&self, found: &[(String, String)]) -> Result<Option<&'static Migration>, Error> {
        first_missing(found, BASE, self.domain().migrations, self.engine())
            .map_err(|wrong| Error::bug(format!("{}: {wrong}", self.domain().name)))
    }

    fn refuse(&self, migration: &Migration, what: &str) -> Error {
        Error::bug(format!("{}: {} {what}", self.domain().name, migration.file(self.engine())))
    }
}

/// The first pending migration. The applied ones must be a prefix of the base list and a prefix of
/// the domain's list, with equal checksums. The base list may have grown after the domain's first
/// migration.
fn first_missing<'m>(
    found: &[(String, String)],
    mut base: &'m [Migration],
    mut own: &'m [Migration],
    engine: EngineKind,
) -> Result<Option<&'m Migration>, String> {
    let is_base: Vec<&str> = base.iter().map(|step| step.name).collect();
    for (name, checksum) in found {
        let list = if is_base.contains(&&**name) { &mut base } else { &mut own };
        match list.split_first() {
            Some((known, rest)) if known.name == name && known.checksum(engine) == *checksum => *list = rest,
            Some((known, _)) if known.name == name => {
                let file = known.file(engine);
                return Err(format!(
                    "{file} was changed after it was applied: restore it and add a new migration"
                ));
            }
            Some((known, _)) => {
                let file = known.file(engine);
                return Err(format!(
                    "{file} is where the database has {name}: migrations must keep their order"
                ));
            }
            None => {
                return Err(format!(
                    "the database has migration {name}, which this binary does not have: is it older?"
                ));
            }
        }
    }
    Ok(base.first().or(own.first()))
}

async fn history(tx: &mut Tx<'_>) -> Result<Vec<(String, String)>, Error> {
    tx.all(&HISTORY, &[], |row| Ok((row.get(0)?, row.get(1)?))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(name: &'static str) -> Migration {
        Migration { name, sqlite: "select 1", postgres: "select 1" }
    }

    #[test]
    fn a_new_base_migration_is_applied_to_an_older_database() {
        let (base, own) = ([step("0000_base"), step("0000_later")], [step("0001_one"), step("0002_two")]);
        let applied = |names: &[&str]| -> Vec<(String, String)> {
            let checksum = base[0].checksum(EngineKind::Sqlite);
            names.iter().map(|name| ((*name).to_owned(), checksum.clone())).collect()
        };
        let next = |names: &[&str]| {
            let found = first_missing(&applied(names), &base, &own, EngineKind::Sqlite);
            found.unwrap().map(|migration| migration.name)
        };
        assert_eq!(next(&["0000_base", "0001_one"]), Some("0000_later"));
        assert_eq!(next(&["0000_base", "0001_one", "0000_later"]), Some("0002_two"));
        assert_eq!(next(&["0000_base", "0001_one", "0000_later", "0002_two"]), None);
    }
}
