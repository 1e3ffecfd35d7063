//! Identity verification: started by the account, read from the provider, stored encrypted.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use axum::http::{Method, StatusCode};
use futures_util::future::join_all;
use serde_json::{Value, json};
use urr_auth::{Finding, IdentityProvider, Person, ProviderError, Window, WrongKeys};
use urr_contracts::auth::{
    Account, Auth as _, ChangeProfile, CompleteIdentity, DeleteAccount, Error, IdentityOf, IdentitySource,
    Me, SignedIn, StartIdentity,
};
use urr_db::{Tx, transaction};
use urr_kernel::CommonError;
use uuid::Uuid;

use super::{
    http::ask,
    race::at_once,
    world::{CHECKS, DAY, DROP_GUARD, IDENTITIES, IDENTITY, PASSWORD, World, confirmed, home, keyed, run},
};

/// An identity provider with canned results.
#[derive(Clone)]
struct Played(Arc<Mutex<Play>>);

type Play = Box<dyn Fn(Uuid, &Account) -> Result<Finding, ProviderError> + Send>;

impl Played {
    fn new(play: impl Fn(Uuid, &Account) -> Result<Finding, ProviderError> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(play))))
    }

    fn change(&self, play: impl Fn(Uuid, &Account) -> Result<Finding, ProviderError> + Send + 'static) {
        *self.0.lock().unwrap() = Box::new(play);
    }
}

#[async_trait]
impl IdentityProvider for Played {
    fn window(&self) -> Window {
        let (store_id, channel_key) = (Some("store".to_owned()), Some("channel".to_owned()));
        Window { source: IdentitySource::Portone, store_id, channel_key }
    }

    async fn look_up(&self, verification: Uuid, account: &Account) -> Result<Finding, ProviderError> {
        (self.0.lock().unwrap())(verification, account)
    }
}

fn person(ci: &str) -> Person {
    Person {
        ci: ci.to_owned(),
        di: Some("DI".to_owned()),
        name: "김민지".to_owned(),
        birth_date: Some("2004-05-07".parse().unwrap()),
        phone: Some("+821012345678".to_owned()),
        gender: None,
        foreigner: None,
    }
}

async fn begin(world: &World, user: &SignedIn) -> Uuid {
    world.auth.start_identity(&world.of(user), StartIdentity {}).await.unwrap().verification
}

async fn finish(world: &World, user: &SignedIn, verification: Uuid) -> Result<Account, Error> {
    world.auth.complete_identity(&world.of(user), CompleteIdentity { verification }).await
}

async fn verify(world: &World, user: &SignedIn) -> Result<Account, Error> {
    let verification = begin(world, user).await;
    finish(world, user, verification).await
}

pub(crate) async fn a_verified_identity_is_visible_to_the_owner_and_other_roles(world: &World) {
    let user = world.register("minji@example.com").await;
    assert_eq!(user.account.identity_verified_at, None);
    let known = async |ctx| world.auth.identity(&ctx, IdentityOf { user: user.account.id }).await;
    assert_eq!(known(world.system()).await.unwrap().identity, None);

    let started = world.auth.start_identity(&world.of(&user), StartIdentity {}).await.unwrap();
    assert_eq!((started.source, started.store_id), (IdentitySource::Sandbox, None));
    world.clock.advance(Duration::from_mins(1));
    let now = world.clock.now();
    let account = finish(world, &user, started.verification).await.unwrap();
    assert_eq!(account.identity_verified_at, Some(now));
    let me = world.auth.me(&world.of(&user), Me {}).await.unwrap();
    assert_eq!(me, account);
    assert_eq!(world.login("minji@example.com", PASSWORD).await.unwrap().account, account);

    let identity = known(world.system()).await.unwrap().identity.unwrap();
    assert_eq!((identity.source, identity.verified_at), (IdentitySource::Sandbox, now));
    assert!(identity.birth_date.unwrap().age_at(now) > 10);
    assert_eq!(known(world.of(&user)).await, Err(Error::Common(CommonError::AdminRequired)));
    assert_eq!(known(world.anonymous()).await, Err(Error::Common(CommonError::SignInRequired)));
}

pub(crate) async fn a_verification_belongs_to_one_account_and_is_valid_once(world: &World) {
    let (user, other) = (world.register("minji@example.com").await, world.register("hani@example.com").await);
    let verification = begin(world, &user).await;
    assert_eq!(finish(world, &other, verification).await, Err(Error::IdentityInvalid), "not theirs");
    assert_eq!(finish(world, &user, world.ids.next()).await, Err(Error::IdentityInvalid), "not ours");
    finish(world, &user, verification).await.unwrap();
    assert_eq!(finish(world, &user, verification).await, Err(Error::IdentityInvalid), "used");

    let late = begin(world, &user).await;
    world.clock.advance(Duration::from_mins(30));
    assert_eq!(finish(world, &user, late).await, Err(Error::IdentityInvalid), "too old");
    let request = CompleteIdentity { verification: late };
    let strangers = world.auth.complete_identity(&world.anonymous(), request).await;
    assert_eq!(strangers, Err(Error::Common(CommonError::SignInRequired)));

    let many = join_all((0..7).map(|_| begin(world, &user))).await;
    assert_eq!(world.count(&CHECKS, &[&user.account.id]).await, 5, "the oldest are deleted");
    let newest = many.iter().max().unwrap();
    finish(world, &user, *newest).await.unwrap();
    world.clock.advance(2 * DAY);
    run(&world.service, "auth.sweep").await;
    assert_eq!(world.count(&CHECKS, &[&user.account.id]).await, 0);
}

