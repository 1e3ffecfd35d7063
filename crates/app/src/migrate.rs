//! `urr migrate`: roles, schemas and tables.

use urr_db::{Db, Domain, EngineKind, Tx};

use crate::{aws, config::Config, failure::Failure, say::say, stores::Databases};

urr_db::statements! {
    /// The current user, and the first object of the schema with another owner: the schema itself,
    /// then its tables and sequences.
    NOT_OURS = postgres "
        select current_user::text, what, owner from (
            select 0 as rank, 'schema ' || nspname as what, pg_get_userbyid(nspowner)::text as owner
              from pg_namespace where nspname = $1::text
            union all
            select 1, 'table ' || c.oid::regclass, pg_get_userbyid(c.relowner)::text
              from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where n.nspname = $1::text and c.relkind in ('r', 'S')) things
         where owner <> current_user
         order by rank, what
         limit 1";

    /// Whether every role can use the schema `public`.
    PUBLIC_IS_OPEN = postgres "
        select coalesce(has_schema_privilege('public', to_regnamespace('public')::oid, 'usage, create'), false)";
}

/// Migrates every database of this process to this version's schema.
pub(crate) async fn migrate(config: &Config) -> Result<(), Failure> {
    if let Some(postgres) = config.storage.postgres() {
        let domains: Vec<&Domain> = config.roles.iter().filter_map(|role| role.tables).collect();
        urr_db::postgres_provision(&postgres, &domains)
            .await
            .map_err(|error| Failure::because("PostgreSQL", &error))?;
    }
    let databases = Databases::open(config)?;
    if let Some((_, db)) = databases.iter().find(|(_, db)| db.engine() == EngineKind::Postgres) {
        warn_of_public(db).await;
    }
    for (role, db) in databases.iter() {
        let name = role.name;
        if db.engine() == EngineKind::Postgres {
            check_owner(name, db).await?;
            say!("{name}: role urr_{name} owns schema {name}");
        }
        let applied = db.migrate().await.map_err(|error| Failure::because(name, &error))?;
        if applied.is_empty() {
            say!("{name}: nothing to do");
        }
        for migration in applied {
            say!("{name}: applied {migration}");
        }
    }
    aws::migrate(config).await
}

/// Warns if the schema `public` is open to all roles: only its owner can revoke that.
async fn warn_of_public(db: &Db) {
    let look = db.read("app.public", async |tx: &mut Tx<'_>| {
        tx.one(&PUBLIC_IS_OPEN, &[], |row| row.get::<bool>(0)).await
    });
    // The next statement reports a server that does not answer.
    if look.await.is_ok_and(|is_open: bool| is_open) {
        say!(
            "warning: every login of the server can use the schema public of this database, which has another owner; \
             the owner should run: revoke all on schema public from public"
        );
    }
}

/// Fails if the domain's role does not own its schema and tables, because it has no rights in them
/// then.
async fn check_owner(schema: &'static str, db: &Db) -> Result<(), Failure> {
    let look = db.read("app.owner", async |tx: &mut Tx<'_>| {
        tx.optional(&NOT_OURS, &[&schema], |row| {
            Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<String>(2)?))
        })
        .await
    });
    match look.await.map_err(|error| Failure::because(schema, &error))? {
        None => Ok(()),
        Some((role, what, owner)) => Err(Failure::new(format!(
            "{schema}: {what} belongs to {owner} and not to {role}, as after a restore that ran before the roles existed; \
             restore it again in the order of docs/operations.md"
        ))),
    }
}
