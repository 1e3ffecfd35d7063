//! The Tier 1 pass: this browser has waited its turn. A JWT in the cookie `urr-vwr-token-<event>`, so that somebody may be inside at
//! two events at once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{EventId, OrderKey, Timestamp, VisitorId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
    vwr_ticket,
};

/// How long a pass is good: long enough to sign in and to join the event's own line.
pub const LIFETIME: Duration = Duration::from_mins(10);

const PURPOSE: &str = "vwr-pass";
const TYP: &str = "vwr";
const TIER: u8 = 1;

/// What the cookies of all passes begin with. One of this very name is read too: older clients send their pass in it.
pub const COOKIE: &str = "urr-vwr-token";

/// The cookie with the pass for an event.
pub fn cookie(event: EventId) -> String {
    format!("{COOKIE}-{}", event.as_uuid().simple())
}

/// The key for Tier 1 passes.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// What a pass says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Which event's door it opens.
    pub event: EventId,
    /// The browser that waited.
    pub visitor: VisitorId,
    /// Its place, which Tier 2 takes over.
    pub order: OrderKey,
    /// The same place as a number from one.
    pub position: u64,
}

impl Pass {
    /// Whether it was given for the line that was `opened` then: places are counted from that instant, so those of an earlier opening
    /// lie before it.
    pub fn is_of_line(&self, opened: Timestamp) -> bool {
        self.order >= OrderKey::at(opened)
    }
}

/// A pass that was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// What it says.
    pub pass: Pass,
    /// What it is called, through all renewals.
    pub id: Uuid,
    /// When the wait began that it stands for, through all renewals.
    pub since: Timestamp,
    /// When it stops being good.
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

/// Makes and reads passes. Signs with the first key, reads with all.
#[derive(Clone, Debug)]
pub struct Passes(Vec<Jwt>);

impl Passes {
    /// Passes of any of `keys`, made by the first.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(keys.into_iter().map(Jwt::new).collect())
    }

    /// A pass from `now` on, for a wait that begins and ends then. `id` makes it unlike any other.
    pub fn sign(&self, pass: &Pass, id: Uuid, now: Timestamp) -> String {
        self.sign_since(now, pass, id, now)
    }

    /// A pass from `now` on, for a wait that began at `since`.
    pub fn sign_since(&self, since: Timestamp, pass: &Pass, id: Uuid, now: Timestamp) -> String {
        let jwt = self.0.first().expect("a signer has a key");
        jwt.sign(&Claims {
            typ: TYP.to_owned(),
            tier: TIER,
            sub: pass.event,
            uid: pass.visitor,
            ord: pass.order,
            pos: pass.position,
            jti: id,
            // By another machine's clock it may be in the future.
            iat: seconds(since.min(now)),
            exp: seconds(now.after(LIFETIME)),
        })
    }

    /// The same pass for another while, if half its time is over: whoever is inside and busy is not sent out to wait again. Not for one
    /// of an earlier opening than the room's last, which was for another line; and not once the ticket of that wait is too old, because
    /// Tier 2 does not remember for ever which waits were used.
    pub fn renew(&self, held: &Verified, opened: Timestamp, now: Timestamp) -> Option<String> {
        let is_half_over = now.after(LIFETIME / 2) > held.expires;
        let goes_on = now < held.since.after(vwr_ticket::LIFETIME);
        let is_renewed = held.pass.is_of_line(opened) && is_half_over && goes_on;
        is_renewed.then(|| self.sign_since(held.since, &held.pass, held.id, now))
    }

    /// What the pass says, if it is one of ours and good at `now`.
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
