//! `urr migrate`: roles, schemas and tables.

use urr_db::Domain;

use crate::{
    config::{Choice as _, Config},
    failure::Failure,
    say::say,
    stores::{self, Databases},
};

/// Brings every database of this process to this version's schema.
pub(crate) async fn migrate(config: &Config) -> Result<(), Failure> {
    if let Some(postgres) = stores::postgres(config) {
        let domains: Vec<&Domain> = config.roles.iter().filter_map(stores::domain_of).collect();
        urr_db::postgres_provision(&postgres, &domains)
            .await
            .map_err(|error| Failure::because("PostgreSQL", &error))?;
        for domain in &domains {
            say!("{}: role urr_{} owns schema {}", domain.name, domain.name, domain.name);
        }
    }
    for (role, db) in Databases::open(config)?.iter() {
        let applied = db.migrate().await.map_err(|error| Failure::because(role.name(), &error))?;
        if applied.is_empty() {
            say!("{}: nothing to do", role.name());
        }
        for migration in applied {
            say!("{}: applied {migration}", role.name());
        }
    }
    Ok(())
}
