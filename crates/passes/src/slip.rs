//! Slips: what a browser carries for some minutes between two requests that belong together, such as a trip to somebody who knows
//! who it belongs to. A JWT like any other of ours, with a key of its own for every kind of slip.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use urr_kernel::Timestamp;
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// A slip that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip<C> {
    /// The slip's own id, for whoever takes each only once.
    pub id: Uuid,
    /// When it stops being good.
    pub expires: Timestamp,
    /// What it carries.
    pub carries: C,
}

/// Makes and reads the slips of one kind.
#[derive(Clone, Debug)]
pub struct Slips {
    kind: &'static str,
    keys: Vec<Jwt>,
}

#[derive(Serialize, Deserialize)]
struct Claims<C> {
    typ: String,
    jti: Uuid,
    iat: i64,
    exp: i64,
    carries: C,
}

/// The key for slips of a kind.
pub fn key(kind: &str, secret: &Secret) -> Key {
    secret.key(&format!("slip {kind}"))
}

impl Slips {
    /// Slips of any of `keys`, made by the first.
    pub fn new(kind: &'static str, keys: impl IntoIterator<Item = Key>) -> Self {
        Self { kind, keys: keys.into_iter().map(Jwt::new).collect() }
    }

    /// A slip that is good until `expires`. `id` makes it unlike any other.
    pub fn sign(&self, carries: &impl Serialize, id: Uuid, (now, expires): (Timestamp, Timestamp)) -> String {
        let typ = self.kind.to_owned();
        let jwt = self.keys.first().expect("a signer has a key");
        jwt.sign(&Claims { typ, jti: id, iat: seconds(now), exp: seconds(expires), carries })
    }

    /// What the slip carries, if it is one of ours, of this kind, and good at `now`.
    pub fn verify<C: DeserializeOwned>(&self, slip: &str, now: Timestamp) -> Result<Slip<C>, Refusal> {
        let claims: Claims<C> = jwt::verify(&self.keys, slip)?;
        if claims.typ != self.kind {
            return Err(Refusal::Invalid);
        }
        jwt::within(claims.iat, claims.exp, now)?;
        Ok(Slip { id: claims.jti, expires: instant(claims.exp), carries: claims.carries })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::access;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
    const ID: Uuid = Uuid::from_u128(7);

    fn secret(text: &str) -> Secret {
        Secret::new(format!("{text}, a secret of tests, long enough")).unwrap()
    }

    fn slips(kind: &'static str, secrets: &[&Secret]) -> Slips {
        Slips::new(kind, secrets.iter().map(|secret| key(kind, secret)))
    }

    fn expires() -> Timestamp {
        NOW.after(Duration::from_mins(10))
    }

    #[test]
    fn a_slip_says_what_it_carries_until_its_time_is_over() {
        let slips = slips("trip", &[&secret("new")]);
        let slip = slips.sign(&("google", 7), ID, (NOW, expires()));
        let read: Slip<(String, u8)> = slips.verify(&slip, NOW).unwrap();
        assert_eq!(read, Slip { id: ID, expires: expires(), carries: ("google".to_owned(), 7) });
        assert_eq!(slips.verify::<(String, u8)>(&slip, expires()), Err(Refusal::Expired));
        assert_eq!(slips.verify::<u8>(&slip, NOW), Err(Refusal::Invalid), "it carries something else");
    }

    #[test]
    fn slips_of_another_kind_or_secret_are_refused_and_of_a_former_secret_accepted() {
        let (old, new) = (secret("old"), secret("new"));
        let slip = slips("trip", &[&old]).sign(&1, ID, (NOW, expires()));
        let verify = |all: Slips| all.verify::<u8>(&slip, NOW).map(|slip| slip.carries);
        assert_eq!(verify(slips("trip", &[&new, &old])), Ok(1));
        assert_eq!(verify(slips("trip", &[&new])), Err(Refusal::Invalid));
        assert_eq!(verify(slips("sign-up", &[&old])), Err(Refusal::Invalid));
    }

    #[test]
    fn neither_is_a_slip_an_access_token_nor_the_other_way_round() {
        let secret = secret("the");
        let slips = slips("access", &[&secret]);
        let slip = slips.sign(&1, ID, (NOW, expires()));
        let verifier = access::Verifier::new([access::key(&secret)]);
        assert_eq!(verifier.verify(&slip, NOW), Err(Refusal::Invalid));
        let user = access::Access {
            user: urr_kernel::UserId::from_uuid(ID),
            role: urr_kernel::Role::User,
            email: None,
            session: ID,
        };
        let token = access::Signer::new(access::key(&secret), access::LIFETIME).sign(&user, ID, NOW);
        assert_eq!(slips.verify::<serde_json::Value>(&token, NOW), Err(Refusal::Invalid));
    }

    #[test]
    fn a_changed_byte_anywhere_is_noticed() {
        let slips = slips("trip", &[&secret("new")]);
        let slip = slips.sign(&1, ID, (NOW, expires()));
        for at in 0..slip.len() {
            let mut changed = slip.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(slips.verify::<u8>(&changed, NOW), Err(Refusal::Invalid), "byte {at}");
        }
    }
}
