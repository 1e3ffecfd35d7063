//! Sign-in with a provider: who is admitted, who is not, and how accounts are linked.

use std::time::Duration;

use urr_contracts::auth::{
    Account, AccountStatus, BeginRedirect, CompleteRedirect, DeleteAccount, Error, GoogleSignIn,
    GoogleSignedIn, Language, LinkAccount, LinkOutcome, ListLinked, ListLogins, ListProviders, LoginMethod,
    LoginOutcome, OwnerProof, Provider, RedirectCompleted, RedirectOutcome, RedirectSignIn, ResetPassword,
    Sensitive, SignUp, SignUpOffer, SignedIn, TermsKind, UnlinkAccount,
};

use super::{
    providers::{JISOO, MINJI, Person},
    world::{ACCOUNTS, ATTEMPTS, DAY, LINKED, PASSWORD, World, agreed, confirmed, home, run},
};

/// All required consents.
pub(crate) fn terms() -> Vec<urr_contracts::auth::Agreement> {
    vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy)]
}

pub(crate) fn tokens(outcome: LoginOutcome) -> SignedIn {
    match outcome {
        LoginOutcome::SignedIn(tokens) => *tokens,
        other @ LoginOutcome::SecondFactor(_) => panic!("unexpected second factor: {other:?}"),
    }
}

pub(crate) fn with_password() -> OwnerProof {
    confirmed(PASSWORD)
}

pub(crate) fn with_session(user: &SignedIn) -> OwnerProof {
    OwnerProof { password: None, session: Some(user.session) }
}

impl World {
    pub(crate) async fn credential(
        &self,
        credential: Sensitive,
        agrees: bool,
    ) -> Result<GoogleSignedIn, Error> {
        let agreements = if agrees { terms() } else { Vec::new() };
        let language = Language::Ko;
        let request = GoogleSignIn { credential, state_token: None, agreements, language, origin: home() };
        self.auth.google(&self.anonymous(), request).await
    }

    pub(crate) async fn google(&self, person: &Person, agrees: bool) -> Result<SignedIn, Error> {
        self.credential(self.providers.credential(person), agrees).await.map(|done| tokens(done.outcome))
    }

    pub(crate) async fn leave(&self, provider: Provider) -> RedirectSignIn {
        let request = BeginRedirect { provider, return_to: Some("/events/7".to_owned()) };
        self.auth.begin_trip(&self.anonymous(), request).await.unwrap()
    }

    /// Simulates a redirected browser up to its return.
    pub(crate) async fn visit(
        &self,
        provider: Provider,
        redirect: &RedirectSignIn,
        person: &Person,
    ) -> CompleteRedirect {
        self.providers.is_used_by(person);
        let mut back = self.providers.visit(&redirect.location).await;
        let mut take = |name: &str| back.remove(name);
        CompleteRedirect {
            provider,
            state_token: Some(redirect.state_token.clone()),
            state: take("state").map(Sensitive::new),
            code: take("code").map(Sensitive::new),
            refusal: take("error"),
            origin: home(),
        }
    }

    pub(crate) async fn travel(
        &self,
        provider: Provider,
        person: &Person,
    ) -> Result<RedirectCompleted, Error> {
        let redirect = self.leave(provider).await;
        let back = self.visit(provider, &redirect, person).await;
        self.auth.end_trip(&self.anonymous(), back).await
    }

    async fn offered(&self, provider: Provider, person: &Person) -> SignUpOffer {
        match self.travel(provider, person).await.unwrap().outcome {
            RedirectOutcome::SignUp { offer } => *offer,
            other => panic!("a new user is offered an account, not {other:?}"),
        }
    }

    async fn sign_up(&self, state_token: &Sensitive, email: Option<&str>) -> Result<SignedIn, Error> {
        let request = SignUp {
            state_token: state_token.clone(),
            email: email.map(str::to_owned),
            name: None,
            agreements: terms(),
            language: Language::Ko,
            origin: home(),
        };
        self.auth.sign_up(&self.anonymous(), request).await.map(tokens)
    }

    pub(crate) async fn join_to(
        &self,
        user: &SignedIn,
        person: &Person,
        proof: OwnerProof,
    ) -> Result<LinkOutcome, Error> {
        let credential = Some(self.providers.credential(person));
        let request = LinkAccount {
            provider: Provider::Google,
            proof,
            credential,
            state_token: None,
            return_to: None,
            origin: home(),
        };
        self.auth.link_account(&self.of(user), request).await
    }

    pub(crate) async fn unlink(
        &self,
        user: &SignedIn,
        provider: Provider,
        proof: OwnerProof,
    ) -> Result<(), Error> {
        let request = UnlinkAccount { provider, proof, origin: home() };
        self.auth.unlink_account(&self.of(user), request).await.map(|_| ())
    }

