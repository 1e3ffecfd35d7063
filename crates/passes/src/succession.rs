//! Which refresh token follows which. A refresh token is random and says nothing; the one it is exchanged for is made from it with a
//! key of ours, so that whoever has to repeat the exchange gets the very same token, and a session has one chain of tokens and
//! never two.

use crate::{Key, Secret};

/// The purpose that the keys are derived for.
const PURPOSE: &str = "refresh succession";

/// Bytes of a refresh token.
pub const TOKEN_LEN: usize = 32;

/// The key that tokens are made from tokens with.
pub fn key(secret: &Secret) -> Key {
    secret.key(PURPOSE)
}

/// Knows what follows a token. Without the key, a token tells nothing about the next.
#[derive(Clone, Debug)]
pub struct Succession(Vec<Key>);

impl Succession {
    /// The first of `keys` makes new tokens, all of them find those that were made before.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let keys: Vec<Key> = keys.into_iter().collect();
        assert!(!keys.is_empty(), "tokens are made with a key");
        Self(keys)
    }

    /// What follows `token` when it is exchanged now.
    pub fn next(&self, token: &[u8; TOKEN_LEN]) -> [u8; TOKEN_LEN] {
        self.0[0].sign(token)
    }

    /// What may have followed `token`, by each key, the newest first.
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
    fn a_token_has_one_successor_everywhere_and_every_token_another() {
        let [here, there] = [(); 2].map(|()| Succession::new([key(&secret("the"))]));
        let (first, second) = ([7; TOKEN_LEN], [8; TOKEN_LEN]);
        assert_eq!(here.next(&first), there.next(&first));
        assert_ne!(here.next(&first), here.next(&second));
        assert_ne!(here.next(&first), first);
        assert_ne!(here.next(&here.next(&first)), here.next(&first));
    }

    #[test]
    fn a_former_key_finds_what_it_made() {
        let (old, new) = (key(&secret("old")), key(&secret("new")));
        let made = Succession::new([old.clone()]).next(&[7; TOKEN_LEN]);
        let both = Succession::new([new.clone(), old]);
        assert_ne!(both.next(&[7; TOKEN_LEN]), made);
        assert_eq!(both.candidates(&[7; TOKEN_LEN]).nth(1), Some(made));
        assert!(!Succession::new([new]).candidates(&[7; TOKEN_LEN]).any(|token| token == made));
    }

    #[test]
    fn the_key_of_another_purpose_makes_other_tokens() {
        let (ours, other) = (key(&secret("the")), crate::access::key(&secret("the")));
        assert_ne!(ours.sign(&[7; TOKEN_LEN]), other.sign(&[7; TOKEN_LEN]));
    }
}
