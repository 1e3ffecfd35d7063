//! Sign-in, and listing and ending sessions.

use std::time::Duration;

use urr_contracts::auth::{
    Done, EndSession, Error, ListLogins, ListSessions, LoginFailure, LoginMethod, Logout,
    MAX_REVOCATIONS_PER_PAGE, RevocationsSince, SignedIn,
};
use urr_db::{Error as DbError, Tx, transaction};
use urr_kernel::CommonError;
use uuid::Uuid;

use super::world::{DAY, HASH, IMPORT, LEFT, PASSWORD, REVOKE, World, away, home, run};

fn logout(user: &SignedIn) -> Logout {
    Logout { session: Some(user.session), refresh_token: None, everywhere: false }
}

pub(crate) async fn sign_in_opens_a_session_visible_to_its_owner(world: &World) {
    let first = world.register("minji@example.com").await;
    world.clock.advance(Duration::from_mins(1));
    let second = world.login_from("minji@example.com", PASSWORD, &away(1)).await.unwrap();
    assert_ne!(first.session, second.session);
    let list = async || {
        let request = ListSessions { current: Some(first.session) };
        world.auth.sessions(&world.of(&first), request).await.unwrap().sessions
    };
    let sessions = list().await;
    let seen: Vec<_> = sessions.iter().map(|session| (session.id, session.current)).collect();
    assert_eq!(seen, [(second.session, false), (first.session, true)]);
    assert_eq!((&sessions[0].origin, sessions[0].method), (&away(1), LoginMethod::Password));
    assert_eq!(sessions[0].created_at, world.clock.now());

    world.clock.advance(Duration::from_mins(1));
    world.refresh_from(&first.refresh_token, &away(2)).await.unwrap();
    let sessions = list().await;
    assert_eq!((sessions[0].id, &sessions[0].origin), (first.session, &away(2)), "most recently used first");
    assert_eq!(sessions[0].last_used_at, world.clock.now());
    let stranger = world.auth.sessions(&world.anonymous(), ListSessions { current: None }).await;
    assert_eq!(stranger, Err(Error::Common(CommonError::SignInRequired)));
    world.clock.advance(7 * DAY);
    assert_eq!(list().await, [], "ended sessions cannot be refreshed");
}

pub(crate) async fn unknown_accounts_and_wrong_passwords_get_the_same_answer(world: &World) {
    world.register("minji@example.com").await;
    for (email, password) in [
        ("minji@example.com", "not my password"),
        ("minji@example.com", "x"),
        ("minji@example.com", &"x".repeat(10_000)),
        ("nobody@example.com", PASSWORD),
    ] {
        assert_eq!(world.login(email, password).await, Err(Error::InvalidCredentials));
    }
    for (email, password, field) in [("nonsense", PASSWORD, "email"), ("minji@example.com", "", "password")] {
        let refused = world.login(email, password).await;
        assert!(matches!(refused, Err(Error::Invalid { field: told, .. }) if told == field));
    }
}

pub(crate) async fn signing_out_ends_the_session_at_once(world: &World) {
    let user = world.register("minji@example.com").await;
    let other = world.login_from("minji@example.com", PASSWORD, &away(1)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            world.auth.logout(&world.of(&user), logout(&user)).await,
            Ok(Done {}),
            "a repeated sign-out changes nothing"
        );
    }
    assert!(world.is_revoked(&user).await && !world.is_revoked(&other).await);
    assert_eq!(world.announced.lock().unwrap().len(), 1);
    assert_eq!(world.refresh(&user.refresh_token).await, Err(Error::RefreshInvalid));

    let by_token =
        Logout { session: None, refresh_token: Some(other.refresh_token.clone()), everywhere: false };
    assert_eq!(world.auth.logout(&world.anonymous(), by_token).await, Ok(Done {}));
    assert!(world.is_revoked(&other).await, "the refresh token signs out after the access token expired");
    let nothing = Logout { session: None, refresh_token: None, everywhere: true };
    assert_eq!(world.auth.logout(&world.anonymous(), nothing).await, Ok(Done {}));
}

pub(crate) async fn signing_out_everywhere_ends_every_session(world: &World) {
    let user = world.register("minji@example.com").await;
    let other = world.login_from("minji@example.com", PASSWORD, &away(1)).await.unwrap();
    let neighbour = world.register("jisoo@example.com").await;
    let everywhere = Logout { everywhere: true, ..logout(&user) };
    world.auth.logout(&world.of(&user), everywhere).await.unwrap();
    assert!(world.is_revoked(&user).await && world.is_revoked(&other).await);
    assert!(!world.is_revoked(&neighbour).await);
    assert_eq!(world.live_sessions(&user).await, 0);
}

