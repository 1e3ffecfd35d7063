//! The Tier 1 pass: this browser has waited its turn. A JWT in the cookie `urr-vwr-token-<event>`;
//! one per event, so that a user can be admitted to two events at once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{EventId, OrderKey, Timestamp, VisitorId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
    vwr_ticket,
};

/// Lifetime of a pass: long enough to sign in and to join the event's own queue.
pub const LIFETIME: Duration = Duration::from_mins(10);

const PURPOSE: &str = "vwr-pass";
const TYP: &str = "vwr";
const TIER: u8 = 1;

/// Prefix of the cookies of all passes. A cookie of exactly this name is read too: older clients
/// send their pass in it.
pub const COOKIE: &str = "urr-vwr-token";

/// The cookie with the pass for an event.
pub fn cookie(event: EventId) -> String {
    format!("{COOKIE}-{}", event.as_uuid().simple())
}

/// The key for Tier 1 passes.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// The contents of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The event it admits to.
    pub event: EventId,
    /// The browser that waited.
    pub visitor: VisitorId,
    /// Its order key, which Tier 2 takes over.
    pub order: OrderKey,
    /// Its position, counted from one.
    pub position: u64,
}

impl Pass {
    /// Whether it was issued for the queue opened at `opened`. Order keys are counted from that
    /// time, so those of an earlier opening are smaller.
    pub fn is_of_line(&self, opened: Timestamp) -> bool {
        self.order >= OrderKey::at(opened)
    }
}

/// A verified pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The contents.
    pub pass: Pass,
    /// Its id, kept through renewals.
    pub id: Uuid,
    /// When the wait began, kept through renewals.
    pub since: Timestamp,
    /// Expiry.
    pub expires: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    typ: String,
    tier: u8,
    sub: EventId,
    uid: VisitorId,
    ord: OrderKey,
    pos: u64,
    jti: Uuid,
    iat: i64,
    exp: i64,
}

/// Signs and verifies passes: the first key signs, all keys verify.
#[derive(Clone, Debug)]
pub struct Passes(Vec<Jwt>);

impl Passes {
    /// Signs with the first of `keys` and verifies with all of them.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(keys.into_iter().map(Jwt::new).collect())
    }

    /// Signs a pass for a wait that began at `now`. `id` makes it unique.
    pub fn sign(&self, pass: &Pass, id: Uuid, now: Timestamp) -> String {
        self.sign_since(now, pass, id, now)
    }

    /// Signs a pass at `now` for a wait that began at `since`.
    pub fn sign_since(&self, since: Timestamp, pass: &Pass, id: Uuid, now: Timestamp) -> String {
        let jwt = self.0.first().expect("signing needs at least one key");
        jwt.sign(&Claims {
            typ: TYP.to_owned(),
            tier: TIER,
            sub: pass.event,
            uid: pass.visitor,
            ord: pass.order,
            pos: pass.position,
            jti: id,
            // `since` may be in the future if another machine's clock is ahead.
            iat: seconds(since.min(now)),
            exp: seconds(now.after(LIFETIME)),
        })
    }

    /// Renews a pass once half of its lifetime is over, so that an active user does not have to
    /// queue again. Returns `None` if the pass belongs to an earlier opening of the room, or if the
    /// ticket of that wait is too old: Tier 2 does not remember used waits forever.
    pub fn renew(&self, held: &Verified, opened: Timestamp, now: Timestamp) -> Option<String> {
        let is_half_over = now.after(LIFETIME / 2) > held.expires;
        let goes_on = now < held.since.after(vwr_ticket::LIFETIME);
        let is_renewed = held.pass.is_of_line(opened) && is_half_over && goes_on;
        is_renewed.then(|| self.sign_since(held.since, &held.pass, held.id, now))
    }

    /// Returns the contents if the pass is genuine and valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, Refusal> {
        let claims: Claims = jwt::verify(&self.0, token)?;
        if claims.typ != TYP || claims.tier != TIER {
            return Err(Refusal::Invalid);
        }
        jwt::within(claims.iat, claims.exp, now)?;
        let pass = Pass { event: claims.sub, visitor: claims.uid, order: claims.ord, position: claims.pos };
        Ok(Verified { pass, id: claims.jti, since: instant(claims.iat), expires: instant(claims.exp) })
    }
}