pub(crate) async fn a_person_has_one_account_until_the_closed_one_is_erased(world: &World) {
    // The sandbox treats equal names and phone numbers as one person.
    let (first, second) = (world.register("one@example.com").await, world.register("two@example.com").await);
    verify(world, &first).await.unwrap();
    assert_eq!(verify(world, &second).await, Err(Error::IdentityTaken { free_from: None }));
    let me = world.auth.me(&world.of(&second), Me {}).await.unwrap();
    assert_eq!(me.identity_verified_at, None);

    let close = DeleteAccount { proof: confirmed(PASSWORD), origin: home() };
    world.auth.delete_account(&world.of(&first), close).await.unwrap();
    let free_from = Some(world.clock.now().after(30 * DAY));
    assert_eq!(verify(world, &second).await, Err(Error::IdentityTaken { free_from }));
    world.clock.advance(30 * DAY);
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 1);
    assert_eq!(world.count(&IDENTITIES, &[]).await, 0, "the identity is erased");
    assert!(verify(world, &second).await.unwrap().identity_verified_at.is_some());
}

pub(crate) async fn an_account_stays_with_the_person_it_was_verified_for(world: &World) {
    let user = world.register("minji@example.com").await;
    let before = verify(world, &user).await.unwrap();
    world.clock.advance(DAY);
    let after = verify(world, &user).await.unwrap();
    assert!(
        after.identity_verified_at > before.identity_verified_at,
        "the same person can be verified again"
    );

    let change = ChangeProfile { name: Some("하니".to_owned()), ..ChangeProfile::default() };
    world.auth.change_profile(&world.of(&user), change).await.unwrap();
    assert_eq!(verify(world, &user).await, Err(Error::IdentityMismatch), "the sandbox sees another person");
    let me = world.auth.me(&world.of(&user), Me {}).await.unwrap();
    assert_eq!(me.identity_verified_at, after.identity_verified_at);
}

type Answers = fn() -> Result<Finding, ProviderError>;

fn played(world: &World) -> (World, Played) {
    let played = Played::new(|_, _| Ok(Finding::Verified(person("CI-1"))));
    let provider: Arc<dyn IdentityProvider> = Arc::new(played.clone());
    (world.with(|parts| parts.identity = Some(provider)), played)
}

pub(crate) async fn a_failed_verification_changes_nothing_and_can_be_retried(world: &World) {
    let (world, played) = played(world);
    let user = world.register("minji@example.com").await;
    let verification = begin(&world, &user).await;
    let cases: [(Answers, Error); 5] = [
        (|| Ok(Finding::Pending), Error::IdentityPending),
        (|| Ok(Finding::Failed), Error::IdentityFailed),
        (|| Err(ProviderError::Status(500)), Error::IdentityUnavailable),
        (|| Err(ProviderError::Unusable("names no CI")), Error::IdentityUnavailable),
        (
            || Err(ProviderError::Unreadable(serde_json::from_str::<u8>("x").unwrap_err())),
            Error::IdentityUnavailable,
        ),
    ];
    for (play, expected) in cases {
        played.change(move |_, _| play());
        assert_eq!(finish(&world, &user, verification).await, Err(expected));
        assert_eq!(world.count(&IDENTITIES, &[]).await, 0);
    }
    played.change(move |asked, _| {
        assert_eq!(asked, verification);
        Ok(Finding::Verified(person("CI-1")))
    });
    finish(&world, &user, verification).await.unwrap();
}

pub(crate) async fn identity_verification_is_off_without_a_provider(world: &World) {
    let world = &world.with(|parts| parts.identity = None);
    let user = world.register("minji@example.com").await;
    let refused = world.auth.start_identity(&world.of(&user), StartIdentity {}).await;
    assert_eq!(refused, Err(Error::IdentityOff));
    assert_eq!(finish(world, &user, world.ids.next()).await, Err(Error::IdentityOff));
}