pub(crate) async fn a_refresh_token_alone_signs_out_everywhere(world: &World) {
    let user = world.register("minji@example.com").await;
    let other = world.login_from("minji@example.com", PASSWORD, &away(1)).await.unwrap();
    let neighbour = world.register("jisoo@example.com").await;
    let by_token = |of: &SignedIn| Logout {
        session: None,
        refresh_token: Some(of.refresh_token.clone()),
        everywhere: true,
    };
    world.auth.logout(&world.anonymous(), by_token(&user)).await.unwrap();
    assert!(world.is_revoked(&user).await && world.is_revoked(&other).await);
    assert!(!world.is_revoked(&neighbour).await);

    let later = world.login("minji@example.com", PASSWORD).await.unwrap();
    world.auth.logout(&world.anonymous(), by_token(&other)).await.unwrap();
    assert!(!world.is_revoked(&later).await, "the token of an ended session ends no others");
}

pub(crate) async fn a_user_ends_only_their_own_sessions(world: &World) {
    let user = world.register("minji@example.com").await;
    let second = world.login_from("minji@example.com", PASSWORD, &away(1)).await.unwrap();
    let neighbour = world.register("jisoo@example.com").await;
    let end =
        async |ctx, of: &SignedIn| world.auth.end_session(&ctx, EndSession { session: of.session }).await;
    assert_eq!(end(world.of(&user), &neighbour).await, Err(Error::SessionNotFound));
    assert_eq!(end(world.anonymous(), &second).await, Err(Error::Common(CommonError::SignInRequired)));
    let foreign = Logout { session: Some(neighbour.session), ..logout(&user) };
    assert_eq!(world.auth.logout(&world.of(&user), foreign).await, Ok(Done {}));
    assert!(!world.is_revoked(&neighbour).await);
    assert_eq!(end(world.of(&user), &second).await, Ok(Done {}));
    assert!(world.is_revoked(&second).await && !world.is_revoked(&user).await);
    assert_eq!(end(world.of(&user), &second).await, Err(Error::SessionNotFound));
}

pub(crate) async fn exceeding_the_session_limit_ends_the_oldest(world: &World) {
    let first = world.register("minji@example.com").await;
    world.clock.advance(Duration::from_secs(1));
    let second = world.login("minji@example.com", PASSWORD).await.unwrap();
    for _ in 2..20 {
        world.clock.advance(Duration::from_secs(1));
        world.login("minji@example.com", PASSWORD).await.unwrap();
    }
    assert_eq!((world.live_sessions(&first).await, world.announced.lock().unwrap().len()), (20, 0));
    world.clock.advance(Duration::from_secs(1));
    world.refresh(&first.refresh_token).await.unwrap();
    world.clock.advance(Duration::from_secs(1));
    world.login("minji@example.com", PASSWORD).await.unwrap();
    assert_eq!(world.live_sessions(&first).await, 20);
    assert!(
        world.is_revoked(&second).await && !world.is_revoked(&first).await,
        "the least recently used session ends"
    );
}

pub(crate) async fn revocations_come_in_pages_and_none_is_missed(world: &World) {
    let user = world.register("minji@example.com").await;
    let began = world.clock.now();
    let ask = async |since, after| {
        world.auth.revocations(&world.system(), RevocationsSince { since, after }).await.unwrap()
    };
    let beginning = ask(began, None).await;
    assert_eq!((beginning.ended.len(), beginning.as_of, beginning.next), (0, began, None));

    let many = MAX_REVOCATIONS_PER_PAGE + 7;
    let made: Result<(), DbError> = transaction!(world.db, "test.revoke", async |tx: &mut Tx<'_>| {
        for _ in 0..many {
            let (id, session): (Uuid, Uuid) = (world.ids.next(), world.ids.next());
            tx.execute(&REVOKE, &[&id, &user.account.id, &session, &began]).await?;
        }
        Ok(())
    });
    made.unwrap();
    let first = ask(beginning.as_of, None).await;
    assert_eq!(first.ended.len(), MAX_REVOCATIONS_PER_PAGE);
    let second = ask(beginning.as_of, first.next).await;
    assert_eq!((second.ended.len(), second.next), (7, None));
    let sessions: std::collections::HashSet<_> =
        first.ended.iter().chain(&second.ended).map(|revocation| revocation.session).collect();
    assert_eq!(sessions.len(), many);
    let until = began.after(Duration::from_mins(61));
    assert_eq!(first.ended[0].until, until, "kept longer than the session's access tokens");
    world.auth.logout(&world.of(&user), logout(&user)).await.unwrap();
    assert_eq!(world.announced.lock().unwrap()[0].until, until);

    world.clock.advance(2 * urr_passes::hop::LIFETIME);
    assert_eq!(
        ask(world.clock.now(), second.next).await.ended.len(),
        MAX_REVOCATIONS_PER_PAGE,
        "revocations dated by a lagging clock are repeated"
    );
    world.clock.advance(Duration::from_secs(75));
    assert_eq!(ask(world.clock.now(), None).await.ended.len(), 0);
    let request = RevocationsSince { since: began, after: None };
    assert_eq!(
        world.auth.revocations(&world.anonymous(), request).await,
        Err(Error::Common(CommonError::SignInRequired))
    );
    assert_eq!(
        world.auth.revocations(&world.of(&user), request).await,
        Err(Error::Common(CommonError::AdminRequired))
    );
}

