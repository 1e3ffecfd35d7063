//! The access token: who is signed in. A JWT in the cookie `access_token` or as `Authorization: Bearer`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Actor, Role, Timestamp, UserId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// How long a token is good, unless configured otherwise.
pub const LIFETIME: Duration = Duration::from_hours(1);

/// The purpose that access keys are derived for.
const PURPOSE: &str = "access";

/// The `typ` claim. A token of another kind is refused even if somebody configures the same key for both.
const TYP: &str = "access";

/// The key for access tokens.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// What a token says about its bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whose account it is.
    pub user: UserId,
    /// What the account might do when the token was made.
    pub role: Role,
    /// The account's address, for services that show it.
    pub email: Option<String>,
    /// The session that ends when its user signs out.
    pub session: Uuid,
}

impl Access {
    /// On whose behalf a request with this token runs.
    pub fn actor(&self) -> Actor {
        Actor::User { id: self.user, role: self.role }
    }
}

/// A token that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// What it says.
    pub access: Access,
    /// The token's own id.
    pub id: Uuid,
    /// When it was made.
    pub issued: Timestamp,
    /// When it stops being good.
    pub expires: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    typ: String,
    sub: UserId,
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    sid: Uuid,
    jti: Uuid,
    /// Whole seconds since 1970, as everywhere in JWT.
    iat: i64,
    exp: i64,
}

/// Makes tokens, with the newest key.
#[derive(Clone, Debug)]
pub struct Signer {
    jwt: Jwt,
    lifetime: Duration,
}

impl Signer {
    /// Signs with `key`, for `lifetime`.
    pub fn new(key: Key, lifetime: Duration) -> Self {
        Self { jwt: Jwt::new(key), lifetime }
    }

    /// A token for `access`. `id` makes it unlike any other.
    pub fn sign(&self, access: &Access, id: Uuid, now: Timestamp) -> String {
        self.jwt.sign(&Claims {
            typ: TYP.to_owned(),
            sub: access.user,
            role: access.role,
            email: access.email.clone(),
            sid: access.session,
            jti: id,
            iat: seconds(now),
            exp: seconds(now.after(self.lifetime)),
        })
    }
}

/// Reads tokens. Knows the newest key and those before it whose tokens may still be around.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Vec<Jwt>,
}

impl Verifier {
    /// Accepts tokens of any of `keys`.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self { keys: keys.into_iter().map(Jwt::new).collect() }
    }

    /// What the token says, if it is one of ours and good at `now`. Only a genuine token can be expired; anything else is invalid.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, Refusal> {
        let claims: Claims = jwt::verify(&self.keys, token)?;
        if claims.typ != TYP {
            return Err(Refusal::Invalid);
        }
        jwt::within(claims.iat, claims.exp, now)?;
        let access = Access { user: claims.sub, role: claims.role, email: claims.email, session: claims.sid };
        Ok(Verified { access, id: claims.jti, issued: instant(claims.iat), expires: instant(claims.exp) })
    }
}

#[cfg(test)]
mod tests;