pub(crate) async fn an_identity_is_encrypted_on_disk_and_reencrypted_after_key_rotation(world: &World) {
    let (world, _) = played(world);
    let user = world.register("minji@example.com").await;
    verify(&world, &user).await.unwrap();
    let on_disk = async || {
        let read = |row: &urr_db::Row<'_>| Ok((row.get::<Vec<u8>>(0)?, row.get::<String>(1)?));
        world.one(&IDENTITY, &[&user.account.id], read).await
    };
    let (bytes, key) = on_disk().await;
    let shows = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!["CI-1", "DI", "김민지", "2004", "1012345678"].into_iter().any(shows), "{bytes:?}");
    assert_eq!(key, "first");

    let newer = world.neighbour(keyed(&["first", "second"]));
    newer.change_profile(&world.of(&user), ChangeProfile::default()).await.unwrap();
    let gone = urr_auth::check_keys(&world.neighbour(keyed(&["second"]))).await;
    assert!(
        matches!(gone, Err(WrongKeys::Missing(key)) if key == "first"),
        "only the identity has the old key"
    );
    assert_eq!(run(&newer, "auth.reseal").await.done, 1);
    assert_eq!(run(&newer, "auth.reseal").await.done, 0);
    assert_eq!(on_disk().await.1, "second");
    let alone = world.neighbour(keyed(&["second"]));
    urr_auth::check_keys(&alone).await.unwrap();
    let known = alone.identity(&world.system(), IdentityOf { user: user.account.id }).await.unwrap();
    assert_eq!(known.identity.unwrap().birth_date, Some("2004-05-07".parse().unwrap()));
}

/// How many of the accounts that complete with the same person concurrently succeed.
async fn winners(world: &World, round: usize) -> usize {
    let mut users = Vec::new();
    for number in 0..4 {
        let user = world.register(&format!("minji{round}-{number}@example.com")).await;
        let verification = begin(world, &user).await;
        users.push((user, verification));
    }
    let attempts = users.iter().map(|(user, verification)| {
        let (auth, ctx, verification) = (Arc::clone(&world.auth), world.of(user), *verification);
        async move { auth.complete_identity(&ctx, CompleteIdentity { verification }).await }
    });
    let outcomes = at_once(attempts.collect()).await;
    for outcome in &outcomes {
        let expected = matches!(outcome, Ok(_) | Err(Error::IdentityTaken { free_from: None }));
        assert!(expected, "{outcome:?}");
    }
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

pub(crate) async fn one_of_concurrent_verifications_of_one_person_wins(world: &World) {
    let (world, played) = played(world);
    for round in 0..10 {
        played.change(move |_, _| Ok(Finding::Verified(person(&format!("CI-{round}")))));
        assert_eq!(winners(&world, round).await, 1, "round {round}");
    }
    assert_eq!(world.count(&IDENTITIES, &[]).await, 10);
}

pub(crate) async fn control_without_the_unique_index_a_person_gets_several_accounts(world: &World) {
    let (world, _) = played(world);
    let dropped: Result<u64, urr_db::Error> =
        transaction!(world.db, "test.drop_guard", async |tx: &mut Tx<'_>| {
            tx.execute(&DROP_GUARD, &[]).await
        });
    dropped.unwrap();
    assert_eq!(winners(&world, 0).await, 4, "the negative control passed, so this test proves nothing");
}

pub(crate) async fn an_identity_is_verified_over_http(world: &World) {
    let user = world.register("minji@example.com").await;
    let (status, started) = ask(world, Method::POST, "/api/auth/identity/start").by(&user).answer().await;
    assert_eq!((status, &started["provider"]), (StatusCode::CREATED, &json!("sandbox")));
    let id = &started["identityVerificationId"];
    let complete =
        |body: &Value| ask(world, Method::POST, "/api/auth/identity/complete").by(&user).json(body);
    for (body, code) in [
        (json!({ "identityVerificationId": "not ours" }), "http.bad_request"),
        (json!({ "identityVerificationId": user.session }), "auth.identity_invalid"),
    ] {
        let (status, refused) = complete(&body).answer().await;
        assert_eq!((status, &refused["code"]), (StatusCode::BAD_REQUEST, &json!(code)));
    }
    // Other fields from the browser are ignored.
    let claimed = json!({ "identityVerificationId": id, "ci": "CI", "status": "VERIFIED" });
    let (status, completed) = complete(&claimed).answer().await;
    assert_eq!((status, &completed["identityVerified"]), (StatusCode::OK, &json!(true)));
    let (_, me) = ask(world, Method::GET, "/api/auth/me").by(&user).answer().await;
    assert_eq!(me["user"]["identityVerified"], true);
    assert_eq!(me["user"]["identityVerifiedAt"], completed["identityVerifiedAt"]);

    let twin = world.register("twin@example.com").await;
    let (_, started) = ask(world, Method::POST, "/api/auth/identity/start").by(&twin).answer().await;
    let body = json!({ "identityVerificationId": started["identityVerificationId"] });
    let complete = ask(world, Method::POST, "/api/auth/identity/complete").by(&twin).json(&body);
    let (status, taken) = complete.answer().await;
    assert_eq!((status, &taken["code"]), (StatusCode::CONFLICT, &json!("auth.identity_taken")));
}
