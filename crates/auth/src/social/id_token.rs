//! ID tokens (OpenID Connect Core 1.0, section 3.1.3.7), signed with RS256 only.
//!
//! A token names its algorithm and key, and neither is trusted: the algorithm is always RS256, and
//! the key must be one that the issuer publishes. So a token without a signature, or one that uses
//! a public key as an HMAC secret, cannot be verified.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use urr_kernel::Timestamp;

use super::rules::Claimed;

/// Maximum length. Google's tokens have about 1,200 bytes.
const MAX_LEN: usize = 8_192;

/// Tolerated difference between the issuer's clock and ours.
pub(super) const LEEWAY: Duration = Duration::from_secs(30);

/// A public RSA key of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RsaKey {
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

impl RsaKey {
    /// Parses a JWK. `None`: it is invalid.
    pub(super) fn new(modulus: &str, exponent: &str) -> Option<Self> {
        let number = |text: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let first = bytes.iter().position(|byte| *byte != 0)?;
            Some(bytes[first..].to_vec())
        };
        Some(Self { modulus: number(modulus)?, exponent: number(exponent)? })
    }

    /// Verifies a signature. Keys below 2,048 bits verify nothing.
    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = RsaPublicKeyComponents { n: &self.modulus, e: &self.exponent };
        key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
    }
}

/// Why a token is rejected. Logged, but not sent to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadToken {
    #[error("malformed token")]
    Malformed,
    #[error("not signed with RS256")]
    Algorithm,
    #[error("unknown key id")]
    UnknownKey,
    #[error("wrong signature")]
    Signature,
    #[error("wrong issuer")]
    Issuer,
    #[error("wrong audience")]
    Audience,
    #[error("expired")]
    Expired,
    #[error("not valid yet")]
    Early,
    #[error("wrong nonce")]
    Nonce,
}

/// The expected claims.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) client_id: &'e str,
    /// The nonce that we gave to the issuer. `None`: we gave none, and a token with a nonce belongs
    /// to another sign-in.
    pub(super) nonce: Option<&'e str>,
    pub(super) now: Timestamp,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
    /// Critical extensions. We support none.
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: i64,
    iat: i64,
    nbf: Option<i64>,
    nonce: Option<String>,
    email: Option<String>,
    #[serde(default)]
    email_verified: bool,
    name: Option<String>,
    picture: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    /// Whether the audience is us; with several audiences, `azp` must be us too.
    fn is(&self, client_id: &str, given_to: Option<&str>) -> bool {
        let given = given_to.is_none_or(|azp| azp == client_id);
        match self {
            Self::One(one) => one == client_id && given,
            Self::Many(many) if many.len() == 1 => many[0] == client_id && given,
            Self::Many(many) => many.iter().any(|one| one == client_id) && given_to == Some(client_id),
        }
    }
}

/// A parsed token, not yet verified.
pub(super) struct Token<'t> {
    /// The key id in its header.
    pub(super) key: String,
    message: &'t str,
    signature: Vec<u8>,
    claims: &'t str,
}

impl<'t> Token<'t> {
    pub(super) fn parse(token: &'t str) -> Result<Self, BadToken> {
        if token.len() > MAX_LEN {
            return Err(BadToken::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(BadToken::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(BadToken::Malformed)?;
        let Header { alg, kid, crit } = json(header)?;
        if alg != "RS256" || crit.is_some() {
            return Err(BadToken::Algorithm);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| BadToken::Malformed)?;
        Ok(Self { key: kid, message, signature, claims })
    }

    /// Digest of the signed part. The signature is excluded, because there may be several valid
    /// ones.
    pub(super) fn digest(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.message))
    }

    /// Verifies the token and returns the profile and the expiry.
    pub(super) fn verify(
        &self,
        key: &RsaKey,
        expected: &Expected<'_>,
    ) -> Result<(Claimed, Timestamp), BadToken> {
        if !key.verifies(self.message.as_bytes(), &self.signature) {
            return Err(BadToken::Signature);
        }
        let claims: Claims = json(self.claims)?;
        claims.check(expected)?;
        let Claims { sub, email, email_verified, name, picture, exp, .. } = claims;
        let claimed = Claimed { subject: sub, email, email_verified, name, picture };
        Ok((claimed, seconds(exp).after(LEEWAY)))
    }
}

impl Claims {
    fn check(&self, expected: &Expected<'_>) -> Result<(), BadToken> {
        // Google documents that some of its tokens omit the scheme.
        let bare = expected.issuer.strip_prefix("https://").filter(|bare| *bare == "accounts.google.com");
        if self.iss != expected.issuer && Some(self.iss.as_str()) != bare {
            return Err(BadToken::Issuer);
        }
        if !self.aud.is(expected.client_id, self.azp.as_deref()) {
            return Err(BadToken::Audience);
        }
        if seconds(self.exp) <= expected.now.before(LEEWAY) {
            return Err(BadToken::Expired);
        }
        if seconds(self.iat.max(self.nbf.unwrap_or(self.iat))) > expected.now.after(LEEWAY) {
            return Err(BadToken::Early);
        }
        if self.nonce.as_deref() != expected.nonce {
            return Err(BadToken::Nonce);
        }
        Ok(())
    }
}

fn seconds(since_1970: i64) -> Timestamp {
    Timestamp::from_micros(since_1970.saturating_mul(1_000_000))
}

fn json<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, BadToken> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| BadToken::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| BadToken::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_with_several_audiences_needs_our_azp() {
        let one = |text: &str| Audience::One(text.to_owned());
        let many = |texts: &[&str]| Audience::Many(texts.iter().map(|text| (*text).to_owned()).collect());
        assert!(one("us").is("us", None) && one("us").is("us", Some("us")));
        assert!(many(&["us"]).is("us", None) && many(&["us", "them"]).is("us", Some("us")));
        assert!(!one("them").is("us", None) && !one("us").is("us", Some("them")));
        assert!(!many(&["us", "them"]).is("us", None) && !many(&["us", "them"]).is("us", Some("them")));
        assert!(!many(&[]).is("us", Some("us")) && !many(&["them"]).is("us", Some("us")));
    }

    #[test]
    fn malformed_id_tokens_are_refused() {
        let long = format!("{}.e30.AA", "A".repeat(MAX_LEN));
        for bad in ["", ".", "..", "a.b.c", "e30.e30.AA", &long, "é.é.é"] {
            assert_eq!(Token::parse(bad).err(), Some(BadToken::Malformed), "{bad}");
        }
        let token = |header: &str| format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
        for header in [
            r#"{"alg":"none","kid":"a"}"#,
            r#"{"alg":"HS256","kid":"a"}"#,
            r#"{"alg":"rs256","kid":"a"}"#,
            r#"{"alg":"RS256","kid":"a","crit":["b64"]}"#,
        ] {
            assert_eq!(Token::parse(&token(header)).err(), Some(BadToken::Algorithm), "{header}");
        }
        assert!(Token::parse(&token(r#"{"alg":"RS256","kid":"a","typ":"JWT"}"#)).is_ok());
    }

    #[test]
    fn invalid_jwk_numbers_are_refused() {
        assert!(RsaKey::new("AQAB", "AQAB").is_some());
        assert_eq!(RsaKey::new("AAEAAQ", "AQAB").unwrap().modulus, [1, 0, 1], "leading zeros are stripped");
        for (n, e) in [("", "AQAB"), ("AQAB", ""), ("AAAA", "AQAB"), ("!", "AQAB"), ("AQAB", "AQAB=")] {
            assert_eq!(RsaKey::new(n, e), None, "{n} {e}");
        }
    }
}
