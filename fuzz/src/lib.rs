//! What every target asks of a parser of tokens.
//!
//! A signature stops nearly everything at the door, so each parser is asked in three ways: with any text at all, with a genuine token that
//! was changed, and with changed claims that were signed again with the right key. It must never panic, accept nothing that was not
//! signed, and read back what it accepts.

use std::fmt::Debug;

use urr_kernel::Timestamp;
use urr_passes::Secret;

/// When all of this happens.
pub const NOW: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

/// What keys are made of.
pub fn secret() -> Secret {
    Secret::new("a secret for fuzzing, of more than 32 bytes").expect("it is long enough")
}

/// A parser, a token it accepts, and how to get past its signature.
pub struct Parser<'p, T> {
    /// Reads a token.
    pub read: &'p dyn Fn(&str) -> Option<T>,
    /// Makes a token of what was read.
    pub write: &'p dyn Fn(&T) -> String,
    /// A genuine token.
    pub genuine: &'p str,
    /// What stands behind its signature.
    pub inside: &'p [u8],
    /// Signs something else.
    pub sign: &'p dyn Fn(&[u8]) -> String,
}

impl<T: Debug + PartialEq> Parser<'_, T> {
    /// Tries one input.
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
        assert!(read.is_none() || text == self.genuine, "nobody signed {text:?}, and it says {read:?}");
    }

    fn reads_back(&self, token: &str) {
        if let Some(said) = (self.read)(token) {
            assert_eq!((self.read)(&(self.write)(&said)).as_ref(), Some(&said), "{token}");
        }
    }
}

/// `base` with a few bytes replaced, put in, taken out or cut off, as `edits` says: three bytes each.
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

/// The claims of a JWT, as they were signed.
pub fn claims(token: &str) -> Vec<u8> {
    urr_passes::fuzzing::claims(token).expect("a genuine token has claims")
}
