//! Linking and unlinking provider accounts.

use std::time::Duration;

use urr_contracts::auth::{
    DisableSecondFactor, Error, LinkAccount, LinkOutcome, ListLogins, LoginMethod, LoginOutcome, Me,
    OwnerProof, Provider, RedirectOutcome, ResetPassword, Sensitive,
};
use urr_kernel::CommonError;

use super::{
    providers::{JISOO, MINJI},
    second_factor::{enrol_with, pass, turn_on, turn_on_with},
    social::{tokens, with_password, with_session},
    world::{PASSWORD, World, confirmed, follow, home},
};

pub(crate) async fn linking_requires_proof_of_both_accounts(world: &World) {
    let user = world.register("minji@example.com").await;
    assert_eq!(world.join_to(&user, &MINJI, confirmed("not my password")).await, Err(Error::WrongPassword));
    let refused = world.join_to(&user, &MINJI, with_session(&user)).await;
    assert!(matches!(refused, Err(Error::Invalid { field, .. }) if field == "password"));
    let request = |credential| LinkAccount {
        provider: Provider::Google,
        proof: with_password(),
        credential: Some(credential),
        state_token: None,
        return_to: None,
        origin: home(),
    };
    let forged = world.auth.link_account(&world.of(&user), request(Sensitive::new("a.b.c"))).await;
    assert_eq!(forged, Err(Error::CredentialInvalid));
    let stranger = request(world.providers.credential(&MINJI));
    assert_eq!(
        world.auth.link_account(&world.anonymous(), stranger).await,
        Err(Error::Common(CommonError::SignInRequired))
    );
    assert_eq!(world.written().await, (1, 0));

    let one = world.join_to(&user, &MINJI, with_password()).await.unwrap();
    assert_eq!(
        world.join_to(&user, &MINJI, with_password()).await.unwrap(),
        one,
        "linking again changes nothing"
    );
    assert_eq!(world.join_to(&user, &JISOO, with_password()).await, Err(Error::AlreadyLinked));
    let other = world.register("jisoo@example.com").await;
    assert_eq!(world.join_to(&other, &MINJI, with_password()).await, Err(Error::LinkTaken));
    assert_eq!(world.written().await, (2, 1));
}

pub(crate) async fn linking_without_a_credential_uses_the_redirect_flow(world: &World) {
    let user = world.register("minji@example.com").await;
    let request = LinkAccount {
        provider: Provider::Naver,
        proof: with_password(),
        credential: None,
        state_token: None,
        return_to: Some("/settings".to_owned()),
        origin: home(),
    };
    let LinkOutcome::Redirect { redirect } =
        world.auth.link_account(&world.of(&user), request).await.unwrap()
    else {
        panic!("the browser has to go there")
    };
    let back = world.visit(Provider::Naver, &redirect, &JISOO).await;
    let end = world.auth.end_trip(&world.of(&user), back).await.unwrap();
    assert_eq!(end.return_to, "/settings");
    assert!(matches!(end.outcome, RedirectOutcome::Linked { linked } if linked.provider == Provider::Naver));
    let RedirectOutcome::Login { login } = world.travel(Provider::Naver, &JISOO).await.unwrap().outcome
    else {
        panic!("the linked account signs in to the account")
    };
    assert_eq!(tokens(login).account.id, user.account.id);

    // The state token of one user in the browser of another links nothing.
    let request = LinkAccount {
        provider: Provider::Kakao,
        proof: with_password(),
        credential: None,
        state_token: None,
        return_to: None,
        origin: home(),
    };
    let LinkOutcome::Redirect { redirect } =
        world.auth.link_account(&world.of(&user), request).await.unwrap()
    else {
        panic!("the browser has to go there")
    };
    let victim = world.register("jisoo@example.com").await;
    let back = world.visit(Provider::Kakao, &redirect, &JISOO).await;
    assert_eq!(world.auth.end_trip(&world.of(&victim), back).await, Err(Error::TripInvalid));
    assert_eq!(world.linked(&user).await, [Provider::Naver]);
}

pub(crate) async fn the_last_way_to_sign_in_cannot_be_removed(world: &World) {
    let user = world.google(&MINJI, true).await.unwrap();
    let google = Provider::Google;
    assert_eq!(world.unlink(&user, google, with_session(&user)).await, Err(Error::LastWayIn));
    assert_eq!(world.unlink(&user, Provider::Kakao, with_session(&user)).await, Err(Error::NotLinked));
    world.clock.advance(Duration::from_mins(11));
    assert_eq!(world.unlink(&user, google, with_session(&user)).await, Err(Error::SignInAgain));
    assert_eq!(world.linked(&user).await, [google]);

    // With a password there is another way to sign in.
    let token = {
        let email = "minji@example.com".to_owned();
        let request = urr_contracts::auth::ForgotPassword { email };
        world.auth.forgot_password(&world.anonymous(), request).await.unwrap();
        world.reset_link("minji@example.com").await
    };
    let request = ResetPassword { token, new: Sensitive::new(PASSWORD), origin: home() };
    world.auth.reset_password(&world.anonymous(), request).await.unwrap();
    let user = world.login("minji@example.com", PASSWORD).await.unwrap();
    assert_eq!(world.linked(&user).await, [google], "the address was already verified");
    let session_alone = world.unlink(&user, google, with_session(&user)).await;
    assert!(matches!(session_alone, Err(Error::Invalid { .. })), "now the password is required");
    world.unlink(&user, google, with_password()).await.unwrap();
    assert_eq!(world.linked(&user).await, []);
    let unknown = Err(Error::LinkRequired { provider: google });
    assert_eq!(world.google(&MINJI, true).await, unknown, "an unlinked account no longer signs in");
}

