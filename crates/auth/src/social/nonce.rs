//! Binds an ID token to the browser that requested it.
//!
//! A page with Google's button gets a nonce, and the browser stores the slip from which it is
//! derived in a cookie. Google puts the nonce into the token, and a token with a nonce is valid
//! only together with its slip, so a copied token is useless. Pages without nonces get tokens that
//! are valid once.

use std::time::Duration;

use urr_contracts::auth::{Provider, Sensitive};
use urr_kernel::Timestamp;

use super::rules::Knots;
use crate::service::Service;

/// How long a page with a button may stay open.
const LIFETIME: Duration = Duration::from_hours(12);

/// A nonce for a page, and the slip for the browser.
pub(super) struct Issued {
    pub(super) nonce: String,
    /// `None`: the browser already has it.
    pub(super) slip: Option<Kept>,
}

/// A slip and its lifetime.
pub(super) struct Kept {
    pub(super) slip: Sensitive,
    pub(super) expires: Timestamp,
}

/// Issues a nonce. The windows of one browser share a slip, so that the second does not invalidate
/// the first.
pub(super) fn issue(service: &Service, kept: Option<Sensitive>) -> Issued {
    let now = service.clock.now();
    let lasts = |slip: &Sensitive| expires(service, slip).is_some_and(|end| end > now.after(LIFETIME / 2));
    if let Some(slip) = kept.filter(lasts) {
        return Issued { nonce: Knots::of(&slip).nonce, slip: None };
    }
    let expires = now.after(LIFETIME);
    let signed = service.slips.nonces.sign(&Provider::Google, service.ids.next(), (now, expires));
    let slip = Sensitive::new(signed);
    Issued { nonce: Knots::of(&slip).nonce, slip: Some(Kept { slip, expires }) }
}

/// The nonce expected in a token from a browser with this slip. `None`: the token must have none.
pub(super) fn expected(service: &Service, kept: Option<&Sensitive>) -> Option<String> {
    kept.filter(|slip| expires(service, slip).is_some()).map(|slip| Knots::of(slip).nonce)
}

fn expires(service: &Service, slip: &Sensitive) -> Option<Timestamp> {
    let read = service.slips.nonces.verify::<Provider>(slip.expose(), service.clock.now());
    read.ok().map(|read| read.expires)
}