    pub(crate) async fn linked(&self, user: &SignedIn) -> Vec<Provider> {
        let found = self.auth.linked_accounts(&self.of(user), ListLinked {}).await.unwrap();
        found.accounts.into_iter().map(|linked| linked.provider).collect()
    }

    pub(crate) async fn written(&self) -> (i64, i64) {
        (self.count(&ACCOUNTS, &[]).await, self.count(&LINKED, &[]).await)
    }
}

pub(crate) async fn a_new_google_user_must_agree_to_the_terms(world: &World) {
    let refused = world.google(&MINJI, false).await;
    let missing = vec![TermsKind::Service, TermsKind::Privacy];
    assert_eq!(refused, Err(Error::TermsRequired { missing, version: "1.0".to_owned() }));
    assert_eq!(world.written().await, (0, 0), "no account without consent");

    let done = world.credential(world.providers.credential(&MINJI), true).await.unwrap();
    assert_eq!(done.picture.as_deref(), Some("https://pictures.example/p.png"));
    let made = tokens(done.outcome);
    let Account { email, email_verified, name, phone, .. } = made.account.clone();
    assert_eq!((email.as_str(), email_verified), ("minji@example.com", true), "Google vouches for it");
    assert_eq!((name.as_str(), phone), ("김민지", None));
    assert_eq!(world.verify(&made.access_token).access.user, made.account.id);
    world.send_mails().await;
    assert_eq!(world.mailbox.to("minji@example.com"), [], "the address is already verified");

    let again = world.google(&MINJI, false).await.unwrap();
    assert_eq!((again.account.id, world.written().await), (made.account.id, (1, 1)));
    assert_ne!(again.session, made.session);
    let request = ListLogins { before: None, limit: 10 };
    let logins = world.auth.login_history(&world.of(&made), request).await.unwrap().logins;
    assert!(
        logins.len() == 2 && logins.iter().all(|login| login.method == LoginMethod::Google),
        "{logins:?}"
    );
    assert_eq!(
        world.login("minji@example.com", PASSWORD).await,
        Err(Error::InvalidCredentials),
        "an account without a password refuses passwords"
    );
}

pub(crate) async fn a_provider_address_does_not_grant_access_to_an_existing_account(world: &World) {
    let user = world.register("minji@example.com").await;
    let required = Error::LinkRequired { provider: Provider::Google };
    assert_eq!(world.google(&MINJI, true).await, Err(required.clone()));
    assert_eq!(world.travel(Provider::Google, &MINJI).await, Err(required));
    let required = Error::LinkRequired { provider: Provider::Kakao };
    assert_eq!(world.travel(Provider::Kakao, &MINJI).await, Err(required));
    assert_eq!(world.written().await, (1, 0));

    world.join_to(&user, &MINJI, with_password()).await.unwrap();
    let entered = world.google(&MINJI, false).await.unwrap();
    assert_eq!(entered.account.id, user.account.id);
    assert_eq!(world.linked(&user).await, [Provider::Google]);
    world.send_mails().await;
    let subjects = world.mailbox.subjects("minji@example.com");
    assert!(subjects.contains(&"[우르르] 로그인 방법이 변경되었습니다".to_owned()), "{subjects:?}");
}

pub(crate) async fn an_unverified_google_address_creates_no_account(world: &World) {
    let person = Person { verified: false, ..MINJI };
    let refused = Err(Error::EmailUnverified { provider: Provider::Google });
    assert_eq!(world.google(&person, true).await, refused);
    assert_eq!(world.written().await, (0, 0));
    // The account is identified by the subject, not by the address.
    let made = world.google(&MINJI, true).await.unwrap();
    let moved = Person { email: "another@example.com", ..person };
    assert_eq!(world.google(&moved, false).await.unwrap().account.id, made.account.id);
}