pub(crate) async fn provider_sign_in_still_needs_the_second_factor(world: &World) {
    let user = world.register("minji@example.com").await;
    world.join_to(&user, &MINJI, with_password()).await.unwrap();
    let phone = turn_on(world, &user).await;
    let done = world.credential(world.providers.credential(&MINJI), false).await.unwrap();
    let LoginOutcome::SecondFactor(first) = done.outcome else { panic!("{done:?}") };
    let end = world.travel(Provider::Google, &MINJI).await.unwrap();
    let RedirectOutcome::Login { login: LoginOutcome::SecondFactor(second) } = end.outcome else {
        panic!("{end:?}")
    };
    for needed in [first, second] {
        let entered = pass(world, &needed.challenge, &phone.code(world)).await.unwrap();
        assert_eq!(entered.account.id, user.account.id);
        let request = ListLogins { before: None, limit: 1 };
        let last = world.auth.login_history(&world.of(&entered), request).await.unwrap().logins.remove(0);
        assert_eq!((last.method, last.failure), (LoginMethod::Google, None));
    }
}

pub(crate) async fn without_a_password_enabling_a_second_factor_needs_a_recent_session(world: &World) {
    let early = world.google(&MINJI, true).await.unwrap();
    world.clock.advance(Duration::from_mins(11));
    let nothing = OwnerProof { password: None, session: None };
    for proof in [nothing, with_session(&early), with_password()] {
        assert_eq!(enrol_with(world, &early, proof).await, Err(Error::SignInAgain));
    }
    let fresh = world.google(&MINJI, true).await.unwrap();
    let phone = turn_on_with(world, &fresh, with_session(&fresh)).await;
    world.clock.advance(Duration::from_mins(11));
    let request =
        DisableSecondFactor { proof: with_session(&phone.user), code: phone.code(world), origin: home() };
    let refused = world.auth.disable_second_factor(&world.of(&phone.user), request).await;
    assert_eq!(refused, Err(Error::SignInAgain), "the code alone does not turn it off");
}

pub(crate) async fn an_attackers_second_factor_does_not_lock_out_the_mailbox_owner(world: &World) {
    let squatter = turn_on(world, &world.register("minji@example.com").await).await;
    let request = urr_contracts::auth::ForgotPassword { email: "minji@example.com".to_owned() };
    world.auth.forgot_password(&world.anonymous(), request).await.unwrap();
    let token = world.reset_link("minji@example.com").await;
    let new = Sensitive::new("what only the owner knows");
    let request = ResetPassword { token, new: new.clone(), origin: home() };
    world.auth.reset_password(&world.anonymous(), request).await.unwrap();
    let owner = world.login("minji@example.com", new.expose()).await.unwrap();
    assert!(world.is_revoked(&squatter.user).await && !owner.account.second_factor);
}

/// An attacker registers with another person's address and waits for its owner to follow the link.
pub(crate) async fn a_password_reset_by_the_mailbox_owner_ends_the_attackers_access(world: &World) {
    let squatter = world.register("minji@example.com").await;
    world.join_to(&squatter, &JISOO, with_password()).await.unwrap();
    let link = world.proof_link("minji@example.com").await;
    for ctx in [world.anonymous(), world.of(&world.register("hanni@example.com").await)] {
        assert_eq!(world.auth.verify_email(&ctx, follow(&link, None)).await, Err(Error::ProofRequired));
    }
    let phone = turn_on(world, &squatter).await;
    let me = world.auth.me(&world.of(&phone.user), Me {}).await.unwrap();
    assert!(!me.email_verified, "the click verified nothing");

    let request = urr_contracts::auth::ForgotPassword { email: "minji@example.com".to_owned() };
    world.auth.forgot_password(&world.anonymous(), request).await.unwrap();
    let token = world.reset_link("minji@example.com").await;
    let new = "what only the owner knows";
    let request = ResetPassword { token, new: Sensitive::new(new), origin: home() };
    world.auth.reset_password(&world.anonymous(), request).await.unwrap();
    assert!(world.is_revoked(&phone.user).await);
    assert_eq!(world.login("minji@example.com", PASSWORD).await, Err(Error::InvalidCredentials));
    let owner = world.login("minji@example.com", new).await.unwrap();
    assert!(owner.account.email_verified && !owner.account.second_factor);
    assert_eq!(world.linked(&owner).await, []);
    world.send_mails().await;
    let subjects = world.mailbox.subjects("minji@example.com");
    assert_eq!(subjects.iter().filter(|subject| subject.contains("2단계 인증")).count(), 2, "{subjects:?}");
}

pub(crate) async fn verifying_an_address_keeps_the_owners_settings(world: &World) {
    let both = world.register("hanni@example.com").await;
    world.join_to(&both, &JISOO, with_password()).await.unwrap();
    let phone = turn_on(world, &both).await;
    world.prove_address(&phone.user).await;
    assert!(!world.is_revoked(&phone.user).await);
    assert_eq!(world.linked(&phone.user).await, [Provider::Google]);
    let me = world.auth.me(&world.of(&phone.user), Me {}).await.unwrap();
    assert!(me.email_verified && me.second_factor);
}
