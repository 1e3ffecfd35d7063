//! Ties an ID token to the browser that asked Google for it.
//!
//! A page that shows Google's button gets a nonce with it, and the browser keeps the slip that the nonce is made of in a cookie.
//! Google writes the nonce into the token, and a token with a nonce is good only together with its slip: whoever copies one has no
//! use for it. A page that knows nothing of this gets tokens without a nonce, which are good once like any other.

use std::time::Duration;

use urr_contracts::auth::{Provider, Sensitive};
use urr_kernel::Timestamp;

use super::rules::Knots;
use crate::service::Service;

/// How long a page with a button may stay open.
const LIFETIME: Duration = Duration::from_hours(12);

/// A nonce for a page, and what its browser has to keep.
pub(super) struct Issued {
    pub(super) nonce: String,
    /// `None`: the browser has it.
    pub(super) slip: Option<Kept>,
}

/// A slip and how long it is good.
pub(super) struct Kept {
    pub(super) slip: Sensitive,
    pub(super) expires: Timestamp,
}

/// A nonce for a browser. The windows of one browser share a slip, so that the second does not spoil the first.
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

/// The nonce that a token must have which a browser with this slip brings. `None`: it must have none.
pub(super) fn expected(service: &Service, kept: Option<&Sensitive>) -> Option<String> {
    kept.filter(|slip| expires(service, slip).is_some()).map(|slip| Knots::of(slip).nonce)
}

fn expires(service: &Service, slip: &Sensitive) -> Option<Timestamp> {
    let read = service.slips.nonces.verify::<Provider>(slip.expose(), service.clock.now());
    read.ok().map(|read| read.expires)
}
