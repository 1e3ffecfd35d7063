//! Registration, profile changes, address verification and closing of accounts.

use std::time::Duration;

use urr_contracts::auth::{
    AccountStatus, Agreement, ChangeProfile, DeleteAccount, Done, Error, Language, ListSessions, Me,
    Register, RequestEmailVerification, Sensitive, TermsKind,
};
use urr_db::{Error as DbError, Tx};
use urr_jobs::Outcome;
use urr_kernel::{CommonError, Role, Timestamp};

use super::world::{
    ACCOUNTS, DAY, ERASED, PASSWORD, TERMS, World, agreed, away, confirmed, follow, home, registration, run,
};

/// Registrations with a registered address that a network may send before it is throttled.
const FREE_TRIES: u32 = 30;

pub(crate) async fn registration_creates_an_account_and_signs_in(world: &World) {
    let made = world.register(" Minji@Example.com ").await;
    let account = &made.account;
    assert_eq!((account.email.as_str(), account.name.as_str()), ("minji@example.com", "김민지"));
    assert_eq!(account.phone.as_deref(), Some("+821012345678"));
    assert_eq!((account.role, account.status), (Role::User, AccountStatus::Active));
    assert!(!account.email_verified && !account.marketing);
    assert_eq!(account.created_at, world.clock.now());

    let verified = world.verify(&made.access_token);
    assert_eq!((verified.access.user, verified.access.session), (account.id, made.session));
    assert_eq!(verified.access.email.as_deref(), Some("minji@example.com"));
    assert_eq!(verified.expires, made.access_expires_at);
    assert_eq!(world.auth.me(&world.of(&made), Me {}).await.as_ref(), Ok(account));
    assert_eq!(
        world.auth.me(&world.anonymous(), Me {}).await,
        Err(Error::Common(CommonError::SignInRequired))
    );
    world.login("minji@example.com", PASSWORD).await.unwrap();
}

pub(crate) async fn an_address_has_one_account_in_any_spelling(world: &World) {
    world.register("minji@example.com").await;
    for spelling in ["minji@example.com", "MINJI@EXAMPLE.COM", " minji@example.com\t"] {
        let again = world.auth.register(&world.anonymous(), registration(spelling)).await;
        assert_eq!(again, Err(Error::AlreadyRegistered), "{spelling}");
        world.login(spelling, PASSWORD).await.unwrap();
    }
    assert_eq!(world.count(&ACCOUNTS, &[]).await, 1);
}

pub(crate) async fn a_registered_address_is_refused_and_its_owner_gets_a_mail(world: &World) {
    world.register("minji@example.com").await;
    world.send_mails().await;
    let other = Register {
        password: Sensitive::new("somebody else's password"),
        name: "Mallory".to_owned(),
        language: Language::En,
        origin: away(1),
        ..registration("minji@example.com")
    };
    for _ in 0..3 {
        let refused = world.auth.register(&world.anonymous(), other.clone()).await;
        assert_eq!(refused, Err(Error::AlreadyRegistered));
        world.send_mails().await;
    }
    let told = ["[우르르] 이메일 주소를 확인해 주세요", "[우르르] 이미 가입된 이메일 주소입니다"];
    assert_eq!(world.mailbox.subjects("minji@example.com"), told, "one mail, in the owner's language");
    world.clock.advance(DAY);
    let _ = world.auth.register(&world.anonymous(), other).await;
    world.send_mails().await;
    assert_eq!(world.mailbox.to("minji@example.com").len(), 3, "another mail the next day");
    let owner = world.login("minji@example.com", PASSWORD).await.unwrap();
    assert_eq!(owner.account.name, "김민지");
}

/// The response reveals whether an address has an account, so enumeration must be slow.
pub(crate) async fn a_network_that_probes_many_addresses_is_throttled(world: &World) {
    world.register("minji@example.com").await;
    let ask = async |email: &str, origin| {
        let request = Register { origin, ..registration(email) };
        world.auth.register(&world.anonymous(), request).await
    };
    for _ in 0..FREE_TRIES {
        assert_eq!(ask("minji@example.com", away(1)).await, Err(Error::AlreadyRegistered));
    }
    for email in ["minji@example.com", "free@example.com"] {
        let waits = Err(Error::TooManyAttempts { wait_secs: 1 });
        assert_eq!(ask(email, away(1)).await, waits, "throttled for registered and new addresses alike");
    }
    ask("free@example.com", away(2)).await.expect("another network is not throttled");
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(ask("minji@example.com", away(1)).await, Err(Error::AlreadyRegistered));
    assert_eq!(ask("minji@example.com", away(1)).await, Err(Error::TooManyAttempts { wait_secs: 2 }));
    // Unregistered addresses are free, however many come from one network.
    for number in 0..=FREE_TRIES {
        ask(&format!("fan{number}@example.com"), away(3)).await.unwrap();
    }
}

