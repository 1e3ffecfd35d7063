//! Personal data at rest.
//!
//! Addresses, names and phone numbers are encrypted before they are stored: with AES-256-GCM if
//! keys are configured, as plain text otherwise, through the same code. An encrypted value names
//! its key, so former keys remain readable while a reconciler re-encrypts everything with the
//! current one. Encrypted values cannot be searched, so an address is looked up by a keyed hash,
//! the blind index, which has its own key that never changes.

pub(crate) mod keys;
pub(crate) mod reseal;
pub(crate) mod store;

use std::collections::BTreeMap;

use aes_gcm::{
    Aes256Gcm, KeyInit as _,
    aead::{Aead as _, Payload},
};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use urr_kernel::Ids;
use uuid::Uuid;

pub use keys::{BadKeys, IndexKey, Pii, PiiKeys};
pub use reseal::WrongKeys;

use crate::Failure;

/// First byte of an unencrypted value.
const PLAIN: u8 = 0;
/// First byte of a value encrypted with AES-256-GCM. The key id, the nonce and the ciphertext
/// follow.
const AES_256_GCM: u8 = 1;

/// Length of a nonce in bytes. Nonces are random: below 2^32 values per key the collision
/// probability is below 2^-32.
const NONCE_LEN: usize = 12;

/// `pii_key` of a row written without a configured key: its values are plain text, and its secrets
/// are encrypted with a derived key.
const NO_KEY: &str = "";

/// Where a value is stored. It is authenticated with the value, so a value copied to another row or
/// column does not decrypt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellRef {
    /// Table and column, such as `accounts.email`.
    pub(crate) column: &'static str,
    /// The row.
    pub(crate) row: Uuid,
}

impl CellRef {
    fn covered(self) -> Vec<u8> {
        let mut covered = self.column.as_bytes().to_vec();
        covered.push(b'/');
        covered.extend_from_slice(self.row.as_bytes());
        covered
    }
}

/// Why a value cannot be decrypted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The key is no longer configured.
    #[error("{column} is encrypted with the key {key:?}, which is not configured")]
    NoKey {
        /// Table and column.
        column: &'static str,
        /// Id of the key.
        key: String,
    },
    /// The value is not encrypted although there are keys.
    #[error("{column} is not encrypted; if it was written before there were keys, set auth.pii_seal_plain")]
    Plain {
        /// Table and column.
        column: &'static str,
    },
    /// The value was modified or is damaged.
    #[error("{column} was modified or is damaged")]
    Changed {
        /// Table and column.
        column: &'static str,
    },
}

impl From<Unreadable> for Failure {
    fn from(error: Unreadable) -> Self {
        Self::internal(error)
    }
}

/// Encrypts, decrypts and indexes personal data.
pub(crate) struct Vault {
    current: Option<String>,
    takes_plain: bool,
    ciphers: BTreeMap<String, Aes256Gcm>,
    index: Hmac<Sha256>,
}

impl Vault {
    pub(crate) fn new(pii: Pii) -> Self {
        let index = Hmac::new_from_slice(&pii.index.0).expect("HMAC takes a key of any length");
        let takes_plain = pii.keys.is_none() || pii.takes_plain;
        let (current, keys) = pii.keys.map_or_else(Default::default, |keys| (Some(keys.current), keys.keys));
        let mut ciphers: BTreeMap<String, Aes256Gcm> =
            keys.into_iter().map(|(id, key)| (id, Aes256Gcm::new(&key.into()))).collect();
        let own: [u8; 32] = index.clone().chain_update("secrets at rest").finalize().into_bytes().into();
        ciphers.insert(NO_KEY.to_owned(), Aes256Gcm::new(&own.into()));
        Self { current, takes_plain, ciphers, index }
    }

    /// Id of the key for new values, stored in `pii_key` of their row.
    pub(crate) fn key(&self) -> &str {
        self.current.as_deref().unwrap_or(NO_KEY)
    }

    /// Whether values with this key id can be decrypted.
    pub(crate) fn knows(&self, key: &str) -> bool {
        if key == NO_KEY { self.takes_plain } else { self.ciphers.contains_key(key) }
    }

    /// Encrypts a text for its cell.
    pub(crate) fn seal(&self, ids: &Ids, cell: CellRef, text: &str) -> Vec<u8> {
        if self.current.is_none() {
            return [&[PLAIN], text.as_bytes()].concat();
        }
        self.seal_secret(ids, cell, text)
    }

    /// Encrypts a secret that must not be readable from the database alone: without a configured
    /// key, with one derived from the index key.
    pub(crate) fn seal_secret(&self, ids: &Ids, cell: CellRef, text: &str) -> Vec<u8> {
        let key = self.key();
        let nonce: [u8; NONCE_LEN] = ids.bytes();
        let payload = Payload { msg: text.as_bytes(), aad: &cell.covered() };
        let sealed = self.ciphers[key].encrypt(&nonce.into(), payload);
        let sealed = sealed.expect("a few hundred bytes are within the limit of AES-GCM");
        let id_len = u8::try_from(key.len()).expect("key ids have at most 32 bytes");
        [&[AES_256_GCM, id_len], key.as_bytes(), &nonce, &sealed].concat()
    }

