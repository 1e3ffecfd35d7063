//! Binds an ID token to the browser that requested it.
//!
//! A page with Google's button gets a nonce, and the browser stores the state token from which it
//! is derived in a cookie. Google puts the nonce into the token, and a token with a nonce is valid
//! only together with its state token, so a copied token is useless. Pages without nonces get
//! tokens that are valid once.

use std::time::Duration;

use urr_contracts::auth::{Provider, Sensitive};
use urr_kernel::Timestamp;

use super::rules::RedirectSecrets;
use crate::service::Service;

/// How long a page with a button may stay open.
const LIFETIME: Duration = Duration::from_hours(12);

/// A nonce for a page, and the state token for the browser.
pub(super) struct Issued {
    pub(super) nonce: String,
    /// `None`: the browser already has it.
    pub(super) state_token: Option<NonceCookie>,
}

/// A state token and its lifetime.
pub(super) struct NonceCookie {
    pub(super) state_token: Sensitive,
    pub(super) expires: Timestamp,
}

/// Issues a nonce. The windows of one browser share a state token, so that the second does not
/// invalidate the first.
pub(super) fn issue(service: &Service, kept: Option<Sensitive>) -> Issued {
    let now = service.clock.now();
    let lasts = |state_token: &Sensitive| {
        expires(service, state_token).is_some_and(|end| end > now.after(LIFETIME / 2))
    };
    if let Some(state_token) = kept.filter(lasts) {
        return Issued { nonce: RedirectSecrets::of(&state_token).nonce, state_token: None };
    }
    let expires = now.after(LIFETIME);
    let signed = service.state_tokens.nonces.sign(&Provider::Google, service.ids.next(), (now, expires));
    let state_token = Sensitive::new(signed);
    Issued {
        nonce: RedirectSecrets::of(&state_token).nonce,
        state_token: Some(NonceCookie { state_token, expires }),
    }
}

/// The nonce expected in a token from a browser with this state token. `None`: the token must have
/// none.
pub(super) fn expected(service: &Service, kept: Option<&Sensitive>) -> Option<String> {
    kept.filter(|state_token| expires(service, state_token).is_some())
        .map(|state_token| RedirectSecrets::of(state_token).nonce)
}

fn expires(service: &Service, state_token: &Sensitive) -> Option<Timestamp> {
    let read = service.state_tokens.nonces.verify::<Provider>(state_token.expose(), service.clock.now());
    read.ok().map(|read| read.expires)
}
