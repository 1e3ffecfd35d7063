//! The hop mark: a header that a gateway adds to forwarded requests, with the client's address. It
//! also means that the request was counted for rate limits.
//!
//! A role behind a gateway only sees the gateway's address. The client address is trusted because
//! it is signed, not because of where the connection comes from: addresses of processes change, and
//! any host may be on the same network.

use std::{net::IpAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use urr_kernel::Timestamp;

use crate::{Key, Refusal, Secret};

/// Validity in both directions. A mark is made for one request that is sent at once, and clocks
/// differ a little.
pub const LIFETIME: Duration = Duration::from_secs(30);

/// The purpose of the derived keys, and the first field of each mark.
const TYP: &str = "hop";

/// Longer marks are rejected unread. Ours have at most 105 bytes.
const MAX_LEN: usize = 128;

/// The key for marks.
pub fn key(secret: &Secret) -> Key {
    secret.key(TYP)
}

/// Signs marks with the newest key.
#[derive(Clone, Debug)]
pub struct Signer(Key);

impl Signer {
    /// Signs with `key`.
    pub fn new(key: Key) -> Self {
        Self(key)
    }

    /// Signs the mark of a request from `client`.
    pub fn sign(&self, client: IpAddr, now: Timestamp) -> String {
        let mut mark = format!("{TYP};{};{}", seconds(now), client.to_canonical());
        let signature = self.0.sign(mark.as_bytes());
        mark.push(';');
        URL_SAFE_NO_PAD.encode_string(signature, &mut mark);
        mark
    }
}

/// Verifies marks with the newest key and with earlier keys.
#[derive(Clone, Debug, Default)]
pub struct Verifier(Vec<Key>);

impl Verifier {
    /// Accepts marks signed with any of `keys`.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Returns the client's address if the mark is genuine and recent.
    pub fn verify(&self, mark: &str, now: Timestamp) -> Result<IpAddr, Refusal> {
        if mark.len() > MAX_LEN {
            return Err(Refusal::Invalid);
        }
        let (said, signature) = mark.rsplit_once(';').ok_or(Refusal::Invalid)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refusal::Invalid)?;
        if !self.0.iter().any(|key| key.verifies(said.as_bytes(), &signature)) {
            return Err(Refusal::Invalid);
        }
        let mut words = said.split(';');
        let (Some(TYP), Some(made), Some(client), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Refusal::Invalid);
        };
        let made: i64 = made.parse().map_err(|_| Refusal::Invalid)?;
        if made.abs_diff(seconds(now)) > LIFETIME.as_secs() {
            return Err(Refusal::Expired);
        }
        client.parse().map_err(|_| Refusal::Invalid)
    }
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn secret() -> Secret {
        Secret::new("correct horse battery staple, twice").unwrap()
    }

    fn pair() -> (Signer, Verifier) {
        (Signer::new(key(&secret())), Verifier::new([key(&secret())]))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn mark_carries_the_client_address() {
        let (signer, verifier) = pair();
        for (client, read) in [
            ("192.0.2.9", "192.0.2.9"),
            ("::ffff:192.0.2.9", "192.0.2.9"),
            ("2001:db8:1111:2222:3333:4444:5555:6666", "2001:db8:1111:2222:3333:4444:5555:6666"),
        ] {
            let mark = signer.sign(address(client), NOW);
            assert!(mark.len() <= MAX_LEN, "{mark}");
            assert_eq!(verifier.verify(&mark, NOW), Ok(address(read)));
        }
    }

    #[test]
    fn expired_and_modified_marks_are_rejected() {
        let (signer, verifier) = pair();
        let mark = signer.sign(address("192.0.2.9"), NOW);
        assert!(verifier.verify(&mark, NOW.after(LIFETIME)).is_ok());
        let late = NOW.after(LIFETIME + Duration::from_secs(1));
        assert_eq!(verifier.verify(&mark, late), Err(Refusal::Expired));
        let early = NOW.before(LIFETIME + Duration::from_secs(1));
        assert_eq!(verifier.verify(&mark, early), Err(Refusal::Expired));
        let other = mark.replace("192.0.2.9", "192.0.2.8");
        let long = format!("{mark}{}", "A".repeat(MAX_LEN));
        for bad in
            ["", ";", "hop;1700000000;192.0.2.9", &other, &format!("{mark}A"), &mark[..mark.len() - 1], &long]
        {
            assert_eq!(verifier.verify(bad, NOW), Err(Refusal::Invalid), "{bad}");
        }
    }

    #[test]
    fn keys_of_other_secrets_and_purposes_are_rejected() {
        let (_, verifier) = pair();
        let other = Secret::new("another horse battery staple, thrice").unwrap();
        for key in [key(&other), access::key(&secret())] {
            let mark = Signer::new(key).sign(address("192.0.2.9"), NOW);
            assert_eq!(verifier.verify(&mark, NOW), Err(Refusal::Invalid));
        }
        let mark = pair().0.sign(address("192.0.2.9"), NOW);
        let both = Verifier::new([key(&other), key(&secret())]);
        assert!(both.verify(&mark, NOW).is_ok(), "a former key verifies");
        assert_eq!(
            Verifier::default().verify(&mark, NOW),
            Err(Refusal::Invalid),
            "without a key every mark is rejected"
        );
        let access = access::Verifier::new([access::key(&secret())]);
        assert_eq!(access.verify(&mark, NOW), Err(Refusal::Invalid));
    }
}