pub(crate) async fn the_redirect_flow_offers_an_account_and_later_signs_in(world: &World) {
    for provider in [Provider::Google, Provider::Kakao] {
        let person = if provider == Provider::Google { MINJI } else { JISOO };
        let end = world.travel(provider, &person).await.unwrap();
        assert_eq!(end.return_to, "/events/7");
        let offer = world.offered(provider, &person).await;
        assert_eq!(
            (offer.email.as_deref(), offer.email_verified),
            (Some(&*person.email.to_lowercase()), true)
        );
        let before = world.written().await;
        let none = SignUp {
            state_token: offer.state_token.clone(),
            email: None,
            name: None,
            agreements: Vec::new(),
            language: Language::En,
            origin: home(),
        };
        let refused = world.auth.sign_up(&world.anonymous(), none).await;
        assert!(matches!(refused, Err(Error::TermsRequired { .. })), "{refused:?}");
        assert_eq!(world.written().await, before);
        // An address verified by the provider cannot be replaced.
        let made = world.sign_up(&offer.state_token, Some("somebody.else@example.com")).await.unwrap();
        assert_eq!(made.account.email, person.email.to_lowercase());
        assert_eq!(world.sign_up(&offer.state_token, None).await, Err(Error::SignUpInvalid), "good once");
        let RedirectOutcome::Login { login } = world.travel(provider, &person).await.unwrap().outcome else {
            panic!("a known user signs in")
        };
        assert_eq!(tokens(login).account.id, made.account.id);
    }
    assert_eq!(world.written().await, (2, 2));
    let late = world.offered(Provider::Naver, &Person { subject: "9", ..MINJI }).await;
    world.clock.advance(Duration::from_mins(31));
    assert_eq!(world.sign_up(&late.state_token, Some("late@example.com")).await, Err(Error::SignUpInvalid));
}

pub(crate) async fn an_unverified_provider_address_is_verified_by_mail(world: &World) {
    let kakao = Person { verified: false, ..JISOO };
    for (provider, person) in [(Provider::Naver, &MINJI), (Provider::Kakao, &kakao)] {
        let offer = world.offered(provider, person).await;
        assert!(!offer.email_verified && offer.email.is_some());
        let refused = world.sign_up(&offer.state_token, None).await;
        assert!(matches!(refused, Err(Error::Invalid { field, .. }) if field == "email"));
        let email = person.email.to_lowercase();
        let made = world.sign_up(&offer.state_token, Some(person.email)).await.unwrap();
        assert_eq!((made.account.email.as_str(), made.account.email_verified), (email.as_str(), false));
        world.proof_link(&email).await;
    }
    // Whether an address has an account is not revealed to an unverified user.
    let offer = world.offered(Provider::Naver, &Person { subject: "9", ..MINJI }).await;
    assert_eq!(
        world.sign_up(&offer.state_token, Some("jisoo@example.com")).await,
        Err(Error::AlreadyRegistered)
    );
    assert_eq!(world.written().await, (2, 2));
}

pub(crate) async fn a_password_reset_removes_links_of_an_unverified_claimant(world: &World) {
    let offer = world.offered(Provider::Naver, &Person { subject: "666", ..MINJI }).await;
    let claimed = world.sign_up(&offer.state_token, Some("minji@example.com")).await.unwrap();
    let forgot = urr_contracts::auth::ForgotPassword { email: "minji@example.com".to_owned() };
    world.auth.forgot_password(&world.anonymous(), forgot).await.unwrap();
    let token = world.reset_link("minji@example.com").await;
    let request = ResetPassword { token, new: Sensitive::new(PASSWORD), origin: home() };
    world.auth.reset_password(&world.anonymous(), request).await.unwrap();
    assert!(world.is_revoked(&claimed).await);
    let owner = world.login("minji@example.com", PASSWORD).await.unwrap();
    assert_eq!(world.linked(&owner).await, []);
    let stranger = world.travel(Provider::Naver, &Person { subject: "666", ..MINJI }).await.unwrap();
    assert!(matches!(stranger.outcome, RedirectOutcome::SignUp { .. }), "{stranger:?}");
}

pub(crate) async fn callback_is_valid_once_in_time_and_in_the_same_browser(world: &World) {
    let (google, kakao) = (Provider::Google, Provider::Kakao);
    let redirect = world.leave(google).await;
    let other = world.leave(google).await;
    let back = world.visit(google, &redirect, &MINJI).await;
    let refused = async |back: CompleteRedirect| {
        let end = world.auth.end_trip(&world.anonymous(), back).await;
        assert_eq!(end, Err(Error::TripInvalid));
    };
    refused(CompleteRedirect { state_token: None, ..back.clone() }).await;
    refused(CompleteRedirect { state_token: Some(other.state_token.clone()), ..back.clone() }).await;
    refused(CompleteRedirect { state_token: Some(Sensitive::new("a.b.c")), ..back.clone() }).await;
    refused(CompleteRedirect { state: None, ..back.clone() }).await;
    refused(CompleteRedirect { state: Some(Sensitive::new("x")), ..back.clone() }).await;
    refused(CompleteRedirect { provider: kakao, ..back.clone() }).await;
    let offer = world.offered(google, &MINJI).await;
    refused(CompleteRedirect { state_token: Some(offer.state_token), ..back.clone() }).await;
    // None of these used it up.
    world.auth.end_trip(&world.anonymous(), back.clone()).await.unwrap();
    refused(back).await;

    // A used code, a code of another redirect, no code.
    let (one, two) = (world.leave(google).await, world.leave(google).await);
    let (one, two) = (world.visit(google, &one, &MINJI).await, world.visit(google, &two, &MINJI).await);
    refused(CompleteRedirect { code: two.code.clone(), ..one }).await;
    refused(two).await;
    let none = world.leave(kakao).await;
    refused(CompleteRedirect { code: None, ..world.visit(kakao, &none, &MINJI).await }).await;

    let late = world.leave(google).await;
    let late = world.visit(google, &late, &MINJI).await;
    world.clock.advance(Duration::from_mins(10));
    refused(late).await;

    world.providers.denies(true);
    let denied = world.leave(kakao).await;
    let denied = world.visit(kakao, &denied, &MINJI).await;
    assert_eq!(world.auth.end_trip(&world.anonymous(), denied).await, Err(Error::TripRefused));
    assert_eq!(world.written().await, (0, 0));
}

