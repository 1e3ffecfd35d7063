//! The entry token: this user may buy for this event now. A JWT in the cookie `urr-entry-token` or
//! the header `x-queue-entry-token`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// Maximum lifetime. A token ends earlier if its slot does.
pub const LIFETIME: Duration = Duration::from_mins(10);

/// The cookie of the entry token.
pub const COOKIE: &str = "urr-entry-token";

const PURPOSE: &str = "entry";
const TYP: &str = "entry";

/// The key for entry tokens.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// The contents of an entry token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The event it admits to.
    pub event: EventId,
    /// The only account it is valid for.
    pub user: UserId,
    /// The slot it was issued for. When the slot ends, its tokens are no longer accepted.
    pub slot: Uuid,
    /// Expiry.
    pub expires: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    typ: String,
    sub: EventId,
    uid: UserId,
    sid: Uuid,
    jti: Uuid,
    iat: i64,
    exp: i64,
}

/// Signs and verifies entry tokens: the first key signs, all keys verify.
#[derive(Clone, Debug)]
pub struct Entries(Vec<Jwt>);

impl Entries {
    /// Signs with the first of `keys` and verifies with all of them.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(keys.into_iter().map(Jwt::new).collect())
    }

    /// Signs a token of at most [`LIFETIME`]. `id` makes it unique.
    pub fn sign(&self, entry: &Entry, id: Uuid, now: Timestamp) -> String {
        let jwt = self.0.first().expect("signing needs at least one key");
        jwt.sign(&Claims {
            typ: TYP.to_owned(),
            sub: entry.event,
            uid: entry.user,
            sid: entry.slot,
            jti: id,
            iat: seconds(now),
            exp: seconds(entry.expires.min(now.after(LIFETIME))),
        })
    }

    /// Returns the contents if the token is genuine and valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Entry, Refusal> {
        let claims: Claims = jwt::verify(&self.0, token)?;
        if claims.typ != TYP {
            return Err(Refusal::Invalid);
        }
        jwt::within(claims.iat, claims.exp, now)?;
        Ok(Entry { event: claims.sub, user: claims.uid, slot: claims.sid, expires: instant(claims.exp) })
    }
}