pub(crate) async fn invalid_requests_are_refused_and_change_nothing(world: &World) {
    let good = || registration("minji@example.com");
    let refused =
        async |request: Register| world.auth.register(&world.anonymous(), request).await.unwrap_err();
    for (request, field) in [
        (Register { email: "minji".to_owned(), ..good() }, "email"),
        (Register { name: "  ".to_owned(), ..good() }, "name"),
        (Register { phone: Some("call me".to_owned()), ..good() }, "phone"),
        (Register { password: Sensitive::new("short"), ..good() }, "password"),
        (Register { password: Sensitive::new("Password123"), ..good() }, "password"),
        (Register { password: Sensitive::new("Minji@example.com"), ..good() }, "password"),
    ] {
        let error = refused(request).await;
        let Error::Invalid { field: told, .. } = &error else { panic!("{error:?}") };
        assert_eq!(told, field);
    }
    let without = Register { agreements: vec![agreed(TermsKind::Service)], ..good() };
    let missing = vec![TermsKind::Privacy];
    assert_eq!(refused(without).await, Error::TermsRequired { missing, version: "1.0".to_owned() });
    assert_eq!(world.count(&ACCOUNTS, &[]).await, 0);
    assert_eq!(world.login("minji@example.com", PASSWORD).await, Err(Error::InvalidCredentials));
}

pub(crate) async fn decisions_about_the_terms_are_kept_with_version_and_time(world: &World) {
    let no = Agreement { kind: TermsKind::Marketing, version: Some("1.0".to_owned()), agreed: false };
    let agreements = vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy), no];
    let request = Register { agreements, ..registration("minji@example.com") };
    let made = world.auth.register(&world.anonymous(), request).await.unwrap();
    let registered = world.clock.now();
    world.clock.advance(DAY);
    let wanted = ChangeProfile { marketing: Some(true), ..ChangeProfile::default() };
    for _ in 0..2 {
        let changed = world.auth.change_profile(&world.of(&made), wanted.clone()).await.unwrap();
        assert!(changed.marketing);
    }
    let read: Result<Vec<(String, String, bool, Timestamp)>, DbError> = world
        .db
        .read("test.terms", async |tx: &mut Tx<'_>| {
            tx.all(&TERMS, &[&made.account.id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .await
        })
        .await;
    let row = |kind: &str, agreed, at| (kind.to_owned(), "1.0".to_owned(), agreed, at);
    let mut expected = vec![
        row("SERVICE", true, registered),
        row("PRIVACY", true, registered),
        row("MARKETING", false, registered),
        row("MARKETING", true, world.clock.now()),
    ];
    let mut read = read.unwrap();
    // Ids of the same instant have no defined order.
    read[..3].sort();
    expected[..3].sort();
    assert_eq!(read, expected, "each change of a decision is stored once");
}

pub(crate) async fn an_owner_changes_their_profile(world: &World) {
    let made = world.register("minji@example.com").await;
    let change = async |request| world.auth.change_profile(&world.of(&made), request).await;
    let nothing = ChangeProfile::default();
    assert_eq!(change(nothing.clone()).await, Ok(made.account.clone()));
    let request = ChangeProfile {
        name: Some(" Minji Kim ".to_owned()),
        phone: Some("+1 (415) 555-0100".to_owned()),
        language: Some(Language::En),
        ..nothing.clone()
    };
    let changed = change(request).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.phone.as_deref()), ("Minji Kim", Some("+14155550100")));
    assert_eq!(changed.language, Language::En);
    assert_eq!(world.auth.me(&world.of(&made), Me {}).await, Ok(changed.clone()));
    let without = change(ChangeProfile { phone: Some(String::new()), ..nothing.clone() }).await.unwrap();
    assert_eq!(without.phone, None);
    let bad = ChangeProfile {
        name: Some(String::new()),
        phone: Some("010-0000-0000".to_owned()),
        ..nothing.clone()
    };
    assert!(matches!(change(bad).await, Err(Error::Invalid { .. })));
    assert_eq!(world.auth.me(&world.of(&made), Me {}).await, Ok(without));
    assert_eq!(
        world.auth.change_profile(&world.anonymous(), nothing).await,
        Err(Error::Common(CommonError::SignInRequired))
    );
}