pub(crate) async fn closing_an_account_removes_its_linked_accounts(world: &World) {
    let user = world.google(&MINJI, true).await.unwrap();
    world.clock.advance(Duration::from_mins(11));
    let close = |proof| DeleteAccount { proof, origin: home() };
    let refused = world.auth.delete_account(&world.of(&user), close(with_session(&user))).await;
    assert_eq!(refused, Err(Error::SignInAgain), "an old session is no confirmation");
    let nobodys = world.auth.delete_account(&world.of(&user), close(with_password())).await;
    assert_eq!(nobodys, Err(Error::SignInAgain));
    let user = world.google(&MINJI, false).await.unwrap();
    world.auth.delete_account(&world.of(&user), close(with_session(&user))).await.unwrap();
    assert!(world.is_revoked(&user).await);
    assert_eq!(world.written().await, (1, 0));
    let back = world.google(&MINJI, true).await.unwrap();
    assert_ne!(back.account.id, user.account.id, "after closing, the user is new");
}

pub(crate) async fn provider_sign_in_reactivates_a_dormant_account(world: &World) {
    let user = world.google(&MINJI, true).await.unwrap();
    world.clock.advance(366 * DAY);
    assert_eq!(run(&world.service, "auth.tend_accounts").await.done, 1);
    assert_eq!(world.refresh(&user.refresh_token).await, Err(Error::RefreshInvalid));
    let awake = world.google(&MINJI, false).await.unwrap();
    assert_eq!((awake.account.id, awake.account.status), (user.account.id, AccountStatus::Active));
}

pub(crate) async fn enabled_providers_are_listed(world: &World) {
    let offers = world.auth.providers(&world.anonymous(), ListProviders {}).await.unwrap().providers;
    let names: Vec<_> = offers.iter().map(|offer| (offer.provider, offer.redirect)).collect();
    assert_eq!(names, Provider::ALL.map(|provider| (provider, true)));
}

pub(crate) async fn a_credential_is_valid_once(world: &World) {
    let credential = world.providers.credential(&MINJI);
    let refused = world.credential(credential.clone(), false).await;
    assert!(matches!(refused, Err(Error::TermsRequired { .. })), "{refused:?}");
    let made = tokens(world.credential(credential.clone(), true).await.unwrap().outcome);
    let kept = world.count(&ATTEMPTS, &[]).await;
    for agrees in [true, false] {
        assert_eq!(world.credential(credential.clone(), agrees).await, Err(Error::CredentialUsed));
    }
    assert_eq!(world.live_sessions(&made).await, 1);

    let second = world.providers.credential(&MINJI);
    world.credential(second.clone(), false).await.unwrap();
    assert_eq!(world.credential(second.clone(), false).await, Err(Error::CredentialUsed));
    let other = world.register("jisoo@example.com").await;
    let request = LinkAccount {
        provider: Provider::Google,
        proof: with_password(),
        credential: Some(second),
        state_token: None,
        return_to: None,
        origin: home(),
    };
    assert_eq!(world.auth.link_account(&world.of(&other), request).await, Err(Error::CredentialUsed));

    // A use is recorded until the proof expires, and then deleted.
    world.clock.advance(Duration::from_hours(1));
    run(&world.service, "auth.sweep").await;
    assert_eq!(world.credential(credential.clone(), false).await, Err(Error::CredentialUsed));
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(world.credential(credential, false).await, Err(Error::CredentialInvalid));
    world.clock.advance(DAY);
    run(&world.service, "auth.sweep").await;
    assert_eq!((kept, world.count(&ATTEMPTS, &[]).await), (1, 0));
}
