//! State tokens: short-lived state that a browser carries between two related requests, such as a
//! redirect to an identity provider. A JWT with its own key per kind of state token.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use urr_kernel::Timestamp;
use uuid::Uuid;

use crate::{
    Key, Refusal, Secret,
    jwt::{self, Jwt, instant, seconds},
};

/// A verified state token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateToken<C> {
    /// The state token's id, for callers that accept each state token only once.
    pub id: Uuid,
    /// Expiry.
    pub expires: Timestamp,
    /// The payload.
    pub carries: C,
}

/// Signs and verifies state tokens of one kind.
#[derive(Clone, Debug)]
pub struct StateTokens {
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

/// The key for state tokens of a kind.
pub fn key(kind: &str, secret: &Secret) -> Key {
    secret.key(&format!("slip {kind}"))
}

impl StateTokens {
    /// Signs with the first of `keys` and verifies with all of them.
    pub fn new(kind: &'static str, keys: impl IntoIterator<Item = Key>) -> Self {
        Self { kind, keys: keys.into_iter().map(Jwt::new).collect() }
    }

    /// Signs a state token that is valid until `expires`. `id` makes it unique.
    pub fn sign(&self, carries: &impl Serialize, id: Uuid, (now, expires): (Timestamp, Timestamp)) -> String {
        let typ = self.kind.to_owned();
        let jwt = self.keys.first().expect("signing needs at least one key");
        jwt.sign(&Claims { typ, jti: id, iat: seconds(now), exp: seconds(expires), carries })
    }

    /// Returns the contents if the state token is genuine, of this kind, and valid at `now`.
    pub fn verify<C: DeserializeOwned>(
        &self,
        state_token: &str,
        now: Timestamp,
    ) -> Result<StateToken<C>, Refusal> {
        let claims: Claims<C> = jwt::verify(&self.keys, state_token)?;
        if claims.typ != self.kind {
            return Err(Refusal::Invalid);
        }
        jwt::within(claims.iat, claims.exp, now)?;
        Ok(StateToken { id: claims.jti, expires: instant(claims.exp), carries: claims.carries })
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

    fn state_tokens(kind: &'static str, secrets: &[&Secret]) -> StateTokens {
        StateTokens::new(kind, secrets.iter().map(|secret| key(kind, secret)))
    }

    fn expires() -> Timestamp {
        NOW.after(Duration::from_mins(10))
    }

    #[test]
    fn token_round_trips_until_it_expires() {
        let state_tokens = state_tokens("trip", &[&secret("new")]);
        let state_token = state_tokens.sign(&("google", 7), ID, (NOW, expires()));
        let read: StateToken<(String, u8)> = state_tokens.verify(&state_token, NOW).unwrap();
        assert_eq!(read, StateToken { id: ID, expires: expires(), carries: ("google".to_owned(), 7) });
        assert_eq!(state_tokens.verify::<(String, u8)>(&state_token, expires()), Err(Refusal::Expired));
        assert_eq!(
            state_tokens.verify::<u8>(&state_token, NOW),
            Err(Refusal::Invalid),
            "the payload has another type"
        );
    }

    #[test]
    fn other_kinds_and_secrets_are_rejected_and_former_secrets_accepted() {
        let (old, new) = (secret("old"), secret("new"));
        let state_token = state_tokens("trip", &[&old]).sign(&1, ID, (NOW, expires()));
        let verify =
            |all: StateTokens| all.verify::<u8>(&state_token, NOW).map(|state_token| state_token.carries);
        assert_eq!(verify(state_tokens("trip", &[&new, &old])), Ok(1));
        assert_eq!(verify(state_tokens("trip", &[&new])), Err(Refusal::Invalid));
        assert_eq!(verify(state_tokens("sign-up", &[&old])), Err(Refusal::Invalid));
    }

    #[test]
    fn slips_and_access_tokens_are_not_interchangeable() {
        let secret = secret("the");
        let state_tokens = state_tokens("access", &[&secret]);
        let state_token = state_tokens.sign(&1, ID, (NOW, expires()));
        let verifier = access::Verifier::new([access::key(&secret)]);
        assert_eq!(verifier.verify(&state_token, NOW), Err(Refusal::Invalid));
        let user = access::Access {
            user: urr_kernel::UserId::from_uuid(ID),
            role: urr_kernel::Role::User,
            email: None,
            session: ID,
        };
        let token = access::Signer::new(access::key(&secret), access::LIFETIME).sign(&user, ID, NOW);
        assert_eq!(state_tokens.verify::<serde_json::Value>(&token, NOW), Err(Refusal::Invalid));
    }

    #[test]
    fn changed_byte_is_rejected() {
        let state_tokens = state_tokens("trip", &[&secret("new")]);
        let state_token = state_tokens.sign(&1, ID, (NOW, expires()));
        for at in 0..state_token.len() {
            let mut changed = state_token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(state_tokens.verify::<u8>(&changed, NOW), Err(Refusal::Invalid), "byte {at}");
        }
    }
}
