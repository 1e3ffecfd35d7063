//! Concurrent requests.

use std::{collections::HashSet, sync::Arc};

use futures_util::future::join_all;
use urr_contracts::auth::{
    ChangePassword, Error, GoogleSignIn, LinkAccount, Logout, Provider, Refresh, Sensitive, SetRole, SignedIn,
};
use urr_kernel::Role;

use super::{
    providers::{MINJI, Person},
    world::{ACCOUNTS, PASSWORD, TOKENS, TRIES, World, away, confirmed, home, registration, send_mails},
};

/// Runs every attempt on its own task, all started at once.
#[expect(clippy::disallowed_methods, reason = "the attempts of a race end with it")]
pub(crate) async fn at_once<T: Send + 'static>(
    attempts: Vec<impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let start = Arc::new(tokio::sync::Barrier::new(attempts.len()));
    let runners = attempts.into_iter().map(|attempt| {
        let start = Arc::clone(&start);
        tokio::spawn(async move {
            start.wait().await;
            attempt.await
        })
    });
    join_all(runners.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect()
}

pub(crate) async fn two_clients_with_one_refresh_token_end_the_session(world: &World) {
    for round in 0..10 {
        let user = world.register(&format!("minji{round}@example.com")).await;
        let attempt = |origin| {
            let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
            let request = Refresh { refresh_token: user.refresh_token.clone(), origin };
            async move { auth.refresh(&ctx, request).await }
        };
        let outcomes = at_once(vec![attempt(home()), attempt(away(1))]).await;
        let won: Vec<&SignedIn> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        let lost: Vec<&Error> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        assert_eq!((won.len(), &lost[..]), (1, &[&Error::RefreshReused][..]), "{outcomes:?}");
        assert!(world.is_revoked(&user).await);
        assert_eq!(world.refresh(&won[0].refresh_token).await, Err(Error::RefreshInvalid));
    }
}

pub(crate) async fn concurrent_refreshes_of_one_browser_keep_it_signed_in(world: &World) {
    let user = world.register("minji@example.com").await;
    let attempt = || {
        let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
        let request = Refresh { refresh_token: user.refresh_token.clone(), origin: home() };
        async move { auth.refresh(&ctx, request).await }
    };
    let outcomes = at_once((0..10).map(|_| attempt()).collect()).await;
    let tokens: HashSet<String> =
        outcomes.into_iter().map(|outcome| outcome.unwrap().refresh_token.expose().to_owned()).collect();
    assert_eq!(tokens.len(), 1, "one chain");
    assert_eq!(world.count(&TOKENS, &[&user.session]).await, 2);
    assert!(!world.is_revoked(&user).await);
}

pub(crate) async fn concurrent_guesses_are_limited_to_the_free_attempts(world: &World) {
    world.register("minji@example.com").await;
    let attempt = |number| {
        let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
        let request = urr_contracts::auth::Login {
            email: "minji@example.com".to_owned(),
            password: Sensitive::new("not my password"),
            origin: away(number),
        };
        async move { auth.login(&ctx, request).await }
    };
    let outcomes = at_once((0..20).map(attempt).collect()).await;
    let count =
        |wanted: &Error| outcomes.iter().filter(|outcome| outcome.as_ref().err() == Some(wanted)).count();
    assert_eq!(count(&Error::InvalidCredentials), 5, "{outcomes:?}");
    assert_eq!(count(&Error::TooManyAttempts { wait_secs: 1 }), 15, "{outcomes:?}");
    assert_eq!(world.count(&TRIES, &[]).await, 5);
}

