//! JSON Web Tokens in their compact form, HS256 only (RFC 7515, RFC 7519).
//!
//! A key has exactly one header, which is compared as text and never parsed: a token that says `none`, another algorithm, another
//! key, or carries `jwk` or `jku`, simply has a header no key has.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use urr_kernel::Timestamp;

use crate::{Key, Refusal};

/// Longer tokens are not looked at. Ours have about 400 bytes.
const MAX_LEN: usize = 4_096;

/// How far the clock of the machine that signed may be ahead of ours.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_secs(5);

const MICROS: i64 = 1_000_000;

/// Whole seconds since 1970, as everywhere in JWT.
pub(crate) fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(MICROS)
}

/// The instant that `seconds` names.
pub(crate) fn instant(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds.saturating_mul(MICROS))
}

/// Whether a genuine token is good at `now`. One that was made in the future, or was never good, is none of ours.
pub(crate) fn within(iat: i64, exp: i64, now: Timestamp) -> Result<(), Refusal> {
    if iat > seconds(now.after(CLOCK_SKEW)) || exp <= iat {
        return Err(Refusal::Invalid);
    }
    if exp <= seconds(now) { Err(Refusal::Expired) } else { Ok(()) }
}

/// A key together with the header its tokens have.
#[derive(Clone, Debug)]
pub(crate) struct Jwt {
    key: Key,
    header: String,
}

impl Jwt {
    pub(crate) fn new(key: Key) -> Self {
        let header = format!(r#"{{"alg":"HS256","kid":"{}","typ":"JWT"}}"#, key.id());
        Self { header: URL_SAFE_NO_PAD.encode(header), key }
    }

    pub(crate) fn sign(&self, claims: &impl Serialize) -> String {
        let claims = serde_json::to_vec(claims).expect("claims are plain data and always serialise");
        self.sign_bytes(&claims)
    }

    pub(crate) fn sign_bytes(&self, claims: &[u8]) -> String {
        let mut token = self.header.clone();
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.key.sign(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }
}

/// The claims of a token that one of the keys signed. Says nothing about whether they are still good.
pub(crate) fn verify<C: DeserializeOwned>(keys: &[Jwt], token: &str) -> Result<C, Refusal> {
    if token.len() > MAX_LEN {
        return Err(Refusal::Invalid);
    }
    let (message, signature) = token.rsplit_once('.').ok_or(Refusal::Invalid)?;
    let (header, claims) = message.split_once('.').ok_or(Refusal::Invalid)?;
    let jwt = keys.iter().find(|jwt| jwt.header == header).ok_or(Refusal::Invalid)?;
    // The decoder refuses padding and stray bits, so a token has one spelling.
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refusal::Invalid)?;
    if !jwt.key.verifies(message.as_bytes(), &signature) {
        return Err(Refusal::Invalid);
    }
    let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| Refusal::Invalid)?;
    serde_json::from_slice(&claims).map_err(|_| Refusal::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    #[test]
    fn the_header_is_the_one_every_jwt_library_expects() {
        let jwt = Jwt::new(Secret::new("correct horse battery staple, twice").unwrap().key("access"));
        let header = URL_SAFE_NO_PAD.decode(&jwt.header).unwrap();
        let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
        assert_eq!(header, serde_json::json!({"alg": "HS256", "kid": jwt.key.id(), "typ": "JWT"}));
    }
}
