//! Registration of a new user through a provider: offered on return from the provider, completed
//! after consent to the terms.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_contracts::auth::{Agreement, Error, LoginOutcome, Provider, Sensitive, SignUp, SignUpOffer};
use urr_db::Tx;
use urr_kernel::Timestamp;
use urr_passes::state_token::StateToken;

use super::{join, once::Once, rules::Profile};
use crate::{
    Failure,
    accounts::{
        self,
        rules::{self, NewAccount, invalid},
    },
    service::Service,
    sessions,
};

/// How long the sign-up page may stay open.
const LIFETIME: Duration = Duration::from_mins(30);

/// The state token's content: the provider's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SignUpData {
    provider: Provider,
    subject: String,
    email: Option<String>,
    email_verified: bool,
    name: Option<String>,
}

impl SignUpData {
    fn profile(self) -> Profile {
        let Self { provider, subject, email, email_verified, name } = self;
        Profile { provider, subject, email, email_verified, name, picture: None }
    }
}

/// Offers an account. If the address already has one, returns the error at once.
pub(super) async fn offer(service: &Service, profile: Profile) -> Result<SignUpOffer, Failure> {
    let vouched = profile.email.as_deref().filter(|_| profile.email_verified);
    if let Some(email) = vouched {
        let found = service.db.read("auth.social.offer", async |tx: &mut Tx<'_>| {
            accounts::store::by_email(&service.vault, tx, email).await
        });
        if found.await?.is_some() {
            return Err(Error::LinkRequired { provider: profile.provider }.into());
        }
    }
    let Profile { provider, subject, email, email_verified, name, .. } = profile;
    let data = SignUpData { provider, subject, email, email_verified, name };
    let now = service.clock.now();
    let expires_at = now.after(LIFETIME);
    let state_token =
        Sensitive::new(service.state_tokens.sign_ups.sign(&data, service.ids.next(), (now, expires_at)));
    Ok(offered(state_token, expires_at, data))
}

fn offered(state_token: Sensitive, expires_at: Timestamp, data: SignUpData) -> SignUpOffer {
    let SignUpData { provider, email, email_verified, name, .. } = data;
    SignUpOffer { state_token, expires_at, provider, email, email_verified, name }
}

/// Reads a state token, for the sign-up page.
pub(crate) fn read(service: &Service, state_token: Sensitive) -> Result<SignUpOffer, Error> {
    let read = verify(service, &state_token)?;
    Ok(offered(state_token, read.expires, read.carries))
}

fn verify(service: &Service, state_token: &Sensitive) -> Result<StateToken<SignUpData>, Error> {
    let read = service.state_tokens.sign_ups.verify(state_token.expose(), service.clock.now());
    read.map_err(|_| Error::SignUpInvalid)
}

/// Creates the offered account. The state token is valid once; a refused attempt does not use it
/// up.
pub(crate) async fn sign_up(service: &Service, request: &SignUp) -> Result<LoginOutcome, Failure> {
    let state_token = verify(service, &request.state_token)?;
    let profile = state_token.carries.profile();
    let email_verified = profile.email_verified;
    let email = match (&profile.email, &request.email) {
        (Some(email), _) if email_verified => email.clone(),
        (_, Some(email)) => rules::email(email)?,
        (_, None) => return Err(invalid("email", "Please enter an e-mail address").into()),
    };
    let new = NewAccount {
        email,
        name: name(&profile, request.name.as_deref())?,
        phone: None,
        decisions: rules::decisions(&request.agreements, &service.settings.terms_version)?,
    };
    let origin = sessions::rules::clean(&request.origin);
    let once = Once::state_token(service, state_token.id, state_token.expires, Error::SignUpInvalid);
    join(service, &profile, (&new, request.language, email_verified), &once, &origin).await
}

/// A new account with an address verified by the provider, if the user agreed to the terms.
pub(super) fn vouched(
    service: &Service,
    profile: &Profile,
    agreements: &[Agreement],
) -> Result<NewAccount, Error> {
    let email = profile.email.clone().filter(|_| profile.email_verified);
    let email = email.ok_or(Error::EmailUnverified { provider: profile.provider })?;
    let decisions = rules::decisions(agreements, &service.settings.terms_version)?;
    Ok(NewAccount { name: name(profile, None).or_else(|_| nameless(&email))?, email, phone: None, decisions })
}

fn name(profile: &Profile, given: Option<&str>) -> Result<String, Error> {
    rules::name(given.or(profile.name.as_deref()).unwrap_or_default())
}

/// The default name: the local part of the address.
fn nameless(email: &str) -> Result<String, Error> {
    rules::name(email.split('@').next().unwrap_or_default())
}
