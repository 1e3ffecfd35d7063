//! Changing and resetting passwords.

use std::time::Duration;

use urr_contracts::auth::{ChangePassword, Done, Error, ForgotPassword, ResetPassword, Sensitive, SignedIn};
use urr_kernel::CommonError;

use super::world::{DAY, PASSWORD, World, away, follow, home};

const BETTER: &str = "an even longer sentence";

async fn change(world: &World, user: &SignedIn, current: &str, new: &str) -> Result<SignedIn, Error> {
    let request =
        ChangePassword { current: Sensitive::new(current), new: Sensitive::new(new), origin: home() };
    world.auth.change_password(&world.of(user), request).await
}

async fn forgot(world: &World, email: &str) -> Result<Done, Error> {
    world.auth.forgot_password(&world.anonymous(), ForgotPassword { email: email.to_owned() }).await
}

async fn reset(world: &World, token: &Sensitive, new: &str) -> Result<Done, Error> {
    let request = ResetPassword { token: token.clone(), new: Sensitive::new(new), origin: away(3) };
    world.auth.reset_password(&world.anonymous(), request).await
}

pub(crate) async fn a_new_password_ends_every_session_and_opens_one(world: &World) {
    let user = world.register("minji@example.com").await;
    let other = world.login_from("minji@example.com", PASSWORD, &away(1)).await.unwrap();
    let changed = change(world, &user, PASSWORD, BETTER).await.unwrap();
    for old in [&user, &other] {
        assert!(world.is_revoked(old).await);
        assert_eq!(world.refresh(&old.refresh_token).await, Err(Error::RefreshInvalid));
    }
    assert!(!world.is_revoked(&changed).await);
    assert_ne!(changed.session, user.session);
    world.refresh(&changed.refresh_token).await.unwrap();
    assert_eq!(world.login("minji@example.com", PASSWORD).await, Err(Error::InvalidCredentials));
    world.login("minji@example.com", BETTER).await.unwrap();
    world.send_mails().await;
    let subjects = world.mailbox.subjects("minji@example.com");
    assert!(subjects.iter().any(|subject| subject.contains("비밀번호가 변경")), "{subjects:?}");
}

pub(crate) async fn a_change_needs_the_current_password(world: &World) {
    let user = world.register("minji@example.com").await;
    assert_eq!(change(world, &user, "not my password", BETTER).await, Err(Error::WrongPassword));
    for bad in ["short", "password1", "minji@example.com", "김민지김민지김민지김민지".repeat(20).as_str()]
    {
        let refused = change(world, &user, PASSWORD, bad).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{bad}");
    }
    let request =
        ChangePassword { current: Sensitive::new(PASSWORD), new: Sensitive::new(BETTER), origin: home() };
    assert_eq!(
        world.auth.change_password(&world.anonymous(), request).await,
        Err(Error::Common(CommonError::SignInRequired))
    );
    assert!(!world.is_revoked(&user).await);
    world.login("minji@example.com", PASSWORD).await.unwrap();
    let thief = away(9);
    for _ in 0..5 {
        let request = ChangePassword {
            current: Sensitive::new("a guess"),
            new: Sensitive::new(BETTER),
            origin: thief.clone(),
        };
        let guess = world.auth.change_password(&world.of(&user), request.clone()).await;
        assert_eq!(guess, Err(Error::WrongPassword));
    }
    let guess = world.login_from("minji@example.com", PASSWORD, &thief).await;
    assert_eq!(
        guess,
        Err(Error::TooManyAttempts { wait_secs: 1 }),
        "attempts share one counter with sign-in"
    );
}

pub(crate) async fn a_forgotten_password_is_replaced_with_a_link_that_works_once(world: &World) {
    let user = world.register("minji@example.com").await;
    world.send_mails().await;
    for _ in 0..3 {
        assert_eq!(forgot(world, " Minji@example.com").await, Ok(Done {}));
    }
    let token = world.reset_link("minji@example.com").await;
    assert_eq!(world.mailbox.to("minji@example.com").len(), 2, "at most one mail per minute");
    assert!(matches!(reset(world, &token, "short").await, Err(Error::Invalid { .. })));
    assert!(matches!(reset(world, &token, "minji@example.com").await, Err(Error::Invalid { .. })));
    assert!(!world.is_revoked(&user).await);
    assert_eq!(
        reset(world, &token, BETTER).await,
        Ok(Done {}),
        "a refused password does not use up the link"
    );
    assert!(world.is_revoked(&user).await);
    assert_eq!(reset(world, &token, "yet another sentence").await, Err(Error::LinkInvalid));
    assert_eq!(world.login("minji@example.com", PASSWORD).await, Err(Error::InvalidCredentials));
    let back = world.login("minji@example.com", BETTER).await.unwrap();
    assert!(back.account.email_verified, "a password reset verifies the address");
}

pub(crate) async fn an_unknown_address_gets_the_same_answer_and_no_mail(world: &World) {
    world.register("minji@example.com").await;
    world.send_mails().await;
    assert_eq!(forgot(world, "nobody@example.com").await, Ok(Done {}));
    assert!(matches!(forgot(world, "nonsense").await, Err(Error::Invalid { .. })));
    world.send_mails().await;
    assert_eq!(world.mailbox.to("nobody@example.com"), []);
    assert_eq!(world.mailbox.to("minji@example.com").len(), 1);
}

pub(crate) async fn links_expire_and_serve_one_purpose(world: &World) {
    let user = world.register("minji@example.com").await;
    let proof = world.proof_link("minji@example.com").await;
    assert_eq!(reset(world, &proof, BETTER).await, Err(Error::LinkInvalid), "a link to prove an address");
    forgot(world, "minji@example.com").await.unwrap();
    let late = world.reset_link("minji@example.com").await;
    let verify =
        async |token: &Sensitive| world.auth.verify_email(&world.of(&user), follow(token, None)).await;
    assert_eq!(verify(&late).await, Err(Error::LinkInvalid), "a link to set a password");
    assert_eq!(verify(&user.refresh_token).await, Err(Error::LinkInvalid), "no link at all");
    world.clock.advance(Duration::from_mins(30));
    assert_eq!(reset(world, &late, BETTER).await, Err(Error::LinkInvalid), "half an hour");
    forgot(world, "minji@example.com").await.unwrap();
    let older = world.reset_link("minji@example.com").await;
    world.clock.advance(Duration::from_mins(1));
    forgot(world, "minji@example.com").await.unwrap();
    let newer = world.reset_link("minji@example.com").await;
    assert_ne!(older, newer);
    reset(world, &newer, BETTER).await.unwrap();
    assert_eq!(
        reset(world, &older, PASSWORD).await,
        Err(Error::LinkInvalid),
        "invalidated with the newer one"
    );
    world.clock.advance(DAY);
    assert_eq!(verify(&proof).await, Err(Error::LinkInvalid), "a day");
}