pub(crate) async fn one_of_concurrent_registrations_succeeds(world: &World) {
    let attempt = |number: usize| {
        let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
        let spelling = if number.is_multiple_of(2) { "minji@example.com" } else { "Minji@Example.com" };
        let request = registration(spelling);
        async move { auth.register(&ctx, request).await }
    };
    let outcomes = at_once((0..20).map(attempt).collect()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for error in outcomes.into_iter().filter_map(Result::err) {
        assert_eq!(error, Error::AlreadyRegistered);
    }
    assert_eq!(world.count(&ACCOUNTS, &[]).await, 1);
    world.send_mails().await;
    assert_eq!(world.mailbox.to("minji@example.com").len(), 2, "a verification mail and a notice");
}

pub(crate) async fn a_sign_in_with_the_old_password_does_not_outlive_the_change(world: &World) {
    for round in 0..10 {
        let email = format!("minji{round}@example.com");
        let user = world.register(&email).await;
        let change = {
            let (auth, ctx) = (Arc::clone(&world.auth), world.of(&user));
            let (current, new) = (Sensitive::new(PASSWORD), Sensitive::new("an even longer sentence"));
            let request = ChangePassword { current, new, origin: home() };
            async move { auth.change_password(&ctx, request).await.map(|changed| (true, changed)) }
        };
        let login = {
            let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
            let request = urr_contracts::auth::Login {
                email: email.clone(),
                password: Sensitive::new(PASSWORD),
                origin: home(),
            };
            async move {
                let outcome = auth.login(&ctx, request).await?;
                let urr_contracts::auth::LoginOutcome::SignedIn(signed_in) = outcome else {
                    panic!("there is no second factor: {outcome:?}")
                };
                Ok((false, *signed_in))
            }
        };
        let attempts: Vec<futures_util::future::BoxFuture<'static, Result<(bool, SignedIn), Error>>> =
            vec![Box::pin(change), Box::pin(login)];
        let outcomes = at_once(attempts).await;
        let (_, changed) = outcomes[0].as_ref().unwrap();
        assert_eq!(world.live_sessions(&user).await, 1, "only the new session");
        world.refresh(&changed.refresh_token).await.unwrap();
        if let Ok((_, late)) = &outcomes[1] {
            assert!(world.is_revoked(late).await);
            assert_eq!(world.refresh(&late.refresh_token).await, Err(Error::RefreshInvalid));
        }
    }
}

pub(crate) async fn a_refresh_does_not_outlive_the_sign_out(world: &World) {
    for round in 0..10 {
        let user = world.register(&format!("minji{round}@example.com")).await;
        let refresh = {
            let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
            let request = Refresh { refresh_token: user.refresh_token.clone(), origin: home() };
            async move { auth.refresh(&ctx, request).await.ok() }
        };
        let logout = {
            let (auth, ctx) = (Arc::clone(&world.auth), world.of(&user));
            let request = Logout { session: Some(user.session), refresh_token: None, everywhere: false };
            async move {
                auth.logout(&ctx, request).await.unwrap();
                None
            }
        };
        let attempts: Vec<futures_util::future::BoxFuture<'static, Option<SignedIn>>> =
            vec![Box::pin(refresh), Box::pin(logout)];
        for late in at_once(attempts).await.into_iter().flatten() {
            assert_eq!(late.session, user.session, "its access token belongs to the revoked session");
            assert_eq!(world.refresh(&late.refresh_token).await, Err(Error::RefreshInvalid));
        }
        assert!(world.is_revoked(&user).await);
    }
}

pub(crate) async fn two_admins_who_demote_each_other_leave_one(world: &World) {
    let first = world.admin().await;
    for round in 0..20 {
        let user = world.register(&format!("minji{round}@example.com")).await;
        let promote = SetRole { user: user.account.id, role: Role::Admin };
        let system = world.system();
        world.auth.set_role(&system, promote).await.unwrap();
        let depose = |by: &SignedIn, whom: &SignedIn| {
            let (auth, ctx) = (Arc::clone(&world.auth), world.with_role(by.account.id, Role::Admin));
            let request = SetRole { user: whom.account.id, role: Role::User };
            async move { auth.set_role(&ctx, request).await }
        };
        let outcomes = at_once(vec![depose(&first, &user), depose(&user, &first)]).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        let restore = SetRole { user: first.account.id, role: Role::Admin };
        world.auth.set_role(&system, restore).await.unwrap();
        let remove = SetRole { user: user.account.id, role: Role::User };
        world.auth.set_role(&system, remove).await.unwrap();
    }
}

pub(crate) async fn two_processes_starting_together_create_one_admin(world: &World) {
    let attempt = |_| {
        let (auth, ctx) = (Arc::clone(&world.auth), world.system());
        let request = urr_contracts::auth::EnsureAdmin {
            email: "admin@urr.example".to_owned(),
            name: "관리자".to_owned(),
            password: None,
            promote: false,
            only_if_none: true,
        };
        async move { auth.ensure_admin(&ctx, request).await.unwrap() }
    };
    let made = at_once((0..4).map(attempt).collect()).await;
    assert_eq!(made.iter().filter(|admin| admin.password.is_some()).count(), 1);
    assert_eq!(world.count(&ACCOUNTS, &[]).await, 1);
}

pub(crate) async fn a_mail_is_sent_once_by_however_many_processes(world: &World) {
    for number in 0..5 {
        world.register(&format!("minji{number}@example.com")).await;
    }
    let attempt = |_| {
        let service = Arc::clone(&world.service);
        async move { send_mails(&service).await }
    };
    at_once((0..4).map(attempt).collect()).await;
    for number in 0..5 {
        assert_eq!(world.mailbox.to(&format!("minji{number}@example.com")).len(), 1);
    }
}

pub(crate) async fn concurrent_first_sign_ins_create_one_account_and_all_succeed(world: &World) {
    for round in 0..5 {
        let subject: &'static str = ["11", "12", "13", "14", "15"][round];
        let emails = ["a@example.com", "b@example.com", "c@example.com", "d@example.com", "e@example.com"];
        let person = Person { subject, email: emails[round], verified: true, name: "민지" };
        let attempt = || {
            let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
            let request = GoogleSignIn {
                credential: world.providers.credential(&person),
                state_token: None,
                agreements: super::social::terms(),
                language: urr_contracts::auth::Language::Ko,
                origin: home(),
            };
            async move { auth.google(&ctx, request).await }
        };
        let outcomes = at_once((0..10).map(|_| attempt()).collect()).await;
        let accounts: HashSet<_> = outcomes
            .into_iter()
            .map(|outcome| super::social::tokens(outcome.unwrap().outcome).account.id)
            .collect();
        let made = i64::try_from(round).unwrap() + 1;
        assert_eq!((accounts.len(), world.written().await), (1, (made, made)));
    }
}

pub(crate) async fn concurrent_uses_of_one_credential_sign_in_once(world: &World) {
    world.google(&MINJI, true).await.unwrap();
    for _ in 0..5 {
        let credential = world.providers.credential(&MINJI);
        let attempt = || {
            let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
            let request = GoogleSignIn {
                credential: credential.clone(),
                state_token: None,
                agreements: Vec::new(),
                language: urr_contracts::auth::Language::Ko,
                origin: home(),
            };
            async move { auth.google(&ctx, request).await }
        };
        let outcomes = at_once((0..4).map(|_| attempt()).collect()).await;
        let lost: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(lost, vec![Error::CredentialUsed; 3]);
    }
}

pub(crate) async fn one_of_two_concurrent_links_wins(world: &World) {
    let (minji, jisoo) =
        (world.register("minji@example.com").await, world.register("jisoo@example.com").await);
    let attempt = |user: &SignedIn| {
        let (auth, ctx) = (Arc::clone(&world.auth), world.of(user));
        let request = LinkAccount {
            provider: Provider::Google,
            proof: confirmed(PASSWORD),
            credential: Some(world.providers.credential(&MINJI)),
            state_token: None,
            return_to: None,
            origin: home(),
        };
        async move { auth.link_account(&ctx, request).await }
    };
    let outcomes = at_once(vec![attempt(&minji), attempt(&jisoo)]).await;
    let lost: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!((lost, world.written().await), (vec![Error::LinkTaken], (2, 1)));
}
