//! Refresh tokens: valid once, and what happens on reuse.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use urr_contracts::auth::{Auth as _, Error, Refresh, Sensitive, SignedIn};
use urr_kernel::CommonError;

use super::world::{DAY, PASSWORD, SECRET, TOKENS, World, away, home};

pub(crate) async fn a_refresh_token_is_valid_once_and_the_session_continues(world: &World) {
    let first = world.register("minji@example.com").await;
    world.clock.advance(Duration::from_mins(30));
    let second = world.refresh(&first.refresh_token).await.unwrap();
    assert_eq!(second.session, first.session);
    assert_ne!(second.refresh_token, first.refresh_token);
    assert_ne!(second.access_token, first.access_token);
    assert_eq!(second.account, first.account);
    assert_eq!(second.refresh_expires_at, world.clock.now().after(7 * DAY));
    assert_eq!(world.verify(&second.access_token).access.session, first.session);
    let third = world.refresh(&second.refresh_token).await.unwrap();
    assert!(!world.is_revoked(&third).await);
}

pub(crate) async fn refresh_token_reuse_ends_the_session_permanently(world: &World) {
    let owner = world.register("minji@example.com").await;
    let other = world.login("minji@example.com", PASSWORD).await.unwrap();
    let renewed = world.refresh(&owner.refresh_token).await.unwrap();
    assert_eq!(world.refresh_from(&owner.refresh_token, &away(66)).await, Err(Error::RefreshReused));
    let neighbour = world.neighbour(world.pii.clone());
    let request = Refresh { refresh_token: renewed.refresh_token.clone(), origin: home() };
    let after = neighbour.refresh(&world.anonymous(), request).await;
    assert_eq!(after, Err(Error::RefreshInvalid), "the revocation is committed");
    assert!(world.is_revoked(&owner).await);
    assert!(!world.is_revoked(&other).await, "other sessions of the user are not affected");

    // J05: the thief came first and the owner second.
    let owner = world.login("minji@example.com", PASSWORD).await.unwrap();
    let thief = world.refresh_from(&owner.refresh_token, &away(66)).await.unwrap();
    assert_eq!(world.refresh(&owner.refresh_token).await, Err(Error::RefreshReused));
    assert_eq!(world.refresh_from(&thief.refresh_token, &away(66)).await, Err(Error::RefreshInvalid));
    world.send_mails().await;
    let subjects = world.mailbox.subjects("minji@example.com");
    let told = subjects.iter().filter(|subject| subject.contains("보안을 위해 로그아웃")).count();
    assert_eq!(told, 2, "{subjects:?}");
}

pub(crate) async fn the_same_client_may_repeat_a_refresh_within_ten_seconds(world: &World) {
    let first = world.register("minji@example.com").await;
    let second = world.refresh(&first.refresh_token).await.unwrap();
    world.clock.advance(Duration::from_secs(10));
    let again = world.refresh(&first.refresh_token).await.unwrap();
    assert_eq!(again.session, first.session);
    assert_eq!(again.refresh_token, second.refresh_token, "a session has one chain of tokens");
    assert_eq!(again.refresh_expires_at, second.refresh_expires_at);
    assert_eq!(world.verify(&again.access_token).access.session, first.session);
    assert!(!world.is_revoked(&first).await);
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(
        world.refresh(&first.refresh_token).await,
        Err(Error::RefreshReused),
        "after the grace period it is reuse"
    );
    assert!(world.is_revoked(&first).await);

    let patient = world.login("minji@example.com", PASSWORD).await.unwrap();
    for _ in 0..21 {
        world.refresh(&patient.refresh_token).await.unwrap();
    }
    assert_eq!(
        world.refresh(&patient.refresh_token).await,
        Err(Error::RefreshReused),
        "the number of repeats is limited"
    );
}

