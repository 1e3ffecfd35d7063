//! The work of comparing a password.

use std::io::Cursor;

use serde_json::json;
use urr_contracts::auth::{Auth as _, Login, LoginOutcome, Sensitive};
use urr_db::Sql;
use urr_kernel::Actor;

use super::*;
use crate::fixture::{Fixture, home, on_each_engine};

const IMPORTED: &str = "password of the old site";

/// Makes an account look like one that signs in with a provider.
static WITHOUT_PASSWORD: Sql =
    Sql::both("test.without_password", "update accounts set password_hash = null where id = $1");

async fn login(
    fixture: &Fixture,
    service: &Service,
    email: &str,
    password: &str,
) -> Result<LoginOutcome, Error> {
    let (email, password) = (email.to_owned(), Sensitive::new(password));
    let request = Login { email, password, origin: home() };
    service.login(&fixture.ctx(Actor::Anonymous), request).await
}

/// Compares the amount of hashing, as a substitute for timing.
#[tokio::test]
async fn a_wrong_password_costs_the_same_for_every_address() {
    on_each_engine(async |fixture| {
        let service = Service::new(fixture.parts());
        fixture.register(&service, "new@example.com").await;
        let id = fixture.register(&service, "social@example.com").await.account.id;
        let changed: Result<u64, urr_db::Error> =
            transaction!(service.db, "test.without_password", async |tx: &mut Tx<'_>| {
                tx.execute(&WITHOUT_PASSWORD, &[&id]).await
            });
        assert_eq!(changed.unwrap(), 1);
        let refused = async |email: &str, wrong: &str| {
            let before = service.pool.work.done();
            let refused = login(fixture, &service, email, wrong).await;
            assert_eq!(refused, Err(Error::InvalidCredentials), "{email}");
            let after = service.pool.work.done();
            [after[0] - before[0], after[1] - before[1]]
        };
        let everybody = ["nobody@example.com", "new@example.com", "social@example.com"];
        for email in everybody {
            assert_eq!(refused(email, "wrong").await, [64, 0], "{email}: no imported accounts");
        }
        for (email, cost) in [("cheap@example.com", 4), ("dear@example.com", 6)] {
            let hash = bcrypt::hash(IMPORTED, cost).unwrap();
            let line = json!({ "email": email, "name": "김민지", "passwordHash": hash }).to_string();
            assert_eq!(crate::import(&service, &mut Cursor::new(line)).await.unwrap().made, 1);
        }
        for email in everybody.into_iter().chain(["cheap@example.com", "dear@example.com"]) {
            assert_eq!(refused(email, "wrong again").await, [64, 1 << 6], "{email}");
        }
        login(fixture, &service, "dear@example.com", IMPORTED).await.unwrap();
        for email in ["nobody@example.com", "cheap@example.com", "dear@example.com"] {
            assert_eq!(
                refused(email, "still wrong").await,
                [64, 1 << 4],
                "{email}: the most expensive hash was replaced"
            );
        }
        login(fixture, &service, "cheap@example.com", IMPORTED).await.unwrap();
        assert_eq!(refused("nobody@example.com", "wrong").await, [64, 0], "all hashes were replaced");
    })
    .await;
}
