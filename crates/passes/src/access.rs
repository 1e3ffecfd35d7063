//! The access token: who is signed in. A JWT in the cookie `access_token` or as `Authorization:
//! Bearer`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Actor, Role, Timestamp, UserId};
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// Default lifetime of a token.
pub const LIFETIME: Duration = Duration::from_hours(1);

/// The purpose of the derived keys.
const PURPOSE: &str = "access";

/// The `typ` claim. Tokens of another kind are rejected even if the same key is configured for
/// both.
const TYP: &str = "access";

/// The key for access tokens.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// The contents of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The account.
    pub user: UserId,
    /// The account's role when the token was issued.
    pub role: Role,
    /// The account's e-mail address, for services that show it.
    pub email: Option<String>,
    /// The session, which ends when the user signs out.
    pub session: Uuid,
}

impl Access {
    /// The actor of a request with this token.
    pub fn actor(&self) -> Actor {
        Actor::User { id: self.user, role: self.role }
    }
}

/// A verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The contents.
    pub access: Access,
    /// The token's id.
    pub id: Uuid,
    /// When it was issued.
    pub issued: Timestamp,
    /// Expiry.
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
    /// Seconds since 1970, as in all JWT times.
    iat: i64,
    exp: i64,
}

/// Signs tokens with the newest key.
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

    /// Signs a token. `id` makes it unique.
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

/// Verifies tokens with the newest key and with earlier keys whose tokens may still be in use.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Vec<Jwt>,
}

impl Verifier {
    /// Accepts tokens signed with any of `keys`.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self { keys: keys.into_iter().map(Jwt::new).collect() }
    }

    /// Returns the contents if the token is genuine and valid at `now`. Only a genuine token is
    /// `Expired`; all others are `Invalid`.
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
