//! The second factor: turned on by its owner, required by every sign-in, valid once, and throttled.

use std::{sync::Arc, time::Duration};

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use urr_auth::Pii;
use urr_contracts::auth::{
    Auth as _, ConfirmSecondFactor, DisableSecondFactor, EnrolSecondFactor, Error, ForgotPassword,
    ListLogins, Login, LoginFailure, LoginMethod, LoginOutcome, Me, Origin, OwnerProof, PassSecondFactor,
    RenewRecoveryCodes, ResetPassword, ResetSecondFactor, SecondFactorNeeded, Sensitive, SetRole, SignedIn,
};
use urr_kernel::{CommonError, Role, Timestamp};

use super::{
    race::at_once,
    social::with_session,
    world::{FACTOR, PASSWORD, RECOVERY, World, away, confirmed, follow, home, keyed, run},
};

pub(crate) const STEP: Duration = Duration::from_secs(30);
pub(crate) const EMAIL: &str = "minji@example.com";

/// The code of an authenticator app with this secret (RFC 6238).
pub(crate) fn shown_by_app(secret: &str, at: Timestamp) -> Sensitive {
    let secret = BASE32_NOPAD.decode(secret.as_bytes()).unwrap();
    let step = at.as_micros() / 1_000_000 / 30;
    let mac: Hmac<Sha1> = Hmac::new_from_slice(&secret).unwrap();
    let hash = mac.chain_update(step.to_be_bytes()).finalize().into_bytes();
    let offset = usize::from(hash[19] & 0x0f);
    let word = u32::from_be_bytes(hash[offset..offset + 4].try_into().unwrap());
    Sensitive::new(format!("{:06}", (word & 0x7fff_ffff) % 1_000_000))
}

/// A user with an authenticator app.
pub(crate) struct Phone {
    pub(crate) user: SignedIn,
    secret: String,
    recovery: Vec<Sensitive>,
}

impl Phone {
    /// The code of the app, at least one step after the last used one.
    pub(crate) fn code(&self, world: &World) -> Sensitive {
        world.clock.advance(STEP);
        shown_by_app(&self.secret, world.clock.now())
    }
}

async fn enrol(world: &World, user: &SignedIn) -> Result<String, Error> {
    enrol_with(world, user, confirmed(PASSWORD)).await
}

pub(crate) async fn enrol_with(world: &World, user: &SignedIn, proof: OwnerProof) -> Result<String, Error> {
    let request = EnrolSecondFactor { proof, origin: home() };
    let made = world.auth.enrol_second_factor(&world.of(user), request).await?;
    assert!(made.uri.expose().contains(made.secret.expose()));
    Ok(made.secret.expose().to_owned())
}

impl World {
    /// Follows the link in the mail while signed in.
    pub(crate) async fn prove_address(&self, user: &SignedIn) {
        let token = self.proof_link(&user.account.email).await;
        self.auth.verify_email(&self.of(user), follow(&token, None)).await.unwrap();
    }
}

/// Registers a user and turns the second factor on.
async fn with_phone(world: &World, email: &str) -> Phone {
    let user = world.register(email).await;
    turn_on(world, &user).await
}

pub(crate) async fn turn_on(world: &World, user: &SignedIn) -> Phone {
    turn_on_with(world, user, confirmed(PASSWORD)).await
}

pub(crate) async fn turn_on_with(world: &World, user: &SignedIn, proof: OwnerProof) -> Phone {
    let secret = enrol_with(world, user, proof).await.unwrap();
    let code = shown_by_app(&secret, world.clock.now());
    let request = ConfirmSecondFactor { code, origin: home() };
    let on = world.auth.confirm_second_factor(&world.of(user), request).await.unwrap();
    Phone { user: on.signed_in, secret, recovery: on.recovery_codes }
}

async fn challenge_from(world: &World, email: &str, origin: &Origin) -> SecondFactorNeeded {
    let password = Sensitive::new(PASSWORD);
    let request = Login { email: email.to_owned(), password, origin: origin.clone() };
    let outcome = world.auth.login(&world.anonymous(), request).await.unwrap();
    let LoginOutcome::SecondFactor(needed) = outcome else { panic!("{outcome:?}") };
    needed
}