    /// Decrypts what [`Vault::seal`] encrypted for the same cell.
    pub(crate) fn open(&self, cell: CellRef, sealed: &[u8]) -> Result<String, Unreadable> {
        let changed = || Unreadable::Changed { column: cell.column };
        let plain = match sealed.split_first() {
            Some((&PLAIN, plain)) if self.takes_plain => plain.to_vec(),
            Some((&PLAIN, _)) => return Err(Unreadable::Plain { column: cell.column }),
            Some((&AES_256_GCM, rest)) => {
                let (&id_len, rest) = rest.split_first().ok_or_else(changed)?;
                let (id, rest) = rest.split_at_checked(usize::from(id_len)).ok_or_else(changed)?;
                let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(changed)?;
                let id = std::str::from_utf8(id).map_err(|_| changed())?;
                let cipher = self
                    .ciphers
                    .get(id)
                    .ok_or_else(|| Unreadable::NoKey { column: cell.column, key: id.to_owned() })?;
                let payload = Payload { msg: sealed, aad: &cell.covered() };
                cipher.decrypt(&(*nonce).into(), payload).map_err(|_| changed())?
            }
            _ => return Err(changed()),
        };
        String::from_utf8(plain).map_err(|_| changed())
    }

    /// The blind index of a normalised text for one purpose: equal texts have equal indexes, and
    /// nothing else is revealed.
    pub(crate) fn index(&self, purpose: &str, text: &str) -> Vec<u8> {
        let mac = self.index.clone().chain_update(purpose).chain_update([0]).chain_update(text);
        mac.finalize().into_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use urr_testkit::fixed;

    use super::*;

    const ROW: Uuid = Uuid::from_u128(7);
    const EMAIL: CellRef = CellRef { column: "accounts.email", row: ROW };

    fn vault(keys: &[&str]) -> Vault {
        let index = IndexKey::derive(b"the installation's secret, as it is");
        let current = keys.last().map(|id| (*id).to_owned());
        let keys = keys.iter().map(|id| ((*id).to_owned(), [id.as_bytes()[0]; 32])).collect();
        Vault::new(Pii {
            index,
            keys: current.map(|current| PiiKeys::new(current, keys).unwrap()),
            takes_plain: false,
        })
    }

    #[test]
    fn encryption_round_trips_and_hides_the_text() {
        let (_, ids) = fixed();
        for keys in [&[][..], &["a"], &["a", "b"]] {
            let vault = vault(keys);
            let sealed = vault.seal(&ids, EMAIL, "minji@example.com");
            assert_eq!(vault.open(EMAIL, &sealed).unwrap(), "minji@example.com");
            let hidden = !sealed.windows(5).any(|part| part == b"minji");
            assert_eq!(hidden, !keys.is_empty());
            assert_eq!(vault.key(), keys.last().copied().unwrap_or(""));
        }
    }

    #[test]
    fn encryption_is_randomised() {
        let (_, ids) = fixed();
        let vault = vault(&["a"]);
        assert_ne!(vault.seal(&ids, EMAIL, "x"), vault.seal(&ids, EMAIL, "x"));
    }

    #[test]
    fn a_value_moved_to_another_row_or_column_does_not_decrypt() {
        let (_, ids) = fixed();
        let vault = vault(&["a"]);
        let sealed = vault.seal(&ids, EMAIL, "minji@example.com");
        let elsewhere =
            [CellRef { row: Uuid::from_u128(8), ..EMAIL }, CellRef { column: "accounts.name", ..EMAIL }];
        for cell in elsewhere {
            assert!(matches!(vault.open(cell, &sealed), Err(Unreadable::Changed { .. })));
        }
    }

    #[test]
    fn any_modified_byte_fails_decryption() {
        let (_, ids) = fixed();
        let vault = vault(&["a"]);
        let sealed = vault.seal(&ids, EMAIL, "minji@example.com");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 0x40;
            assert!(vault.open(EMAIL, &changed).is_err(), "byte {at}");
            assert!(vault.open(EMAIL, &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn former_keys_decrypt_and_a_missing_key_is_named() {
        let (_, ids) = fixed();
        let (old, both, new) = (vault(&["a"]), vault(&["a", "b"]), vault(&["b"]));
        let sealed = old.seal(&ids, EMAIL, "x");
        assert_eq!(both.open(EMAIL, &sealed).unwrap(), "x");
        let error = new.open(EMAIL, &sealed).unwrap_err();
        assert!(error.to_string().contains("\"a\""), "{error}");
        assert!(both.knows("a") && !both.knows("") && !new.knows("a"));
    }

    #[test]
    fn plain_values_are_readable_without_keys_and_during_migration() {
        let (_, ids) = fixed();
        let plain = vault(&[]).seal(&ids, EMAIL, "minji@example.com");
        assert_eq!(vault(&[]).open(EMAIL, &plain).unwrap(), "minji@example.com");
        let refused = vault(&["a"]).open(EMAIL, &plain).unwrap_err();
        assert!(refused.to_string().contains("auth.pii_seal_plain"), "{refused}");
        let moving = Vault { takes_plain: true, ..vault(&["a"]) };
        assert_eq!(moving.open(EMAIL, &plain).unwrap(), "minji@example.com");
        assert!(moving.knows("") && moving.key() == "a");
    }

    #[test]
    fn the_blind_index_separates_purposes_and_is_independent_of_encryption() {
        let (plain, sealed) = (vault(&[]), vault(&["a"]));
        assert_eq!(plain.index("email", "x@y.kr"), sealed.index("email", "x@y.kr"));
        assert_ne!(plain.index("email", "x@y.kr"), plain.index("email", "z@y.kr"));
        assert_ne!(plain.index("email", "x@y.kr"), plain.index("login", "x@y.kr"));
    }
}
