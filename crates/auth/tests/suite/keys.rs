//! Personal data on disk: encrypted, re-encrypted with new keys, and protected against wrong keys.

use std::sync::Arc;

use urr_auth::{IndexKey, Pii, Service, WrongKeys};
use urr_contracts::auth::{Auth as _, ChangeProfile, Login, LoginOutcome, Me, Sensitive, SignedIn};

use super::world::{PASSWORD, PERSONAL, World, home, keyed, run};

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

pub(crate) async fn key_rotation_is_transparent_and_wrong_keys_are_detected(world: &World) {
    let user = world.register("minji@example.com").await;
    let (bytes, key) = on_disk(world, &user).await;
    assert!(shows(&bytes) && key.is_empty(), "without a key the data is plain");

    let strict = urr_auth::check_keys(&world.neighbour(keyed(&["first"]))).await.unwrap_err();
    assert!(matches!(strict, WrongKeys::Plain), "plain rows are refused by default");
    let first = world.neighbour(Pii { takes_plain: true, ..keyed(&["first"]) });
    urr_auth::check_keys(&first).await.unwrap();
    sees_the_same(world, &first, &user).await;
    assert_eq!(run(&first, "auth.reseal").await.done, 1);
    assert_eq!(run(&first, "auth.reseal").await.done, 0);
    let (bytes, key) = on_disk(world, &user).await;
    assert!(!shows(&bytes), "with a key the data is encrypted");
    assert_eq!(key, "first");
    urr_auth::check_keys(&world.neighbour(keyed(&["first"]))).await.unwrap();

    let second = world.neighbour(keyed(&["first", "second"]));
    urr_auth::check_keys(&second).await.unwrap();
    sees_the_same(world, &second, &user).await;
    let gone = urr_auth::check_keys(&world.neighbour(keyed(&["second"]))).await.unwrap_err();
    assert!(matches!(gone, WrongKeys::Missing(key) if key == "first"), "the old key is still needed");
    assert_eq!(run(&second, "auth.reseal").await.done, 1);
    assert_eq!(on_disk(world, &user).await.1, "second");
    let alone = world.neighbour(keyed(&["second"]));
    urr_auth::check_keys(&alone).await.unwrap();
    sees_the_same(world, &alone, &user).await;

    let other = Pii { index: IndexKey::new([7; 32]), ..keyed(&["second"]) };
    let wrong = urr_auth::check_keys(&world.neighbour(other)).await.unwrap_err();
    assert!(matches!(wrong, WrongKeys::Index));
}

pub(crate) async fn a_profile_change_during_key_rotation_is_not_lost(world: &World) {
    let user = world.register("minji@example.com").await;
    let newer = world.neighbour(keyed(&["first", "second"]));
    let change = ChangeProfile { name: Some("하니".to_owned()), ..ChangeProfile::default() };
    newer.change_profile(&world.of(&user), change).await.unwrap();
    assert_eq!(on_disk(world, &user).await.1, "second", "an update re-encrypts the whole row");
    assert_eq!(run(&newer, "auth.reseal").await.done, 0);
    assert_eq!(newer.me(&world.of(&user), Me {}).await.unwrap().name, "하니");
}