pub(crate) async fn an_address_is_verified_with_a_single_use_link(world: &World) {
    let made = world.register("minji@example.com").await;
    let token = world.proof_link("minji@example.com").await;
    let verify =
        async |token: &Sensitive| world.auth.verify_email(&world.of(&made), follow(token, None)).await;
    let ask = async || {
        world.auth.request_email_verification(&world.of(&made), RequestEmailVerification {}).await.unwrap();
        world.send_mails().await;
        world.mailbox.to("minji@example.com").len()
    };
    assert_eq!(ask().await, 2, "another mail can be requested");
    assert_eq!(ask().await, 2, "mails are rate-limited");
    world.clock.advance(DAY / 2);
    let newer = world.proof_link("minji@example.com").await;
    assert_ne!(newer, token);
    assert_eq!(verify(&token).await, Ok(Done {}), "older links stay valid until one is used");
    assert!(world.auth.me(&world.of(&made), Me {}).await.unwrap().email_verified);
    assert_eq!(verify(&token).await, Err(Error::LinkInvalid));
    assert_eq!(verify(&newer).await, Err(Error::LinkInvalid));
    assert_eq!(ask().await, 2, "no link for a verified address");
    assert_eq!(verify(&Sensitive::new("rubbish")).await, Err(Error::LinkInvalid));
    let stranger =
        world.auth.request_email_verification(&world.anonymous(), RequestEmailVerification {}).await;
    assert_eq!(stranger, Err(Error::Common(CommonError::SignInRequired)));
}

pub(crate) async fn verifying_an_address_needs_the_link_and_a_session_or_password(world: &World) {
    let made = world.register("minji@example.com").await;
    let token = world.proof_link("minji@example.com").await;
    let is_verified = async || world.auth.me(&world.of(&made), Me {}).await.unwrap().email_verified;
    let other = world.register("jisoo@example.com").await;
    for ctx in [world.anonymous(), world.of(&other)] {
        assert_eq!(world.auth.verify_email(&ctx, follow(&token, None)).await, Err(Error::ProofRequired));
        assert_eq!(world.auth.verify_email(&ctx, follow(&token, Some(""))).await, Err(Error::ProofRequired));
        let wrong = world.auth.verify_email(&ctx, follow(&token, Some("not the password"))).await;
        assert_eq!(wrong, Err(Error::WrongPassword));
    }
    assert!(!is_verified().await);
    let guess = async || world.auth.verify_email(&world.anonymous(), follow(&token, Some("a guess"))).await;
    let mut refusals = Vec::new();
    for _ in 0..4 {
        refusals.push(guess().await.unwrap_err());
    }
    assert_eq!(
        refusals.pop(),
        Some(Error::TooManyAttempts { wait_secs: 1 }),
        "wrong passwords count: {refusals:?}"
    );
    world.clock.advance(Duration::from_secs(1));
    // The refused attempts did not use up the link; it was opened on another device, without a
    // session.
    let done = world.auth.verify_email(&world.anonymous(), follow(&token, Some(PASSWORD))).await;
    assert_eq!(done, Ok(Done {}));
    assert!(is_verified().await && !world.is_revoked(&made).await);
    let again = world.auth.verify_email(&world.anonymous(), follow(&token, Some(PASSWORD))).await;
    assert_eq!(again, Err(Error::LinkInvalid));
}

