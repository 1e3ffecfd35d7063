//! The keys that personal data is sealed and indexed with.

use std::{collections::BTreeMap, fmt};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The longest id of a key: it stands in every sealed value.
const MAX_ID_LEN: usize = 32;

/// Separates the index key from everything else that might be derived from the same secret.
const INDEX_PURPOSE: &[u8] = b"urr-auth blind index v1";

/// How personal data is kept.
#[derive(Clone, Debug)]
pub struct Pii {
    /// Finds accounts by their address. It must stay the same for as long as there are accounts.
    pub index: IndexKey,
    /// Seals addresses, names and phone numbers. `None` leaves them readable in the database.
    pub keys: Option<PiiKeys>,
    /// Whether what was written before there were keys is read, and then sealed. Otherwise a plain value is one that somebody put
    /// there past the keys.
    pub takes_plain: bool,
}

/// The key of the blind index. Never printed.
#[derive(Clone)]
pub struct IndexKey(pub(super) [u8; 32]);

impl IndexKey {
    /// A configured key.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// A key made from a secret of the installation that never changes.
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

/// The keys that seal: the current one, and those before it whose values are still around. Never printed.
#[derive(Clone)]
pub struct PiiKeys {
    pub(super) current: String,
    pub(super) keys: BTreeMap<String, [u8; 32]>,
}

/// Keys that make no sense together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKeys {
    /// The id of the current key is not among the keys.
    #[error("the current key {0:?} is not one of the keys")]
    NoCurrent(String),
    /// An id that cannot stand in a column.
    #[error("the id of a key has 1 to {MAX_ID_LEN} letters, digits, `-` or `_`, unlike {0:?}")]
    BadId(String),
}

impl PiiKeys {
    /// Seals with the key called `current` and opens with all of them.
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
