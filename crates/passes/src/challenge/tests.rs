//! Only an unmodified, unexpired challenge is accepted, and it is not accepted as any other token.

use proptest::prelude::*;
use serde_json::{Value, json};
use urr_kernel::Role;

use super::*;
use crate::{
    access::{self, Access, Signer, Verifier},
    jwt::CLOCK_SKEW,
};

fn secret(text: &str) -> Secret {
    Secret::new(format!("{text}: correct horse battery staple")).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_500_000)
}

fn challenges() -> Challenges {
    Challenges::new([key(&secret("one"))])
}

fn challenge() -> Challenge {
    let user = UserId::from_uuid(Uuid::from_u128(1));
    Challenge { user, method: "password".to_owned(), state: "abc".to_owned() }
}

fn token() -> String {
    challenges().sign(&challenge(), Uuid::from_u128(2), now()).0
}

#[test]
fn challenge_round_trips_for_five_minutes() {
    let (token, expires) = challenges().sign(&challenge(), Uuid::from_u128(2), now());
    assert_eq!(challenges().verify(&token, now()), Ok(challenge()));
    assert!(challenges().verify(&token, expires.before(Duration::from_secs(1))).is_ok());
    assert_eq!(challenges().verify(&token, expires), Err(Refusal::Expired));
    let earlier = now().before(CLOCK_SKEW + Duration::from_secs(1));
    assert_eq!(challenges().verify(&token, earlier), Err(Refusal::Invalid));
}

#[test]
fn challenge_is_no_other_token_and_no_other_token_is_a_challenge() {
    let secret = secret("one");
    let access = Access {
        user: UserId::from_uuid(Uuid::from_u128(1)),
        role: Role::Admin,
        email: None,
        session: Uuid::from_u128(3),
    };
    let signed = Signer::new(access::key(&secret), LIFETIME).sign(&access, Uuid::from_u128(4), now());
    assert_eq!(challenges().verify(&signed, now()), Err(Refusal::Invalid));
    let verifier = Verifier::new([access::key(&secret)]);
    assert_eq!(verifier.verify(&token(), now()), Err(Refusal::Invalid));

    // Not even if the same key is configured for both.
    let verifier = Verifier::new([key(&secret)]);
    assert_eq!(verifier.verify(&token(), now()), Err(Refusal::Invalid));
    let signed = Signer::new(key(&secret), LIFETIME).sign(&access, Uuid::from_u128(4), now());
    assert_eq!(challenges().verify(&signed, now()), Err(Refusal::Invalid));
}

#[test]
fn old_key_verifies_while_it_is_listed() {
    let rotated = Challenges::new([key(&secret("two")), key(&secret("one"))]);
    assert!(rotated.verify(&token(), now()).is_ok());
    assert!(challenges().verify(&rotated.sign(&challenge(), Uuid::from_u128(2), now()).0, now()).is_err());
    assert_eq!(Challenges::new([key(&secret("two"))]).verify(&token(), now()), Err(Refusal::Invalid));
}

#[test]
fn missing_claims_are_rejected() {
    let good = json!({
        "typ": "challenge", "sub": Uuid::from_u128(1), "method": "password", "state": "abc",
        "jti": Uuid::from_u128(2), "iat": 1_700_000_000, "exp": 1_700_000_300,
    });
    let jwt = Jwt::new(key(&secret("one")));
    assert!(challenges().verify(&jwt.sign(&good), now()).is_ok());
    for name in ["typ", "sub", "method", "state", "jti", "iat", "exp"] {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(name);
        assert_eq!(challenges().verify(&jwt.sign(&claims), now()), Err(Refusal::Invalid), "without {name}");
    }
    for typ in [json!("access"), json!("CHALLENGE"), Value::Null] {
        let mut claims = good.clone();
        claims["typ"] = typ;
        assert_eq!(challenges().verify(&jwt.sign(&claims), now()), Err(Refusal::Invalid), "{claims}");
    }
}

proptest! {
    #[test]
    fn any_changed_byte_is_rejected(position in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = token().into_bytes();
        let position = position.index(bytes.len());
        prop_assume!(bytes[position] != byte);
        bytes[position] = byte;
        if let Ok(changed) = String::from_utf8(bytes) {
            prop_assert_eq!(challenges().verify(&changed, now()), Err(Refusal::Invalid));
        }
    }

    #[test]
    fn arbitrary_text_is_rejected_without_panicking(text in "\\PC{0,200}") {
        prop_assert_eq!(challenges().verify(&text, now()), Err(Refusal::Invalid));
    }
}
