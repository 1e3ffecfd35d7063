//! Compact tokens of a fixed size, for cookies and URLs that clients send with every poll: a JWT
//! needs three times the bytes and ten times the work.
//!
//! `kind ‖ key id ‖ fields ‖ tag`, as base64url without padding. The tag is the first half of an
//! HMAC-SHA-256 over everything before it: 128 bits, which cannot be guessed during a sale.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use urr_kernel::{OrderKey, Timestamp};
use uuid::Uuid;

use crate::{Key, Refusal};

/// Bytes of the key id in a token: enough to distinguish a handful of keys.
const KEY_ID: usize = 4;
pub(crate) const TAG: usize = 16;
pub(crate) const HEAD: usize = 1 + KEY_ID;

/// The keys of one kind of token, newest first.
#[derive(Clone, Debug)]
pub(crate) struct Compact {
    kind: u8,
    keys: Vec<(Key, [u8; KEY_ID])>,
}

impl Compact {
    /// Tokens of this kind, signed with the first key.
    pub(crate) fn new(kind: u8, keys: impl IntoIterator<Item = Key>) -> Self {
        let named = |key: Key| {
            let mut id = [0; KEY_ID];
            id.copy_from_slice(&key.sign(b"compact key id")[..KEY_ID]);
            (key, id)
        };
        Self { kind, keys: keys.into_iter().map(named).collect() }
    }

    pub(crate) fn sign(&self, fields: &Fields) -> String {
        let (key, id) = self.keys.first().expect("signing needs at least one key");
        let mut bytes = Vec::with_capacity(HEAD + fields.0.len() + TAG);
        bytes.push(self.kind);
        bytes.extend_from_slice(id);
        bytes.extend_from_slice(&fields.0);
        let signature = key.sign(&bytes);
        bytes.extend_from_slice(&signature[..TAG]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the fields if one of the keys signed the token. Does not check the validity period.
    pub(crate) fn verify(&self, token: &str, length: usize) -> Result<Fields, Refusal> {
        let size = HEAD + length + TAG;
        // Check the length before decoding, so that a long text costs nothing.
        if token.len() != size.div_ceil(3) * 4 - (3 - size % 3) % 3 {
            return Err(Refusal::Invalid);
        }
        // The decoder rejects padding and stray bits, so every token has exactly one encoding.
        let mut bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| Refusal::Invalid)?;
        let (message, tag) = bytes.split_last_chunk::<TAG>().ok_or(Refusal::Invalid)?;
        let (kind, rest) = message.split_first().ok_or(Refusal::Invalid)?;
        let id = rest.first_chunk::<KEY_ID>().ok_or(Refusal::Invalid)?;
        let (key, _) = self.keys.iter().find(|(_, known)| known == id).ok_or(Refusal::Invalid)?;
        if *kind != self.kind || !key.verifies_short(message, tag) {
            return Err(Refusal::Invalid);
        }
        bytes.truncate(HEAD + length);
        bytes.drain(..HEAD);
        Ok(Fields(bytes))
    }
}

/// Checks the expiry of a token issued at `issued`. A token from the future is valid: it is
/// genuine, so a clock was set back.
pub(crate) fn within(issued: Timestamp, lifetime: Duration, now: Timestamp) -> Result<(), Refusal> {
    if issued.after(lifetime) <= now { Err(Refusal::Expired) } else { Ok(()) }
}

/// The fields of a token, big-endian, written and read in the same order.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<u8>);

impl Fields {
    #[cfg(feature = "fuzzing")]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    pub(crate) fn uuid(mut self, uuid: Uuid) -> Self {
        self.0.extend_from_slice(uuid.as_bytes());
        self
    }

    pub(crate) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub(crate) fn instant(self, at: Timestamp) -> Self {
        self.number(u64::try_from(at.as_micros()).unwrap_or(0))
    }

    pub(crate) fn read(&self) -> Reader<'_> {
        Reader(&self.0)
    }
}

/// Reads fields from the front.
#[derive(Debug)]
pub(crate) struct Reader<'f>(&'f [u8]);

impl Reader<'_> {
    pub(crate) fn uuid(&mut self) -> Result<Uuid, Refusal> {
        self.take().map(Uuid::from_bytes)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Refusal> {
        self.take().map(u64::from_be_bytes)
    }

    pub(crate) fn order(&mut self) -> Result<OrderKey, Refusal> {
        OrderKey::new(self.number()?).ok_or(Refusal::Invalid)
    }

    pub(crate) fn instant(&mut self) -> Result<Timestamp, Refusal> {
        i64::try_from(self.number()?).map(Timestamp::from_micros).map_err(|_| Refusal::Invalid)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Refusal::Invalid)?;
        self.0 = rest;
        Ok(*field)
    }
}