pub(crate) async fn a_closed_account_is_inaccessible_at_once_and_erased_later(world: &World) {
    let made = world.register("minji@example.com").await;
    world.send_mails().await;
    let other = world.login_from("minji@example.com", PASSWORD, &away(1)).await.unwrap();
    let close = async |password: &str| {
        let request = DeleteAccount { proof: confirmed(password), origin: home() };
        world.auth.delete_account(&world.of(&made), request).await
    };
    assert_eq!(close("not my password").await, Err(Error::WrongPassword));
    assert_eq!(world.live_sessions(&made).await, 2);
    assert_eq!(close(PASSWORD).await, Ok(Done {}));
    for session in [&made, &other] {
        assert!(world.is_revoked(session).await);
        assert_eq!(world.refresh(&session.refresh_token).await, Err(Error::RefreshInvalid));
    }
    assert_eq!(world.login("minji@example.com", PASSWORD).await, Err(Error::InvalidCredentials));
    assert_eq!(world.auth.me(&world.of(&made), Me {}).await, Err(Error::Common(CommonError::SignInRequired)));
    assert_eq!(close(PASSWORD).await, Err(Error::Common(CommonError::SignInRequired)));

    let neighbour = world.register("jisoo@example.com").await;
    world.send_mails().await;
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 0, "not erased within 30 days");
    assert!(!world.mailbox.to("minji@example.com").is_empty());
    world.clock.advance(30 * DAY);
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 1);
    assert_eq!(world.mailbox.to("minji@example.com"), [], "copies of mails are deleted with the account");
    assert!(!world.mailbox.to(&neighbour.account.email).is_empty(), "other mails are kept");
    let id = made.account.id;
    let erased = world
        .one(&ERASED, &[&id], |row| {
            let personal: [Option<Vec<u8>>; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((row.get::<Option<Timestamp>>(0)?, personal, row.get::<Option<String>>(4)?))
        })
        .await;
    assert_eq!(erased, (Some(world.clock.now()), [None, None, None], None));
    let sessions = world.auth.sessions(&world.of(&made), ListSessions { current: None }).await.unwrap();
    assert_eq!(sessions.sessions, []);
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 0);
}

pub(crate) async fn an_unerasable_account_does_not_block_others(world: &World) {
    let mut closed = Vec::new();
    for email in ["first@example.com", "second@example.com", "third@example.com"] {
        let user = world.register(email).await;
        world.send_mails().await;
        let request = DeleteAccount { proof: confirmed(PASSWORD), origin: home() };
        world.auth.delete_account(&world.of(&user), request).await.unwrap();
        closed.push(user.account.id);
        world.clock.advance(Duration::from_secs(1));
    }
    let unused = world.register("unused@example.com").await;
    world.clock.advance(365 * DAY);
    *world.mailbox.clings_to.lock().unwrap() = Some("first@example.com".to_owned());
    let tend = async || run(&world.service, "auth.tend_accounts").await;
    let tended = tend().await;
    assert_eq!(tended, Outcome { done: 3, more: false }, "two are erased and the unused one is dormant");
    let is_erased =
        async |id| world.one(&ERASED, &[&id], |row| row.get::<Option<Timestamp>>(0)).await.is_some();
    for (id, expected) in closed.iter().zip([false, true, true]) {
        assert_eq!(is_erased(*id).await, expected);
    }
    let seen = world.auth.me(&world.of(&unused), Me {}).await.unwrap();
    assert_eq!(seen.status, AccountStatus::Dormant);
    *world.mailbox.clings_to.lock().unwrap() = None;
    assert_eq!(tend().await, Outcome { done: 1, more: false }, "it is retried and fully erased");
    assert!(is_erased(closed[0]).await);
}

pub(crate) async fn the_address_of_a_closed_account_can_be_registered_again(world: &World) {
    let first = world.register("minji@example.com").await;
    let request = DeleteAccount { proof: confirmed(PASSWORD), origin: home() };
    world.auth.delete_account(&world.of(&first), request).await.unwrap();
    let second = world.register("minji@example.com").await;
    assert_ne!(first.account.id, second.account.id);
    world.clock.advance(31 * DAY);
    run(&world.service, "auth.tend_accounts").await;
    assert_eq!(world.login("minji@example.com", PASSWORD).await.unwrap().account.id, second.account.id);
}

pub(crate) async fn an_unused_account_becomes_dormant_until_sign_in(world: &World) {
    let made = world.register("minji@example.com").await;
    world.clock.advance(364 * DAY);
    world.register("jisoo@example.com").await;
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 0);
    world.clock.advance(DAY);
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 1);
    let status = async || world.auth.me(&world.of(&made), Me {}).await.unwrap().status;
    assert_eq!(status().await, AccountStatus::Dormant);
    assert_eq!(world.login("minji@example.com", "not my password").await, Err(Error::InvalidCredentials));
    assert_eq!(status().await, AccountStatus::Dormant);
    let back = world.login("minji@example.com", PASSWORD).await.unwrap();
    assert_eq!(back.account.status, AccountStatus::Active);
    assert_eq!(status().await, AccountStatus::Active);
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 0);
}
