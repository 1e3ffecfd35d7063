//! The keys that encrypt and index personal data.

use std::{collections::BTreeMap, fmt};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Maximum length of a key id, which is part of every encrypted value.
const MAX_ID_LEN: usize = 32;

/// Domain separation of the index key from other keys derived from the same secret.
const INDEX_PURPOSE: &[u8] = b"urr-auth blind index v1";

/// How personal data is stored.
#[derive(Clone, Debug)]
pub struct Pii {
    /// Key of the blind index. It must not change while there are accounts.
    pub index: IndexKey,
    /// Encrypts addresses, names and phone numbers. `None` stores them in plain text.
    pub keys: Option<PiiKeys>,
    /// Whether plain values from before there were keys are accepted, and then encrypted. Otherwise
    /// a plain value is refused, because it bypassed the keys.
    pub takes_plain: bool,
}

/// The key of the blind index. Never printed.
#[derive(Clone)]
pub struct IndexKey(pub(super) [u8; 32]);

impl IndexKey {
    /// Creates a configured key.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Derives a key from an installation secret that never changes.
    pub fn derive(secret: &[u8]) -> Self {
        let mac: Hmac<Sha256> = Hmac::new_from_slice(secret).expect("HMAC takes a key of any length");
        Self(mac.chain_update(INDEX_PURPOSE).finalize().into_bytes().into())
    }
}

impl fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IndexKey(…)")
    }
}

/// The encryption keys: the current one, and former ones that are still in use. Never printed.
#[derive(Clone)]
pub struct PiiKeys {
    pub(super) current: String,
    pub(super) keys: BTreeMap<String, [u8; 32]>,
}

/// Why a set of keys is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKeys {
    /// The current key's id is not among the keys.
    #[error("the current key {0:?} is not one of the keys")]
    NoCurrent(String),
    /// An id with invalid characters or length.
    #[error("invalid key id {0:?}: use 1 to {MAX_ID_LEN} letters, digits, `-` or `_`")]
    BadId(String),
}

impl PiiKeys {
    /// Encrypts with the key `current` and decrypts with all of them.
    pub fn new(current: String, keys: BTreeMap<String, [u8; 32]>) -> Result<Self, BadKeys> {
        let good = |id: &str| {
            (1..=MAX_ID_LEN).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if let Some(bad) = keys.keys().find(|id| !good(id)) {
            return Err(BadKeys::BadId(bad.clone()));
        }
        if !keys.contains_key(&current) {
            return Err(BadKeys::NoCurrent(current));
        }
        Ok(Self { current, keys })
    }
}

impl fmt::Debug for PiiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PiiKeys").field("current", &self.current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_need_good_ids_and_a_current_one() {
        let keys =
            |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), [1; 32])).collect::<BTreeMap<_, _>>();
        assert!(PiiKeys::new("b".to_owned(), keys(&["a", "b"])).is_ok());
        let missing = PiiKeys::new("c".to_owned(), keys(&["a", "b"]));
        assert_eq!(missing.unwrap_err(), BadKeys::NoCurrent("c".to_owned()));
        for bad in ["", "2026/01", "가", &"a".repeat(33)] {
            let refused = PiiKeys::new(bad.to_owned(), keys(&[bad]));
            assert_eq!(refused.unwrap_err(), BadKeys::BadId(bad.to_owned()));
        }
    }

    #[test]
    fn keys_are_not_printed() {
        let keys = PiiKeys::new("a".to_owned(), [("a".to_owned(), [173; 32])].into()).unwrap();
        let pii = Pii { index: IndexKey::new([173; 32]), keys: Some(keys), takes_plain: false };
        assert!(!format!("{pii:?}").contains("173"), "{pii:?}");
    }
}