async fn challenge(world: &World) -> Sensitive {
    challenge_from(world, EMAIL, &home()).await.challenge
}

async fn pass_from(
    world: &World,
    challenge: &Sensitive,
    code: &Sensitive,
    origin: &Origin,
) -> Result<SignedIn, Error> {
    let (challenge, code, origin) = (challenge.clone(), code.clone(), origin.clone());
    world.auth.pass_second_factor(&world.anonymous(), PassSecondFactor { challenge, code, origin }).await
}

pub(crate) async fn pass(world: &World, challenge: &Sensitive, code: &Sensitive) -> Result<SignedIn, Error> {
    pass_from(world, challenge, code, &home()).await
}

/// Resets the password with a mailed link.
async fn set_password_from(world: &World, origin: Origin) {
    let request = ForgotPassword { email: EMAIL.to_owned() };
    world.auth.forgot_password(&world.anonymous(), request).await.unwrap();
    let token = world.reset_link(EMAIL).await;
    let request = ResetPassword { token, new: Sensitive::new(PASSWORD), origin };
    world.auth.reset_password(&world.anonymous(), request).await.unwrap();
}

pub(crate) async fn a_second_factor_is_turned_on_with_a_code_and_ends_other_sessions(world: &World) {
    let user = world.register(EMAIL).await;
    let other = world.login(EMAIL, PASSWORD).await.unwrap();
    let confirm = async |code: &str| {
        let request = ConfirmSecondFactor { code: Sensitive::new(code), origin: home() };
        world.auth.confirm_second_factor(&world.of(&user), request).await
    };
    assert_eq!(confirm("123456").await, Err(Error::SecondFactorOff), "nothing to confirm");
    for password in [None, Some(Sensitive::new(""))] {
        let refused = enrol_with(world, &user, OwnerProof { password, ..with_session(&user) }).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    assert_eq!(enrol_with(world, &user, confirmed("not my password")).await, Err(Error::WrongPassword));

    let first = enrol(world, &user).await.unwrap();
    let second = enrol(world, &user).await.unwrap();
    assert_ne!(first, second);
    let wrong = confirm(shown_by_app(&first, world.clock.now()).expose()).await;
    assert_eq!(wrong, Err(Error::WrongCode), "only the newest secret is valid");
    assert!(!world.is_revoked(&other).await, "nothing is on yet");
    assert!(world.login(EMAIL, PASSWORD).await.is_ok());

    let on = confirm(shown_by_app(&second, world.clock.now()).expose()).await.unwrap();
    assert_eq!(on.recovery_codes.len(), 10);
    assert!(on.signed_in.account.second_factor);
    assert!(world.is_revoked(&user).await && world.is_revoked(&other).await);
    assert_eq!(world.live_sessions(&user).await, 1);
    let me = world.auth.me(&world.of(&on.signed_in), Me {}).await.unwrap();
    assert_eq!(me, on.signed_in.account);
    world.refresh(&on.signed_in.refresh_token).await.unwrap();
    assert_eq!(enrol(world, &on.signed_in).await, Err(Error::SecondFactorOn));
    assert_eq!(confirm("123456").await, Err(Error::SecondFactorOn));
    world.send_mails().await;
    let subjects = world.mailbox.subjects(EMAIL);
    assert_eq!(subjects.iter().filter(|subject| subject.contains("2단계 인증")).count(), 1, "{subjects:?}");

    let late = world.register("late@example.com").await;
    let secret = enrol(world, &late).await.unwrap();
    world.clock.advance(Duration::from_hours(1));
    let request = ConfirmSecondFactor { code: shown_by_app(&secret, world.clock.now()), origin: home() };
    let refused = world.auth.confirm_second_factor(&world.of(&late), request).await;
    assert_eq!(refused, Err(Error::SecondFactorOff), "an unconfirmed secret expires after an hour");
}

pub(crate) async fn sign_in_needs_a_code_and_each_code_is_valid_once(world: &World) {
    let phone = with_phone(world, EMAIL).await;
    let used = shown_by_app(&phone.secret, world.clock.now());
    let first = challenge(world).await;
    assert_eq!(pass(world, &first, &used).await, Err(Error::WrongCode), "this code was used to confirm");
    let code = phone.code(world);
    let signed_in = pass(world, &first, &code).await.unwrap();
    assert_eq!(signed_in.account.id, phone.user.account.id);
    assert_eq!(world.verify(&signed_in.access_token).access.user, phone.user.account.id);
    assert_eq!(pass(world, &first, &code).await, Err(Error::WrongCode), "replayed");
    let unused = &phone.recovery[4];
    assert_eq!(
        pass(world, &first, unused).await,
        Err(Error::ChallengeInvalid),
        "a challenge opens one session"
    );
    let second = challenge(world).await;
    assert_eq!(pass(world, &second, &code).await, Err(Error::WrongCode), "replayed elsewhere");
    let early = shown_by_app(&phone.secret, world.clock.now().after(STEP));
    pass(world, &second, &early).await.unwrap();
    world.clock.advance(STEP);
    let third = challenge(world).await;
    assert_eq!(
        pass(world, &third, &early).await,
        Err(Error::WrongCode),
        "its time step is current, but it was used"
    );

    let recovery = &phone.recovery[3];
    pass(world, &third, recovery).await.unwrap();
    let fourth = challenge(world).await;
    assert_eq!(pass(world, &fourth, recovery).await, Err(Error::WrongCode), "a recovery code is valid once");
    let other = with_phone(world, "hani@example.com").await;
    assert_eq!(
        pass(world, &fourth, &other.recovery[0]).await,
        Err(Error::WrongCode),
        "another account's code"
    );
    pass(world, &fourth, unused).await.expect("a refused challenge does not use up the code");

    let request = ListLogins { before: None, limit: 100 };
    let logins = world.auth.login_history(&world.of(&phone.user), request).await.unwrap().logins;
    let wrong = logins.iter().filter(|login| login.failure == Some(LoginFailure::WrongCode));
    assert_eq!(wrong.count(), 6);
    assert_eq!(logins.iter().filter(|login| login.method == LoginMethod::Password).count(), 1 + 4 + 6);
}

pub(crate) async fn a_challenge_expires_and_is_valid_for_the_second_factor_only(world: &World) {
    let phone = with_phone(world, EMAIL).await;
    let needed = challenge_from(world, EMAIL, &home()).await;
    assert_eq!(needed.expires_at.since(world.clock.now()).as_secs(), 300);
    assert_eq!(world.refresh(&needed.challenge).await, Err(Error::RefreshInvalid));
    let other = with_phone(world, "hani@example.com").await;
    for rubbish in ["", "rubbish", phone.user.access_token.expose(), phone.user.refresh_token.expose()] {
        let refused = pass(world, &Sensitive::new(rubbish), &phone.recovery[0]).await;
        assert_eq!(refused, Err(Error::ChallengeInvalid), "{rubbish}");
    }
    let code = other.code(world);
    assert_eq!(pass(world, &needed.challenge, &code).await, Err(Error::WrongCode), "another account's code");
    let late = challenge(world).await;
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(pass(world, &late, &phone.recovery[0]).await, Err(Error::ChallengeInvalid));

    // A challenge is invalid after a password change.
    world.prove_address(&phone.user).await;
    let old = challenge(world).await;
    set_password_from(world, home()).await;
    assert_eq!(pass(world, &old, &phone.recovery[0]).await, Err(Error::ChallengeInvalid));
    // A new password does not remove the second factor.
    pass(world, &challenge(world).await, &phone.recovery[0]).await.unwrap();
}

pub(crate) async fn wrong_codes_cause_growing_waits_whatever_the_password(world: &World) {
    let phone = with_phone(world, EMAIL).await;
    let wrong = Sensitive::new("000000");
    for _ in 0..5 {
        let needed = challenge_from(world, EMAIL, &away(1)).await;
        assert_eq!(pass_from(world, &needed.challenge, &wrong, &away(1)).await, Err(Error::WrongCode));
    }
    for wait_secs in [1, 2, 4] {
        // The right password does not reset wrong codes.
        let needed = challenge_from(world, EMAIL, &away(2)).await;
        let guess = pass_from(world, &needed.challenge, &wrong, &away(2)).await;
        assert_eq!(guess, Err(Error::TooManyAttempts { wait_secs }));
        let code = shown_by_app(&phone.secret, world.clock.now().after(STEP));
        let right = pass_from(world, &needed.challenge, &code, &away(2)).await;
        assert_eq!(right, Err(Error::TooManyAttempts { wait_secs }), "not even the right one");
        world.clock.advance(Duration::from_secs(wait_secs));
        assert_eq!(pass_from(world, &needed.challenge, &wrong, &away(2)).await, Err(Error::WrongCode));
    }
    let known = challenge(world).await;
    let code = phone.code(world);
    pass(world, &known, &code).await.expect("the owner, from a known network");
}

pub(crate) async fn password_resets_from_other_networks_do_not_reset_code_guessing(world: &World) {
    let phone = with_phone(world, EMAIL).await;
    world.prove_address(&phone.user).await;
    let guess = async |origin: Origin| {
        let needed = challenge_from(world, EMAIL, &origin).await;
        pass_from(world, &needed.challenge, &Sensitive::new("000000"), &origin).await
    };
    for _ in 0..5 {
        assert_eq!(guess(away(1)).await, Err(Error::WrongCode));
    }
    // An attacker with access to the mailbox comes from one network after another.
    for (network, wait_secs) in [(2, 2), (3, 4), (4, 8)] {
        world.clock.advance(Duration::from_mins(1));
        set_password_from(world, away(network)).await;
        assert_eq!(guess(away(network)).await, Err(Error::WrongCode), "the wait was over");
        assert_eq!(guess(away(network)).await, Err(Error::TooManyAttempts { wait_secs }));
    }
    let known = challenge(world).await;
    let code = phone.code(world);
    pass(world, &known, &code).await.expect("the owner, from a network with an earlier code");
}

pub(crate) async fn a_second_factor_is_turned_off_with_password_and_code(world: &World) {
    let phone = with_phone(world, EMAIL).await;
    let disable = async |password: &str, code: Sensitive| {
        let request = DisableSecondFactor { proof: confirmed(password), code, origin: home() };
        world.auth.disable_second_factor(&world.of(&phone.user), request).await
    };
    assert_eq!(disable("not my password", phone.code(world)).await, Err(Error::WrongPassword));
    assert_eq!(disable(PASSWORD, Sensitive::new("000000")).await, Err(Error::WrongCode));
    let off = disable(PASSWORD, phone.code(world)).await.unwrap();
    assert!(!off.account.second_factor);
    assert!(world.is_revoked(&phone.user).await);
    assert!(world.login(EMAIL, PASSWORD).await.is_ok());
    assert_eq!(disable(PASSWORD, Sensitive::new("000000")).await, Err(Error::SecondFactorOff));
    assert_eq!(world.count(&RECOVERY, &[&off.account.id]).await, 0);
    let again = turn_on(world, &off).await;
    assert_ne!(again.secret, phone.secret);
}

pub(crate) async fn recovery_codes_are_replaced_and_kept_as_hashes(world: &World) {
    let phone = with_phone(world, EMAIL).await;
    let renew = async |code: Sensitive| {
        let request = RenewRecoveryCodes { code, origin: home() };
        world.auth.renew_recovery_codes(&world.of(&phone.user), request).await
    };
    assert_eq!(renew(Sensitive::new("nonsense")).await, Err(Error::WrongCode));
    let fresh = renew(phone.code(world)).await.unwrap().recovery_codes;
    assert_eq!((fresh.len(), world.count(&RECOVERY, &[&phone.user.account.id]).await), (10, 10));
    let needed = challenge(world).await;
    assert_eq!(pass(world, &needed, &phone.recovery[0]).await, Err(Error::WrongCode), "replaced");
    pass(world, &needed, &fresh[0]).await.unwrap();
    assert_eq!(world.count(&RECOVERY, &[&phone.user.account.id]).await, 9);
}

pub(crate) async fn only_an_operator_reset_removes_a_second_factor(world: &World) {
    let phone = with_phone(world, EMAIL).await;
    let request = SetRole { user: phone.user.account.id, role: Role::Admin };
    assert!(world.auth.set_role(&world.system(), request).await.unwrap().second_factor);
    let admin = pass(world, &challenge(world).await, &phone.code(world)).await.unwrap();
    assert_eq!(world.verify(&admin.access_token).access.role, Role::Admin);
    let change = urr_contracts::auth::ChangePassword {
        current: Sensitive::new(PASSWORD),
        new: Sensitive::new("an even longer sentence"),
        origin: home(),
    };
    let changed = world.auth.change_password(&world.of(&admin), change).await.unwrap();
    assert!(changed.account.second_factor, "a signed-in user need not enter a code again");

    let reset = |email: &str| ResetSecondFactor { email: email.to_owned() };
    for ctx in [world.anonymous(), world.of(&changed)] {
        let refused = world.auth.reset_second_factor(&ctx, reset(EMAIL)).await;
        assert_eq!(refused, Err(Error::Common(CommonError::AdminRequired)));
    }
    let unknown = world.auth.reset_second_factor(&world.system(), reset("nobody@example.com")).await;
    assert_eq!(unknown, Err(Error::UserNotFound));
    world.auth.reset_second_factor(&world.system(), reset("Minji@example.com")).await.unwrap();
    assert!(world.is_revoked(&changed).await);
    assert!(world.login(EMAIL, "an even longer sentence").await.is_ok());
    let again = world.auth.reset_second_factor(&world.system(), reset(EMAIL)).await;
    assert_eq!(again, Err(Error::SecondFactorOff));
}

pub(crate) async fn one_of_two_concurrent_uses_of_a_code_wins(world: &World) {
    for round in 0..20 {
        let email = format!("minji{round}@example.com");
        let phone = with_phone(world, &email).await;
        let needed = challenge_from(world, &email, &home()).await;
        let code = if round % 2 == 0 { phone.code(world) } else { phone.recovery[0].clone() };
        let attempt = |origin| {
            let (auth, ctx) = (Arc::clone(&world.auth), world.anonymous());
            let (challenge, code) = (needed.challenge.clone(), code.clone());
            let request = PassSecondFactor { challenge, code, origin };
            async move { auth.pass_second_factor(&ctx, request).await }
        };
        let outcomes = at_once(vec![attempt(away(round)), attempt(away(100 + round))]).await;
        let lost: Vec<&Error> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        assert_eq!(lost, [&Error::WrongCode], "{outcomes:?}");
    }
}

pub(crate) async fn the_second_factor_secret_is_always_encrypted_and_reencrypted_after_key_rotation(
    world: &World,
) {
    let phone = with_phone(world, EMAIL).await;
    let user = phone.user.account.id;
    let on_disk = async || {
        let read = |row: &urr_db::Row<'_>| Ok((row.get::<Vec<u8>>(0)?, row.get::<String>(1)?));
        world.one(&FACTOR, &[&user], read).await
    };
    let (bytes, _) = on_disk().await;
    assert!(!bytes.windows(8).any(|part| part == &phone.secret.as_bytes()[..8]));
    let newer = world.neighbour(Pii { takes_plain: true, ..keyed(&["first", "second"]) });
    urr_auth::check_keys(&newer).await.unwrap();
    assert_eq!(run(&newer, "auth.reseal").await.done, 2, "the account and the second factor");
    assert_eq!(run(&newer, "auth.reseal").await.done, 0);
    assert_eq!(on_disk().await.1, "second");
    let alone = world.neighbour(keyed(&["second"]));
    urr_auth::check_keys(&alone).await.unwrap();
    let request = PassSecondFactor {
        challenge: challenge_of(&alone, world).await,
        code: phone.code(world),
        origin: home(),
    };
    let passed = alone.pass_second_factor(&world.anonymous(), request).await;
    assert_eq!(passed.unwrap().account.id, user);
}

async fn challenge_of(service: &urr_auth::Service, world: &World) -> Sensitive {
    let request = Login { email: EMAIL.to_owned(), password: Sensitive::new(PASSWORD), origin: home() };
    let outcome = service.login(&world.anonymous(), request).await.unwrap();
    let LoginOutcome::SecondFactor(needed) = outcome else { panic!("{outcome:?}") };
    needed.challenge
}
