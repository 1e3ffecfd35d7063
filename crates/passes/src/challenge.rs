//! The challenge: its bearer has shown the first factor and is to show the second. It is good for nothing else, for a few
//! minutes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// How long somebody has to read six digits off a phone.
pub const LIFETIME: Duration = Duration::from_mins(5);

/// The purpose that the keys of challenges are derived for.
const PURPOSE: &str = "second factor challenge";

/// The `typ` claim.
const TYP: &str = "challenge";

/// The key for challenges.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// What a challenge says about its bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Whose account it is.
    pub user: UserId,
    /// How the first factor was shown.
    pub method: String,
    /// What the account's secrets looked like then: once they change, the challenge is worth nothing.
    pub state: String,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    typ: String,
    sub: UserId,
    method: String,
    state: String,
    jti: Uuid,
    iat: i64,
    exp: i64,
}

/// Makes and reads challenges: the first key signs, all of them verify.
#[derive(Clone, Debug)]
pub struct Challenges {
    keys: Vec<Jwt>,
}

impl Challenges {
    /// Signs with the first of `keys`.
    ///
    /// # Panics
    /// Without a key.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let keys: Vec<Jwt> = keys.into_iter().map(Jwt::new).collect();
        assert!(!keys.is_empty(), "challenges need a key");
        Self { keys }
    }

    /// A challenge, and when it stops being good. `id` makes it unlike any other.
    pub fn sign(&self, challenge: &Challenge, id: Uuid, now: Timestamp) -> (String, Timestamp) {
        let exp = seconds(now.after(LIFETIME));
        let token = self.keys[0].sign(&Claims {
            typ: TYP.to_owned(),
            sub: challenge.user,
            method: challenge.method.clone(),
            state: challenge.state.clone(),
            jti: id,
            iat: seconds(now),
            exp,
        });
        (token, instant(exp))
    }

    /// What a challenge says, if it is one of ours and good at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Challenge, Refusal> {
        let claims: Claims = jwt::verify(&self.keys, token)?;
        if claims.typ != TYP {
            return Err(Refusal::Invalid);
        }
        jwt::within(claims.iat, claims.exp, now)?;
        Ok(Challenge { user: claims.sub, method: claims.method, state: claims.state })
    }
}

#[cfg(test)]
mod tests;
