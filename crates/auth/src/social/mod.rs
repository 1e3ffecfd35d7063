//! Sign-in with Google, Kakao or Naver.
//!
//! The provider's subject identifies at most one account here. An e-mail address, even a verified
//! one, never grants access to an existing account: its owner signs in and links the provider. A
//! new user gets an account after agreeing to the terms; until then the provider's data is in a
//! signed state token in the browser and nothing is stored.

mod ask;
mod config;
mod id_token;
mod issuer;
pub(crate) mod link_routes;
pub(crate) mod linking;
mod nonce;
mod once;
mod port;
pub(crate) mod redirect;
pub(crate) mod routes;
mod rules;
pub(crate) mod settings;
pub(crate) mod sign_up;
pub(crate) mod store;

use urr_contracts::auth::{
    Account, AccountStatus, Error, GoogleSignIn, GoogleSignedIn, LoginOutcome, Origin, Provider, Providers,
};
use urr_db::{Tx, transaction};
use urr_kernel::{CommonError, Role};
use urr_passes::{
    Secret,
    state_token::{self, StateTokens},
};

use crate::{
    Failure,
    accounts::{self, rules::NewAccount},
    lockout, mail,
    service::Service,
    sessions::{self, Entry},
};

pub use ask::BadPage;
pub use config::{GoogleConfig, OAuthConfig, SocialConfig};
use once::Once;
pub use port::Social;
use rules::Profile;

/// The kinds of signed state tokens stored in browsers.
pub(crate) struct StateTokenKinds {
    /// During the redirect to a provider.
    redirects: StateTokens,
    /// Between the redirect and consent to the terms.
    sign_ups: StateTokens,
    /// Between showing Google's button and its use.
    nonces: StateTokens,
}

impl StateTokenKinds {
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        let state_tokens =
            |kind| StateTokens::new(kind, secrets.iter().map(|secret| state_token::key(kind, secret)));
        Self {
            redirects: state_tokens("trip"),
            sign_ups: state_tokens("sign-up"),
            nonces: state_tokens("nonce"),
        }
    }
}

/// The enabled providers.
pub(crate) fn providers(service: &Service) -> Providers {
    Providers { providers: service.social.offers() }
}

/// Signs in with a Google ID token, or creates an account for a new user who agreed to the terms.
pub(crate) async fn google(service: &Service, request: &GoogleSignIn) -> Result<GoogleSignedIn, Failure> {
    let port = service.social.port(Provider::Google)?;
    let origin = sessions::rules::clean(&request.origin);
    let nonce = nonce::expected(service, request.state_token.as_ref());
    let found = lockout::braked(service, &origin, async || {
        let found = port.credential(&request.credential, nonce.as_deref(), service.clock.now()).await;
        found.map_err(|unknown| unknown.because_of(port.provider, Error::CredentialInvalid))
    });
    let credential = found.await?;
    let (once, profile) = (Once::credential(service, &credential), credential.profile);
    let outcome = if let Some(outcome) = enter(service, &profile, Some(&once), &origin).await? {
        outcome
    } else {
        let newcomer = sign_up::vouched(service, &profile, &request.agreements)?;
        join(service, &profile, (&newcomer, request.language, true), &once, &origin).await?
    };
    Ok(GoogleSignedIn { outcome, picture: profile.picture })
}

/// Signs in the user identified by a provider, and uses up the proof. `None`: there is no account.
async fn enter(
    service: &Service,
    profile: &Profile,
    once: Option<&Once>,
    origin: &Origin,
) -> Result<Option<LoginOutcome>, Failure> {
    let subject = subject_index(service, profile);
    let entry = transaction!(service.db, "auth.social.enter", async |tx: &mut Tx<'_>| {
        let entry = recognise(service, tx, (profile.provider, &subject), origin).await?;
        if let (Some(_), Some(once)) = (&entry, once) {
            once.spend(service, tx).await?;
        }
        Ok::<_, Failure>(entry)
    })?;
    Ok(entry.map(|entry| admit(service, profile.provider, entry)))
}

