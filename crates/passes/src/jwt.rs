//! JSON Web Tokens in compact form, HS256 only (RFC 7515, RFC 7519).
//!
//! Each key has exactly one header, which is compared as text and never parsed. A token with
//! `none`, another algorithm, another key, `jwk` or `jku` matches no key's header and is rejected.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use urr_kernel::Timestamp;

use crate::{Key, Refusal};

/// Longer tokens are rejected unread. Ours have about 400 bytes.
const MAX_LEN: usize = 4_096;

/// How far the signer's clock may be ahead of ours.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_secs(5);

const MICROS: i64 = 1_000_000;

/// Seconds since 1970, as in all JWT times.
pub(crate) fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(MICROS)
}

/// Seconds since 1970 as a timestamp.
pub(crate) fn instant(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds.saturating_mul(MICROS))
}

/// Checks the validity period at `now`. A token issued in the future, or one that expires before it
/// was issued, is invalid.
pub(crate) fn within(iat: i64, exp: i64, now: Timestamp) -> Result<(), Refusal> {
    if iat > seconds(now.after(CLOCK_SKEW)) || exp <= iat {
        return Err(Refusal::Invalid);
    }
    if exp <= seconds(now) { Err(Refusal::Expired) } else { Ok(()) }
}

/// A key together with the header of its tokens.
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
        let claims = serde_json::to_vec(claims).expect("claims always serialise");
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

/// Returns the claims if one of the keys signed the token. Does not check the validity period.
pub(crate) fn verify<C: DeserializeOwned>(keys: &[Jwt], token: &str) -> Result<C, Refusal> {
    if token.len() > MAX_LEN {
        return Err(Refusal::Invalid);
    }
    let (message, signature) = token.rsplit_once('.').ok_or(Refusal::Invalid)?;
    let (header, claims) = message.split_once('.').ok_or(Refusal::Invalid)?;
    let jwt = keys.iter().find(|jwt| jwt.header == header).ok_or(Refusal::Invalid)?;
    // The decoder rejects padding and stray bits, so every token has exactly one encoding.
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
    fn header_is_standard_jwt() {
        let jwt = Jwt::new(Secret::new("correct horse battery staple, twice").unwrap().key("access"));
        let header = URL_SAFE_NO_PAD.decode(&jwt.header).unwrap();
        let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
        assert_eq!(header, serde_json::json!({"alg": "HS256", "kid": jwt.key.id(), "typ": "JWT"}));
    }
}
