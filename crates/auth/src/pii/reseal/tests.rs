//! Re-encryption with damaged rows.

use urr_contracts::auth::{Auth as _, EnrolSecondFactor, IdentitySource, OwnerProof, Sensitive};

use super::*;
use crate::{
    Person,
    fixture::{Fixture, PASSWORD, home, keyed, on_each_engine},
};

/// Damages the encrypted value of each part.
static DAMAGES: [Sql; 3] = [
    Sql::both("test.damage", "update accounts set email = $2 where id = $1"),
    Sql::both("test.damage_identity", "update identities set person = $2 where account_id = $1"),
    Sql::both("test.damage_factor", "update second_factors set secret = $2 where account_id = $1"),
];

/// An account with an identity and a second factor.
async fn with_everything(fixture: &Fixture, service: &Service, number: usize) -> UserId {
    let user = fixture.register(service, &format!("user{number}@example.com")).await;
    let id = user.account.id;
    let proof = OwnerProof { password: Some(Sensitive::new(PASSWORD)), session: None };
    let request = EnrolSecondFactor { proof, origin: home() };
    service.enrol_second_factor(&fixture.of(&user), request).await.unwrap();

    let person = Person {
        ci: format!("CI-{number}"),
        di: None,
        name: "김민지".to_owned(),
        birth_date: None,
        phone: None,
        gender: None,
        foreigner: None,
    };
    let known: Result<bool, urr_db::Error> =
        transaction!(service.db, "test.identity", async |tx: &mut Tx<'_>| {
            let (keys, now) = ((&service.vault, &service.ids), fixture.clock.now());
            identity::store::insert(keys, tx, id, (&person, IdentitySource::Sandbox), now).await
        });
    assert!(known.unwrap());
    id
}

#[tokio::test]
async fn a_damaged_row_does_not_block_reencryption_of_others() {
    on_each_engine(async |fixture| {
        let service = Service::new(fixture.parts());
        let mut users = Vec::new();
        for number in 0..4 {
            users.push(with_everything(fixture, &service, number).await);
        }
        let rubbish = vec![0xff_u8; 40];
        for (sql, user) in DAMAGES.iter().zip(&users) {
            let damaged: Result<u64, urr_db::Error> =
                transaction!(service.db, "test.damage", async |tx: &mut Tx<'_>| {
                    tx.execute(sql, &[user, &rubbish]).await
                });
            assert_eq!(damaged.unwrap(), 1);
        }
        let service = |keys: &[&str]| {
            let mut parts = fixture.parts();
            parts.pii = keyed(keys);
            Service::new(parts)
        };
        let newer = service(&["first", "second"]);
        for part in Part::ALL {
            // With the smallest batch, a batch that contains only a damaged row is passed too.
            let mut done = 0;
            for _ in &users {
                let outcome = newer.reseal(part, 1).await.unwrap();
                assert!(outcome.more, "{part:?}");
                done += outcome.done;
            }
            assert_eq!(done, 3, "{part:?}");
            let visited = newer.reseal(part, 1).await.unwrap();
            assert_eq!(visited, Outcome::default(), "all rows were visited: {part:?}");
            assert_eq!(newer.reseal(part, BATCH).await.unwrap().done, 0, "damaged rows are kept: {part:?}");
        }
        let gone = service(&["second"]).check_keys().await;
        assert!(
            matches!(gone, Err(WrongKeys::Missing(key)) if key == "first"),
            "damaged rows are not marked as re-encrypted"
        );
    })
    .await;
}
