//! The challenge: its bearer has passed the first factor and must now pass the second. It is valid
//! for nothing else, and for a few minutes only.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// Time to type six digits from a phone.
pub const LIFETIME: Duration = Duration::from_mins(5);

/// The purpose of the derived keys.
const PURPOSE: &str = "second factor challenge";

/// The `typ` claim.
const TYP: &str = "challenge";

/// The key for challenges.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// The contents of a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The account.
    pub user: UserId,
    /// The method of the first factor.
    pub method: String,
    /// Fingerprint of the account's credentials. When they change, the challenge becomes invalid.
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

/// Signs and verifies challenges: the first key signs, all keys verify.
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

    /// Signs a challenge and returns it with its expiry. `id` makes it unique.
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

    /// Returns the contents if the challenge is genuine and valid at `now`.
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