pub(crate) async fn sign_ins_are_listed_for_the_owner(world: &World) {
    let user = world.register("minji@example.com").await;
    world.clock.advance(Duration::from_secs(1));
    let _ = world.login_from("minji@example.com", "not my password", &away(7)).await;
    world.clock.advance(Duration::from_secs(1));
    world.login_from("minji@example.com", PASSWORD, &away(8)).await.unwrap();
    let list =
        async |before, limit| world.auth.login_history(&world.of(&user), ListLogins { before, limit }).await;
    let logins = list(None, 10).await.unwrap().logins;
    let seen: Vec<_> = logins.iter().map(|login| (login.origin.clone(), login.failure)).collect();
    assert_eq!(seen, [(away(8), None), (away(7), Some(LoginFailure::WrongPassword)), (home(), None)]);
    assert_eq!(logins[0].at, world.clock.now());
    let page = list(Some(logins[0].id), 1).await.unwrap().logins;
    assert_eq!(page, logins[1..2]);
    for limit in [0, 101] {
        assert!(matches!(list(None, limit).await, Err(Error::Invalid { .. })));
    }
    let request = ListLogins { before: None, limit: 10 };
    assert_eq!(
        world.auth.login_history(&world.anonymous(), request).await,
        Err(Error::Common(CommonError::SignInRequired))
    );
    let other = world.register("jisoo@example.com").await;
    assert_eq!(world.auth.login_history(&world.of(&other), request).await.unwrap().logins.len(), 1);
}

pub(crate) async fn an_imported_password_is_accepted_and_hashed_anew(world: &World) {
    let user = world.register("minji@example.com").await;
    let (id, imported) = (user.account.id, import(world, &user, 4).await);
    let hash = async || world.one(&HASH, &[&id], |row| row.get::<String>(0)).await;
    assert_eq!(world.login("minji@example.com", PASSWORD).await, Err(Error::InvalidCredentials));
    assert_eq!(hash().await, imported);
    world.login("minji@example.com", IMPORTED).await.unwrap();
    assert!(hash().await.starts_with("$argon2id$"), "{}", hash().await);
    world.login("minji@example.com", IMPORTED).await.unwrap();
}

const IMPORTED: &str = "password of the old site";

/// Makes an account look imported.
async fn import(world: &World, user: &SignedIn, cost: u32) -> String {
    let (id, imported) = (user.account.id, bcrypt::hash(IMPORTED, cost).unwrap());
    let done: Result<u64, DbError> = transaction!(world.db, "test.import", async |tx: &mut Tx<'_>| {
        tx.execute(&IMPORT, &[&id, &imported]).await
    });
    assert_eq!(done.unwrap(), 1);
    imported
}

pub(crate) async fn expired_data_is_deleted(world: &World) {
    let user = world.register("minji@example.com").await;
    world.send_mails().await;
    let _ = world.login_from("minji@example.com", "not my password", &away(7)).await;
    let renewed = world.refresh(&user.refresh_token).await.unwrap();
    world.auth.logout(&world.of(&renewed), logout(&renewed)).await.unwrap();
    let left = async || {
        run(&world.service, "auth.sweep").await;
        run(&world.service, "mail.sweep").await;
        world.count(&LEFT, &[]).await
    };
    let everything = world.count(&LEFT, &[]).await;
    assert_eq!(*world.mailbox.forgot_before.lock().unwrap(), None);
    assert_eq!(left().await, everything, "nothing has expired yet");
    world.clock.advance(Duration::from_hours(3));
    assert_eq!(
        left().await,
        everything - 3,
        "the attempt on the account, the one of the network, and the revocation"
    );
    assert_eq!(world.refresh(&user.refresh_token).await, Err(Error::RefreshInvalid));
    world.clock.advance(8 * DAY);
    assert_eq!(left().await, everything - 6, "both tokens and the link");
    world.clock.advance(24 * DAY);
    assert_eq!(left().await, everything - 8, "the session and the mail");
    let kept_since = world.clock.now().before(30 * DAY);
    let forgot = *world.mailbox.forgot_before.lock().unwrap();
    assert_eq!(forgot, Some(kept_since), "and the transport's copies");
    world.clock.advance(150 * DAY);
    assert_eq!(left().await, 0, "the history");
}
