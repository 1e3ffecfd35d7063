//! The visitor mark: a signed cookie that identifies a browser before sign-in. It is signed so that
//! a client cannot invent browsers to probe their positions. A second request from the same browser
//! gets the same position.

use urr_kernel::{EventId, VisitorId};

use crate::{
    Key, Refusal, Secret,
    compact::{Compact, Fields},
};

const PURPOSE: &str = "visitor";
const KIND: u8 = b'V';
const LENGTH: usize = 16;

/// Prefix of the cookies of all marks. A cookie of exactly this name is read too: it predates one
/// cookie per event.
pub const COOKIE: &str = "urr-visitor";

/// The cookie with the mark for an event. One per event, so that two tabs opening two events at the
/// same time do not overwrite each other's mark.
pub fn cookie(event: EventId) -> String {
    format!("{COOKIE}-{}", event.as_uuid().simple())
}

/// The key for visitor marks.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// Signs and verifies marks: the first key signs, all keys verify.
#[derive(Clone, Debug)]
pub struct Marks(Compact);

impl Marks {
    /// Signs with the first of `keys` and verifies with all of them.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(Compact::new(KIND, keys))
    }

    /// Signs a visitor's mark. It does not expire: it grants nothing, it only tells browsers apart.
    pub fn sign(&self, visitor: VisitorId) -> String {
        self.0.sign(&Fields::default().uuid(visitor.as_uuid()))
    }

    /// Returns the visitor if the mark is genuine.
    pub fn verify(&self, mark: &str) -> Result<VisitorId, Refusal> {
        Ok(VisitorId::from_uuid(self.0.verify(mark, LENGTH)?.read().uuid()?))
    }
}
