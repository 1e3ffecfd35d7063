//! Shared test of a token parser, used by every fuzz target.
//!
//! Random input almost never has a valid signature, so each parser gets four kinds of input:
//! arbitrary text, an edited genuine token, arbitrary claims with a valid signature, and edited
//! claims with a valid signature. It must not panic, must not accept an unsigned token, and what it
//! accepts must round-trip.

use std::fmt::Debug;

use urr_kernel::Timestamp;
use urr_passes::Secret;

/// The current time of every test.
pub const NOW: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

/// The secret from which keys are derived.
pub fn secret() -> Secret {
    Secret::new("a secret for fuzzing, of more than 32 bytes").expect("longer than 32 bytes")
}

/// A parser, a token it accepts, and a way to sign other claims.
pub struct Parser<'p, T> {
    /// Parses a token.
    pub read: &'p dyn Fn(&str) -> Option<T>,
    /// Signs what was parsed.
    pub write: &'p dyn Fn(&T) -> String,
    /// A genuine token.
    pub genuine: &'p str,
    /// The signed bytes of `genuine`.
    pub inside: &'p [u8],
    /// Signs other bytes with the right key.
    pub sign: &'p dyn Fn(&[u8]) -> String,
}

impl<T: Debug + PartialEq> Parser<'_, T> {
    /// Tests one input.
    pub fn try_with(&self, data: &[u8]) {
        let Some((way, data)) = data.split_first() else { return };
        match way % 4 {
            0 => self.refuses(&String::from_utf8_lossy(data)),
            1 => self.refuses(&String::from_utf8_lossy(&edited(self.genuine.as_bytes(), data))),
            2 => self.reads_back(&(self.sign)(data)),
            _ => self.reads_back(&(self.sign)(&edited(self.inside, data))),
        }
    }

    fn refuses(&self, text: &str) {
        let read = (self.read)(text);
        assert!(read.is_none() || text == self.genuine, "accepted the unsigned token {text:?} as {read:?}");
    }

    fn reads_back(&self, token: &str) {
        if let Some(said) = (self.read)(token) {
            assert_eq!((self.read)(&(self.write)(&said)).as_ref(), Some(&said), "{token}");
        }
    }
}

/// `base` with a few bytes replaced, put in, taken out or cut off, as `edits` says: three bytes
/// each.
fn edited(base: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for edit in edits.chunks_exact(3).take(16) {
        let (place, value) = (usize::from(edit[1]) % (bytes.len() + 1), edit[2]);
        match edit[0] % 4 {
            0 => bytes.insert(place, value),
            1 => bytes.truncate(place),
            _ if place == bytes.len() => {}
            2 => drop(bytes.remove(place)),
            _ => bytes[place] = value,
        }
    }
    bytes
}

/// The signed claims of a JWT.
pub fn claims(token: &str) -> Vec<u8> {
    urr_passes::fuzzing::claims(token).expect("a genuine token has claims")
}
