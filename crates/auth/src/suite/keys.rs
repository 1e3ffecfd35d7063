//! Personal data on disk: encrypted, re-encrypted with new keys, and protected against wrong keys.

use std::sync::Arc;

use urr_contracts::auth::{Auth, IdentitySource, Login, LoginOutcome, Me, Sensitive, SignedIn};
use urr_db::{Tx, transaction};
use urr_jobs::Outcome;
use urr_kernel::UserId;

use super::{
    second_factor::turn_on,
    world::{
        DAMAGE, DAMAGE_FACTOR, DAMAGE_IDENTITY, DbKind, PASSWORD, PERSONAL, Sealing, Transport, World, home,
        keyed,
    },
};
use crate::{
    IndexKey, Person, Pii, Service, WrongKeys, identity,
    pii::reseal::{BATCH, Part},
};

/// All bytes of an account's personal columns, and their key id.
async fn on_disk(world: &World, user: &SignedIn) -> (Vec<u8>, String) {
    world
        .one(&PERSONAL, &[&user.account.id], |row| {
            let columns: [Vec<u8>; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((columns.concat(), row.get(4)?))
        })
        .await
}

fn shows(bytes: &[u8]) -> bool {
    ["minji", "김민지", "1012345678"]
        .iter()
        .any(|text| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
}

async fn sees_the_same(world: &World, service: &Arc<Service>, user: &SignedIn) {
    let request =
        Login { email: "minji@example.com".to_owned(), password: Sensitive::new(PASSWORD), origin: home() };
    let outcome = service.login(&world.anonymous(), request).await.unwrap();
    let LoginOutcome::SignedIn(signed_in) = outcome else { panic!("{outcome:?}") };
    assert_eq!(signed_in.account, user.account);
    assert_eq!(service.me(&world.of(user), Me {}).await.unwrap(), user.account);
}

async fn story(world: &World) {
    let user = world.register("minji@example.com").await;
    let (bytes, key) = on_disk(world, &user).await;
    assert!(shows(&bytes) && key.is_empty(), "without a key the data is plain");

    let strict = crate::check_keys(&world.neighbour(keyed(&["first"]))).await.unwrap_err();
    assert!(matches!(strict, WrongKeys::Plain), "plain rows are refused by default");
    let first = world.neighbour(Pii { takes_plain: true, ..keyed(&["first"]) });
    crate::check_keys(&first).await.unwrap();
    sees_the_same(world, &first, &user).await;
    assert_eq!(first.reseal(Part::Accounts, BATCH).await.unwrap().done, 1);
    assert_eq!(first.reseal(Part::Accounts, BATCH).await.unwrap().done, 0);
    let (bytes, key) = on_disk(world, &user).await;
    assert!(!shows(&bytes), "with a key the data is encrypted");
    assert_eq!(key, "first");
    crate::check_keys(&world.neighbour(keyed(&["first"]))).await.unwrap();

    let second = world.neighbour(keyed(&["first", "second"]));
    crate::check_keys(&second).await.unwrap();
    sees_the_same(world, &second, &user).await;
    let gone = crate::check_keys(&world.neighbour(keyed(&["second"]))).await.unwrap_err();
    assert!(matches!(gone, WrongKeys::Missing(key) if key == "first"), "the old key is still needed");
    assert_eq!(second.reseal(Part::Accounts, BATCH).await.unwrap().done, 1);
    assert_eq!(on_disk(world, &user).await.1, "second");
    let alone = world.neighbour(keyed(&["second"]));
    crate::check_keys(&alone).await.unwrap();
    sees_the_same(world, &alone, &user).await;

    let other = Pii { index: IndexKey::new([7; 32]), ..keyed(&["second"]) };
    let wrong = crate::check_keys(&world.neighbour(other)).await.unwrap_err();
    assert!(matches!(wrong, WrongKeys::Index));
}

#[tokio::test]
async fn key_rotation_is_transparent_and_wrong_keys_are_detected() {
    for db in [DbKind::Sqlite, DbKind::Postgres] {
        World::run((db, Transport::Local, Sealing::Plain), async |world| story(world).await).await;
    }
}

#[tokio::test]
async fn a_profile_change_during_key_rotation_is_not_lost() {
    let kinds = (DbKind::Sqlite, Transport::Local, Sealing::Sealed);
    World::run(kinds, async |world| {
        let user = world.register("minji@example.com").await;
        let newer = world.neighbour(keyed(&["first", "second"]));
        let change = urr_contracts::auth::ChangeProfile {
            name: Some("하니".to_owned()),
            ..urr_contracts::auth::ChangeProfile::default()
        };
        newer.change_profile(&world.of(&user), change).await.unwrap();
        assert_eq!(on_disk(world, &user).await.1, "second", "an update re-encrypts the whole row");
        assert_eq!(newer.reseal(Part::Accounts, BATCH).await.unwrap().done, 0);
        assert_eq!(newer.me(&world.of(&user), Me {}).await.unwrap().name, "하니");
    })
    .await;
}

async fn with_everything(world: &World, number: usize) -> UserId {
    let user = world.register(&format!("user{number}@example.com")).await;
    let id = turn_on(world, &user).await.user.account.id;
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
        transaction!(world.db, "test.identity", async |tx: &mut Tx<'_>| {
            let (keys, now) = ((&world.service.vault, &world.service.ids), world.clock.now());
            identity::store::insert(keys, tx, id, (&person, IdentitySource::Sandbox), now).await
        });
    assert!(known.unwrap());
    id
}

async fn damaged_rows_are_skipped_and_the_rest_is_reencrypted(world: &World) {
    let mut users = Vec::new();
    for number in 0..4 {
        users.push(with_everything(world, number).await);
    }
    let rubbish = vec![0xff_u8; 40];
    for (sql, user) in [(&DAMAGE, users[0]), (&DAMAGE_IDENTITY, users[1]), (&DAMAGE_FACTOR, users[2])] {
        let damaged: Result<u64, urr_db::Error> =
            transaction!(world.db, "test.damage", async |tx: &mut Tx<'_>| {
                tx.execute(sql, &[&user, &rubbish]).await
            });
        assert_eq!(damaged.unwrap(), 1);
    }
    let newer = world.neighbour(keyed(&["first", "second"]));
    for part in Part::ALL {
        // With the smallest batch, a batch that contains only a damaged row is passed too.
        let mut done = 0;
        for _ in &users {
            let outcome = newer.reseal(part, 1).await.unwrap();
            assert!(outcome.more, "{part:?}");
            done += outcome.done;
        }
        assert_eq!(done, 3, "{part:?}");
        assert_eq!(
            newer.reseal(part, 1).await.unwrap(),
            Outcome::default(),
            "all rows were visited: {part:?}"
        );
        assert_eq!(newer.reseal(part, BATCH).await.unwrap().done, 0, "damaged rows are kept: {part:?}");
    }
    let gone = crate::check_keys(&world.neighbour(keyed(&["second"]))).await;
    assert!(
        matches!(gone, Err(WrongKeys::Missing(key)) if key == "first"),
        "damaged rows are not marked as re-encrypted"
    );
}

#[tokio::test]
async fn a_damaged_row_does_not_block_reencryption_of_others() {
    for db in [DbKind::Sqlite, DbKind::Postgres] {
        let kinds = (db, Transport::Local, Sealing::Sealed);
        World::run(kinds, async |world| damaged_rows_are_skipped_and_the_rest_is_reencrypted(world).await)
            .await;
    }
}
