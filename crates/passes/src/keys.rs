//! Keys. Each kind of token has its own key, derived from a secret, so that no token is accepted as
//! another kind.

use std::fmt::{self, Write as _};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The length of the hash: a shorter secret would be the weakest part.
const MIN_SECRET_BYTES: usize = 32;

/// A random secret of 32 bytes has about 30 distinct bytes; `aaaa…` and `12341234…` have few.
const MIN_DIFFERENT_BYTES: usize = 8;

/// Separates our derived keys from other uses of the same secret.
const SALT: &[u8] = b"urr-passes-v1";

/// Bytes of the key id: enough to distinguish a handful of keys.
const ID_BYTES: usize = 8;

/// A secret too weak to derive keys from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeakSecret {
    /// Short enough for a brute-force search.
    #[error("a secret needs at least {MIN_SECRET_BYTES} bytes")]
    TooShort,
    /// Too repetitive.
    #[error("a secret needs at least {MIN_DIFFERENT_BYTES} different bytes")]
    TooSimple,
}

/// The secret that keys are derived from. Never printed.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Accepts a configured secret unless it is too short or too repetitive.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, WeakSecret> {
        let bytes = bytes.into();
        if bytes.len() < MIN_SECRET_BYTES {
            return Err(WeakSecret::TooShort);
        }
        let mut different = [false; 256];
        for byte in &bytes {
            different[usize::from(*byte)] = true;
        }
        if different.iter().filter(|seen| **seen).count() < MIN_DIFFERENT_BYTES {
            return Err(WeakSecret::TooSimple);
        }
        Ok(Self(bytes))
    }

    /// The key for one purpose: HKDF-SHA-256 with the purpose as info. One key reveals nothing
    /// about another.
    pub fn key(&self, purpose: &str) -> Key {
        Key::new(&hkdf(SALT, &self.0, purpose.as_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A key for one kind of token. Its id is part of each token, so that old tokens verify while a new
/// key signs.
#[derive(Clone)]
pub struct Key {
    id: String,
    mac: Hmac<Sha256>,
}

impl Key {
    fn new(bytes: &[u8; 32]) -> Self {
        let mac = mac(bytes);
        let mut id = String::with_capacity(2 * ID_BYTES);
        // Derived from the key, so that every process computes the same id without coordination.
        for byte in &mac.clone().chain_update(b"key id").finalize().into_bytes()[..ID_BYTES] {
            let _infallible = write!(id, "{byte:02x}");
        }
        Self { id, mac }
    }

    /// The public id of the key.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 32] {
        self.mac.clone().chain_update(message).finalize().into_bytes().into()
    }

    /// Whether the signature begins with `tag`. Constant-time comparison.
    pub(crate) fn verifies_short(&self, message: &[u8], tag: &[u8; 16]) -> bool {
        self.mac.clone().chain_update(message).verify_truncated_left(tag).is_ok()
    }

    /// Whether the signature is valid. Constant-time comparison.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.mac.clone().chain_update(message).verify_slice(signature).is_ok()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

/// RFC 5869 for exactly one block of output, which is the size of a key.
fn hkdf(salt: &[u8], secret: &[u8], info: &[u8]) -> [u8; 32] {
    let extracted = mac(salt).chain_update(secret).finalize().into_bytes();
    mac(&extracted).chain_update(info).chain_update([1]).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }

    #[test]
    fn hkdf_matches_rfc_5869_test_case_1() {
        let salt: Vec<u8> = (0x00..=0x0c).collect();
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf";
        assert_eq!(hex(&hkdf(&salt, &[0x0b; 22], &info)), expected);
    }

    #[test]
    fn weak_secrets_are_rejected() {
        assert_eq!(Secret::new("short").unwrap_err(), WeakSecret::TooShort);
        assert_eq!(Secret::new("a".repeat(64)).unwrap_err(), WeakSecret::TooSimple);
        assert_eq!(Secret::new("1234".repeat(16)).unwrap_err(), WeakSecret::TooSimple);
        assert!(Secret::new("correct horse battery staple, twice").is_ok());
    }

    #[test]
    fn neither_secrets_nor_keys_are_printed() {
        let secret = Secret::new("correct horse battery staple, twice").unwrap();
        let printed = format!("{secret:?} {:?}", secret.key("access"));
        assert!(!printed.contains("horse") && printed.contains("id"), "{printed}");
    }

    #[test]
    fn keys_differ_by_purpose_and_by_secret() {
        let secret = Secret::new("correct horse battery staple, twice").unwrap();
        let other = Secret::new("correct horse battery staple, thrice").unwrap();
        let ids =
            [secret.key("access"), secret.key("entry"), other.key("access")].map(|key| key.id().to_owned());
        assert!(ids[0] != ids[1] && ids[0] != ids[2]);
        assert_eq!(secret.key("access").id(), ids[0], "key ids are stable across restarts");
    }
}
