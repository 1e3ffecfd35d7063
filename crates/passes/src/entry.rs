//! The entry token: this user may buy for this event now. A JWT in the cookie `urr-entry-token` or the header `x-queue-entry-token`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// The longest a token is good. It ends earlier when its slot does.
pub const LIFETIME: Duration = Duration::from_mins(10);

/// The cookie that opens the sale.
pub const COOKIE: &str = "urr-entry-token";

const PURPOSE: &str = "entry";
const TYP: &str = "entry";

/// The key for entry tokens.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which event is open to its bearer.
    pub event: EventId,
    /// The only account it works for.
    pub user: UserId,
    /// The slot it was given for; a slot that has ended takes its tokens along.
    pub slot: Uuid,
    /// When it stops being good.
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

/// Makes and reads tokens. Signs with the first key, reads with all.
#[derive(Clone, Debug)]
pub struct Entries(Vec<Jwt>);

impl Entries {
    /// Tokens of any of `keys`, made by the first.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(keys.into_iter().map(Jwt::new).collect())
    }

    /// A token, at most [`LIFETIME`] long. `id` makes it unlike any other.
    pub fn sign(&self, entry: &Entry, id: Uuid, now: Timestamp) -> String {
        let jwt = self.0.first().expect("a signer has a key");
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

    /// What the token says, if it is one of ours and good at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Entry, Refusal> {
        let claims: Claims = jwt::verify(&self.0, token)?;
        if claims.typ != TYP {
            return Err(Refusal::Invalid);
        }
        jwt::within(claims.iat, claims.exp, now)?;
        Ok(Entry { event: claims.sub, user: claims.uid, slot: claims.sid, expires: instant(claims.exp) })
    }
}
