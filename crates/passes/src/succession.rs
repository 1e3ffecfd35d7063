//! Refresh token rotation. A refresh token is random and carries no data. Its successor is derived
//! from it with a key, so that a repeated exchange returns the same token and a session has exactly
//! one chain of tokens.

use crate::{Key, Secret};

/// The purpose of the derived keys.
const PURPOSE: &str = "refresh succession";

/// Bytes of a refresh token.
pub const TOKEN_LEN: usize = 32;

/// The key that derives the next token.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// Derives the successor of a token. Without the key, a token reveals nothing about the next.
#[derive(Clone, Debug)]
pub struct Succession(Vec<Key>);

impl Succession {
    /// The first of `keys` derives new tokens; all of them find earlier ones.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let keys: Vec<Key> = keys.into_iter().collect();
        assert!(!keys.is_empty(), "deriving tokens needs at least one key");
        Self(keys)
    }

    /// The successor of `token`, with the newest key.
    pub fn next(&self, token: &[u8; TOKEN_LEN]) -> [u8; TOKEN_LEN] {
        self.0[0].sign(token)
    }

    /// The possible successors of `token`, one per key, newest first.
    pub fn candidates(&self, token: &[u8; TOKEN_LEN]) -> impl Iterator<Item = [u8; TOKEN_LEN]> {
        self.0.iter().map(|key| key.sign(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(format!("{text}, a secret of tests, long enough")).unwrap()
    }

    #[test]
    fn successor_is_deterministic_and_unique_per_token() {
        let [here, there] = [(); 2].map(|()| Succession::new([key(&secret("the"))]));
        let (first, second) = ([7; TOKEN_LEN], [8; TOKEN_LEN]);
        assert_eq!(here.next(&first), there.next(&first));
        assert_ne!(here.next(&first), here.next(&second));
        assert_ne!(here.next(&first), first);
        assert_ne!(here.next(&here.next(&first)), here.next(&first));
    }

    #[test]
    fn former_key_finds_its_successors() {
        let (old, new) = (key(&secret("old")), key(&secret("new")));
        let made = Succession::new([old.clone()]).next(&[7; TOKEN_LEN]);
        let both = Succession::new([new.clone(), old]);
        assert_ne!(both.next(&[7; TOKEN_LEN]), made);
        assert_eq!(both.candidates(&[7; TOKEN_LEN]).nth(1), Some(made));
        assert!(!Succession::new([new]).candidates(&[7; TOKEN_LEN]).any(|token| token == made));
    }

    #[test]
    fn key_of_another_purpose_derives_other_tokens() {
        let (ours, other) = (key(&secret("the")), crate::access::key(&secret("the")));
        assert_ne!(ours.sign(&[7; TOKEN_LEN]), other.sign(&[7; TOKEN_LEN]));
    }
}
