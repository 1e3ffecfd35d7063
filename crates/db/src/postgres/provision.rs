//! Roles and schemas: each domain may touch its own tables and nobody else's.

use tokio_postgres::{Client, error::SqlState};

use super::{PostgresConfig, tls};
use crate::{Domain, Error};

/// Roles belong to the whole server, so provisioning two of its databases at once can collide. Each collision means that
/// the other one got its change in; a handful of tries outlasts any crowd of test runs.
const TRIES: u32 = 20;

/// Creates for every domain the role `urr_<domain>` (nobody signs in as it; the login of `config.url` may become it)
/// and the schema `<domain>` that it owns. Repeating it changes nothing.
pub async fn provision(config: &PostgresConfig, domains: &[&Domain]) -> Result<(), Error> {
    // On the heap: connecting over TLS makes a large future, and callers hold it in theirs.
    let (client, connection) = Box::pin(config.for_admin()?.connect(tls::connector(config)?))
        .await
        .map_err(|e| Error::unavailable("connecting to PostgreSQL to create roles failed").because(e))?;
    let login = config.login()?;
    let work = async {
        for domain in domains {
            provision_domain(&client, domain, &login).await?;
        }
        close_public(&client).await
    };
    // The connection ends when the client is dropped or the server leaves; either way `work` learns of it.
    let mut connection = Box::pin(connection);
    tokio::select! {
        done = work => done,
        ended = connection.as_mut() => {
            let lost = Error::unavailable("the connection was lost while creating roles");
            Err(match ended { Ok(()) => lost, Err(e) => lost.because(e) })
        }
    }
}

async fn provision_domain(client: &Client, domain: &Domain, login: &str) -> Result<(), Error> {
    domain.check_name()?;
    let (schema, role, login) = (domain.name, domain.role(), quoted(login));
    // Whoever signs in, and whoever runs this, must be able to become the role. Superusers can anyway.
    let text = format!(
        "do $provision$
         declare member name;
         begin
           if not exists (select from pg_roles where rolname = '{role}') then
             create role {role} nologin;
           end if;
           for member in select rolname from pg_roles
                          where not rolsuper and rolname in ({login}, current_user) loop
             execute format('grant {role} to %I', member);
           end loop;
         end $provision$;
         create schema if not exists {schema} authorization {role};
         revoke all on schema {schema} from public;"
    );
    attempt(client, &text).await.map_err(failed)
}

/// By default anybody may look into the schema `public`, and on old servers also create tables there. Only its owner can
/// end that. Somebody else gets a warning from the server, or an error where it was done before, and neither is a reason
/// not to go on: `urr migrate` asks afterwards.
async fn close_public(client: &Client) -> Result<(), Error> {
    match attempt(client, "revoke all on schema public from public").await {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
        done => done.map_err(failed),
    }
}

/// As a text of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

async fn attempt(client: &Client, text: &str) -> Result<(), tokio_postgres::Error> {
    let mut tries = 1;
    loop {
        match client.batch_execute(text).await {
            Err(error) if tries < TRIES && collided(&error) => tries += 1,
            done => return done,
        }
    }
}

fn failed(error: tokio_postgres::Error) -> Error {
    Error::postgres("creating roles and schemas failed", error)
}

/// Another database of the same server was provisioned at the same moment.
fn collided(error: &tokio_postgres::Error) -> bool {
    let concurrently = |e: &tokio_postgres::error::DbError| e.message().contains("concurrently");
    matches!(
        error.code(),
        Some(&SqlState::UNIQUE_VIOLATION | &SqlState::DUPLICATE_OBJECT | &SqlState::DUPLICATE_SCHEMA)
    ) || error.as_db_error().is_some_and(concurrently)
}
