//! The visitor mark: which browser this is, before anybody signs in. A signed cookie, so that nobody makes up a thousand browsers'
//! names to look at their places, and asking twice from one browser gives one place.

use urr_kernel::{EventId, VisitorId};

use crate::{
    Key, Refusal, Secret,
    compact::{Compact, Fields},
};

const PURPOSE: &str = "visitor";
const KIND: u8 = b'V';
const LENGTH: usize = 16;

/// What the cookies of all marks begin with. One of this very name is read too: it was given before each event had its own.
pub const COOKIE: &str = "urr-visitor";

/// The cookie with the mark for an event. Each has its own: of two tabs that first come to two events at once, neither takes away from
/// the other who it is.
pub fn cookie(event: EventId) -> String {
    format!("{COOKIE}-{}", event.as_uuid().simple())
}

/// The key for visitor marks.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// Makes and reads marks. Signs with the first key, reads with all.
#[derive(Clone, Debug)]
pub struct Marks(Compact);

impl Marks {
    /// Marks of any of `keys`, made by the first.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(Compact::new(KIND, keys))
    }

    /// The mark of `visitor`. It does not expire: it opens nothing, it only tells browsers apart.
    pub fn sign(&self, visitor: VisitorId) -> String {
        self.0.sign(&Fields::default().uuid(visitor.as_uuid()))
    }

    /// Whose mark this is.
    pub fn verify(&self, mark: &str) -> Result<VisitorId, Refusal> {
        Ok(VisitorId::from_uuid(self.0.verify(mark, LENGTH)?.read().uuid()?))
    }
}
