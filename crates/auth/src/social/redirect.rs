//! The redirect flow: sending a browser to a provider and handling its return.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use urr_contracts::auth::{
    BeginRedirect, CompleteRedirect, Error, Provider, RedirectCompleted, RedirectOutcome, RedirectSignIn,
    Sensitive,
};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;
use urr_passes::state_token::StateToken;
use urr_rpc::Ctx;

use super::{
    enter, linking,
    once::Once,
    port::{Port, no_answer},
    rules::{RedirectSecrets, return_path},
    sign_up,
};
use crate::{Failure, service::Service, sessions};

/// How long a user may take to sign in at a provider.
const LIFETIME: Duration = Duration::from_mins(10);

/// The state token's content.
#[derive(Debug, Serialize, Deserialize)]
struct RedirectState {
    provider: Provider,
    return_to: String,
    /// The account to link, whose owner has confirmed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<UserId>,
}

/// Starts the redirect flow for a sign-in.
pub(crate) async fn begin(service: &Service, request: &BeginRedirect) -> Result<RedirectSignIn, Failure> {
    leave(service, request.provider, request.return_to.as_deref(), None).await
}

/// Starts the redirect flow, for a sign-in or to link an account.
pub(super) async fn leave(
    service: &Service,
    provider: Provider,
    return_to: Option<&str>,
    link: Option<UserId>,
) -> Result<RedirectSignIn, Failure> {
    let port = redirecting(service, provider)?;
    let state = RedirectState { provider, return_to: return_path(return_to)?, link };
    let now = service.clock.now();
    let expires_at = now.after(LIFETIME);
    let state_token =
        Sensitive::new(service.state_tokens.redirects.sign(&state, service.ids.next(), (now, expires_at)));
    let location = port.authorize(&RedirectSecrets::of(&state_token), &redirect_uri(service, provider)).await;
    let location = location.map_err(|source| no_answer(provider, source))?;
    Ok(RedirectSignIn { location, state_token, expires_at })
}

fn redirecting(service: &Service, provider: Provider) -> Result<&Port, Error> {
    Some(service.social.port(provider)?).filter(|port| port.redirects()).ok_or(Error::ProviderOff)
}

/// The callback URL. It must be registered with the provider, exactly as written.
fn redirect_uri(service: &Service, provider: Provider) -> String {
    format!("{}/api/auth/{}/callback", service.settings.site_url, provider.name())
}

/// Handles the return of a browser. The state token is used up in any case.
pub(crate) async fn end(
    service: &Service,
    ctx: &Ctx,
    request: &CompleteRedirect,
) -> Result<RedirectCompleted, Failure> {
    let port = redirecting(service, request.provider)?;
    let state_token = request.state_token.as_ref().ok_or(Error::TripInvalid)?;
    let (redirect, secrets) = (verify(service, state_token, request)?, RedirectSecrets::of(state_token));
    let now = service.clock.now();
    let once = Once::state_token(service, redirect.id, redirect.expires, Error::TripInvalid);
    transaction!(service.db, "auth.social.return", async |tx: &mut Tx<'_>| once.spend(service, tx).await)?;
    if request.refusal.is_some() {
        return Err(Error::TripRefused.into());
    }
    let code = request.code.as_ref().ok_or(Error::TripInvalid)?;
    let profile = port.identify(code, &secrets, &redirect_uri(service, port.provider), now).await;
    let profile = profile.map_err(|unknown| unknown.because_of(port.provider, Error::TripInvalid))?;
    let RedirectState { return_to, link, .. } = redirect.carries;
    let origin = sessions::rules::clean(&request.origin);
    let outcome = match link {
        // A state token planted in another user's browser must not link that user's provider
        // account.
        Some(account) if ctx.actor.user() != Some(account) => return Err(Error::TripInvalid.into()),
        Some(account) => {
            RedirectOutcome::Linked { linked: linking::link_proved(service, account, &profile).await? }
        }
        None => match enter(service, &profile, None, &origin).await? {
            Some(login) => RedirectOutcome::Login { login },
            None => RedirectOutcome::SignUp { offer: Box::new(sign_up::offer(service, profile).await?) },
        },
    };
    Ok(RedirectCompleted { return_to, outcome })
}

/// Verifies the state token, its provider and the state derived from it.
fn verify(
    service: &Service,
    state_token: &Sensitive,
    request: &CompleteRedirect,
) -> Result<StateToken<RedirectState>, Error> {
    let redirect =
        service.state_tokens.redirects.verify::<RedirectState>(state_token.expose(), service.clock.now());
    let redirect = redirect.map_err(|_| Error::TripInvalid)?;
    let state = request.state.as_ref().map(Sensitive::expose).unwrap_or_default();
    let same = bool::from(state.as_bytes().ct_eq(RedirectSecrets::of(state_token).state.as_bytes()));
    if same && redirect.carries.provider == request.provider { Ok(redirect) } else { Err(Error::TripInvalid) }
}
