//! Roles and grants: a domain can only access its own tables.

use urr_db::{Db, Domain, Migration, Tx, statements};

use crate::fresh::{DOMAIN, Server, count, ids, sit, with_postgres};

static CATALOG: Domain = Domain {
    name: "catalog",
    migrations: &[Migration {
        name: "0001_events",
        sqlite: "",
        postgres: "create table events (id bigint);",
    }],
};

statements! {
    PEEK = postgres "select id from catalog.events";
    PEEK_MESSAGES = postgres "select seq from catalog.outbox";
    WHERE_AM_I = postgres "select current_schema()::text, current_user::text";
    IN_PUBLIC = postgres "create table public.stray (id bigint)";
    IN_CATALOG = postgres "create table catalog.stray (id bigint)";
}

#[tokio::test]
async fn domain_can_only_access_its_own_tables() {
    with_postgres(async |server: Server| {
        let tickets = server.migrated(&DOMAIN).await;
        let catalog = server.migrated(&CATALOG).await;
        for (db, schema, role) in [(&tickets, "tickets", "urr_tickets"), (&catalog, "catalog", "urr_catalog")]
        {
            let here = db.read("test.where", async |tx: &mut Tx<'_>| {
                tx.one(&WHERE_AM_I, &[], |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?))).await
            });
            assert_eq!(here.await.unwrap(), (schema.to_owned(), role.to_owned()));
        }
        catalog.read("test.own", async |tx: &mut Tx<'_>| tx.all(&PEEK, &[], |_| Ok(())).await).await.unwrap();
        for statement in [&PEEK, &PEEK_MESSAGES, &IN_PUBLIC, &IN_CATALOG] {
            let peek =
                tickets.write("test.peek", async |tx: &mut Tx<'_>| tx.execute(statement, &[]).await).await;
            let error = peek.expect_err(statement.name());
            let why = format!("{:?}", std::error::Error::source(&error));
            assert!(why.contains("permission denied"), "{}: {why}", statement.name());
        }
    })
    .await;
}

#[tokio::test]
async fn provisioning_is_idempotent_and_safe_concurrently() {
    with_postgres(async |server: Server| {
        let config = server.config();
        let domains = [&DOMAIN, &CATALOG];
        let once = || urr_db::postgres_provision(&config, &domains);
        let (a, b, c) = tokio::join!(once(), once(), once());
        a.and(b).and(c).unwrap();
        once().await.unwrap();
        server.migrated(&DOMAIN).await.check_migrated().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn unprivileged_login_can_serve() {
    with_postgres(async |server: Server| {
        let login = format!("urr_login_{}", ids().next::<uuid::Uuid>().simple());
        server.command(&format!("create role {login} login")).await;
        let (_, rest) = server.url().split_once('@').unwrap();
        let mut config = urr_db::PostgresConfig::new(format!("postgres://{login}@{rest}"));
        config.admin_url = Some(server.url().to_owned());
        urr_db::postgres_provision(&config, &[&DOMAIN]).await.unwrap();
        let db = Db::postgres(&config, &DOMAIN).unwrap();
        db.migrate().await.unwrap();
        db.write("test.sit", async |tx: &mut Tx<'_>| sit(tx, 1, "ann").await).await.unwrap();
        assert_eq!(count(&db).await, 1);
        drop(db);
        server.command(&format!("revoke urr_tickets from {login}; drop role {login}")).await;
    })
    .await;
}

/// An administrator has already revoked the rights that only the owner of `public` can revoke.
#[tokio::test]
async fn non_owner_of_public_can_provision_once_rights_are_revoked() {
    // A domain of its own: newer servers let an administrator grant only roles that it created.
    static CLOSED: Domain = Domain { name: "closed", migrations: &[] };
    with_postgres(async |server: Server| {
        let admin = format!("urr_admin_{}", ids().next::<uuid::Uuid>().simple());
        let (_, rest) = server.url().split_once('@').unwrap();
        let (_, database) = rest.split_once('/').unwrap();
        server
            .command(&format!(
                "create role {admin} login createrole;
                 grant create on database {database} to {admin};
                 revoke all on schema public from public"
            ))
            .await;
        let config = urr_db::PostgresConfig::new(format!("postgres://{admin}@{rest}"));
        urr_db::postgres_provision(&config, &[&CLOSED]).await.unwrap();
        urr_db::postgres_provision(&config, &[&CLOSED]).await.unwrap();
        server
            .command(&format!("drop schema closed; drop owned by {admin}; drop role {admin}, urr_closed"))
            .await;
    })
    .await;
}