pub(crate) async fn a_late_repeat_gets_the_newest_token_only_for_the_same_client(world: &World) {
    let first = world.register("minji@example.com").await;
    let second = world.refresh(&first.refresh_token).await.unwrap();
    let third = world.refresh(&second.refresh_token).await.unwrap();
    assert_eq!(world.count(&TOKENS, &[&first.session]).await, 3);
    for earlier in [&first, &second] {
        let again = world.refresh(&earlier.refresh_token).await.unwrap();
        assert_eq!(again.refresh_token, third.refresh_token, "a late response does not rewind the chain");
    }
    assert_eq!(world.count(&TOKENS, &[&first.session]).await, 3, "a repeat inserts no token");

    // A thief who copied a repeated token and the owner hold the same one, so the second use is
    // detected.
    world.clock.advance(Duration::from_secs(11));
    let thief = world.refresh_from(&third.refresh_token, &away(66)).await.unwrap();
    assert_eq!(world.refresh(&third.refresh_token).await, Err(Error::RefreshReused));
    assert_eq!(world.refresh_from(&thief.refresh_token, &away(66)).await, Err(Error::RefreshInvalid));
    assert!(world.is_revoked(&first).await);

    // Another client continued the chain, so this client's repeat is not accepted.
    let first = world.login("minji@example.com", PASSWORD).await.unwrap();
    let second = world.refresh(&first.refresh_token).await.unwrap();
    world.refresh_from(&second.refresh_token, &away(66)).await.unwrap();
    assert_eq!(world.refresh(&first.refresh_token).await, Err(Error::RefreshReused));
    assert!(world.is_revoked(&first).await);
}

pub(crate) async fn a_repeat_gets_the_same_token_from_a_process_with_a_newer_key(world: &World) {
    let newer = world.neighbour_with_secrets(&["the next secret of tests, long enough", SECRET]);
    let stranger = world.neighbour_with_secrets(&["a secret nobody else has, long enough"]);
    let ask = async |service: &urr_auth::Service, user: &SignedIn| {
        let request = Refresh { refresh_token: user.refresh_token.clone(), origin: home() };
        service.refresh(&world.anonymous(), request).await
    };
    let first = world.register("minji@example.com").await;
    let second = world.refresh(&first.refresh_token).await.unwrap();
    let again = ask(&newer, &first).await.unwrap();
    assert_eq!(again.refresh_token, second.refresh_token);
    let third = ask(&newer, &second).await.unwrap();
    assert_eq!(ask(&newer, &first).await.unwrap().refresh_token, third.refresh_token, "through both keys");
    // Without the key the successor is unknown. That is no reason to end the session.
    assert_eq!(ask(&stranger, &first).await, Err(Error::Common(CommonError::Unavailable)));
    assert!(!world.is_revoked(&first).await);
    ask(&newer, &third).await.unwrap();
}

pub(crate) async fn tokens_and_sessions_expire(world: &World) {
    let mut last = world.register("minji@example.com").await;
    let began = world.clock.now();
    let idle = world.login("minji@example.com", PASSWORD).await.unwrap();
    let renew = async |last: &SignedIn| world.refresh(&last.refresh_token).await;
    for _ in 0..5 {
        world.clock.advance(6 * DAY);
        if world.clock.now() < began.after(30 * DAY) {
            last = renew(&last).await.unwrap();
            assert!(last.refresh_expires_at <= began.after(30 * DAY), "no token outlives its session");
        }
    }
    assert_eq!(renew(&idle).await, Err(Error::RefreshInvalid), "unused for a week");
    assert_eq!(renew(&last).await, Err(Error::RefreshInvalid), "thirty days are over");
    assert!(!world.is_revoked(&last).await, "an expired session needs no revocation");
}

pub(crate) async fn malformed_refresh_tokens_are_refused(world: &World) {
    let user = world.register("minji@example.com").await;
    let unknown = Sensitive::new(URL_SAFE_NO_PAD.encode(world.ids.bytes::<32>()));
    for rubbish in [
        &unknown,
        &user.access_token,
        &Sensitive::new("rubbish"),
        &Sensitive::new(format!("{} ", user.refresh_token.expose())),
        &Sensitive::new("x".repeat(10_000)),
    ] {
        assert_eq!(world.refresh(rubbish).await, Err(Error::RefreshInvalid));
    }
    assert_eq!(world.refresh(&Sensitive::new("")).await, Err(Error::RefreshRequired));
    world.refresh(&user.refresh_token).await.unwrap();
}
