//! Creates roles and schemas. Each domain's role can only access its own tables.

use tokio_postgres::{Client, error::SqlState};

use super::{PostgresConfig, tls};
use crate::{Domain, Error};

/// Roles are shared by all databases of a server, so provisioning two databases at once can
/// collide. Each collision means that the other one made progress, so a few retries suffice even
/// for many parallel test runs.
const TRIES: u32 = 20;

/// Creates the role `urr_<domain>` and the schema `<domain>` that it owns, for every domain. The
/// role has no login; the login of `config.url` is granted membership. Idempotent.
pub async fn provision(config: &PostgresConfig, domains: &[&Domain]) -> Result<(), Error> {
    // Boxed: the future of a TLS connect is large, and callers embed it in theirs.
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
    // The connection ends when the client is dropped or the server closes it; `work` fails then.
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
    // The serving login and the current user must be members of the role. Superusers need no grant.
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

/// By default every role may use the schema `public`, and on old servers also create tables there.
/// Only its owner can revoke that. For any other user the server returns a warning, or an error if
/// it was revoked before. Neither is fatal: `urr migrate` checks the privileges afterwards.
async fn close_public(client: &Client) -> Result<(), Error> {
    match attempt(client, "revoke all on schema public from public").await {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
        done => done.map_err(failed),
    }
}

/// Quotes an SQL string literal.
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

/// Whether another database of the same server was being provisioned at the same time.
fn collided(error: &tokio_postgres::Error) -> bool {
    let concurrently = |e: &tokio_postgres::error::DbError| e.message().contains("concurrently");
    matches!(
        error.code(),
        Some(&SqlState::UNIQUE_VIOLATION | &SqlState::DUPLICATE_OBJECT | &SqlState::DUPLICATE_SCHEMA)
    ) || error.as_db_error().is_some_and(concurrently)
}