/// Opens a session for the account linked to a provider account, if there is one. The account is
/// locked before the link is used; a link that was removed meanwhile does not count.
async fn recognise(
    service: &Service,
    tx: &mut Tx<'_>,
    (provider, subject): (Provider, &Vec<u8>),
    origin: &Origin,
) -> Result<Option<Entry>, Failure> {
    let Some(owner) = store::owner(tx, provider, subject).await? else { return Ok(None) };
    let stored = accounts::store::lock(&service.vault, tx, owner).await?;
    let Some(stored) = stored.filter(accounts::store::Stored::is_open) else { return Ok(None) };
    if !store::used(tx, provider, subject, service.clock.now()).await? {
        return Ok(None);
    }
    sessions::open(service, tx, &stored.account, provider.method(), origin).await.map(Some)
}

/// Completes a committed sign-in: announces revocations and counts it.
fn admit(service: &Service, provider: Provider, entry: Entry) -> LoginOutcome {
    let outcome = entry.settle(service);
    let what = match &outcome {
        LoginOutcome::SignedIn(_) => "signed_in",
        LoginOutcome::SecondFactor(_) => "challenged",
    };
    let method = provider.name();
    metrics::counter!("urr_auth_logins_total", "method" => method, "outcome" => what).increment(1);
    outcome
}

/// Creates an account for a new user and signs it in. Of two concurrent requests for the same
/// person, one creates the account and both are signed in to it. `once` is used up in the same
/// transaction.
async fn join(
    service: &Service,
    profile: &Profile,
    (new, language, email_verified): (&NewAccount, urr_contracts::auth::Language, bool),
    once: &Once,
    origin: &Origin,
) -> Result<LoginOutcome, Failure> {
    let (provider, now) = (profile.provider, service.clock.now());
    let subject = subject_index(service, profile);
    let account = Account {
        id: service.ids.next(),
        email: new.email.clone(),
        email_verified,
        name: new.name.clone(),
        phone: None,
        second_factor: false,
        identity_verified_at: None,
        role: Role::User,
        status: AccountStatus::Active,
        language,
        marketing: new.marketing(),
        created_at: now,
    };
    let opened = transaction!(service.db, "auth.social.join", async |tx: &mut Tx<'_>| {
        once.spend(service, tx).await?;
        let linked = (provider, &subject);
        if let Some(opened) = recognise(service, tx, linked, origin).await? {
            return Ok::<_, Failure>(Some(opened));
        }
        if !accounts::insert(service, tx, &account, new, None).await? {
            // The address may have been registered a moment ago by the same person.
            return match recognise(service, tx, linked, origin).await? {
                Some(opened) => Ok(Some(opened)),
                None if email_verified => Err(Error::LinkRequired { provider }.into()),
                // The address is not verified, so this may be another person: answer as a
                // registration does.
                None => {
                    accounts::tell_owner(service, tx, &account.email).await?;
                    Ok(None)
                }
            };
        }
        // Linked meanwhile under another address: roll back, and the retry finds that account.
        if !store::insert(tx, service.ids.next(), account.id, linked, (now, Some(now))).await? {
            return Err(CommonError::Unavailable.into());
        }
        if !email_verified {
            mail::queue(service, tx, account.id, mail::Kind::VerifyEmail).await?;
        }
        sessions::open(service, tx, &account, provider.method(), origin).await.map(Some)
    })?;
    service.mails.nudge();
    let Some(opened) = opened else {
        lockout::count_taken_address(service, origin);
        return Err(Error::AlreadyRegistered.into());
    };
    Ok(admit(service, provider, opened))
}

/// The blind index of a provider account.
fn subject_index(service: &Service, profile: &Profile) -> Vec<u8> {
    service.vault.index(&format!("linked {}", profile.provider.name()), &profile.subject)
}
