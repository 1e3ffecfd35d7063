//! Only an unmodified, unexpired access token is accepted.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::jwt::CLOCK_SKEW;

fn secret(text: &str) -> Secret {
    Secret::new(format!("{text}: correct horse battery staple")).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_500_000)
}

fn access() -> Access {
    Access {
        user: UserId::from_uuid(Uuid::from_u128(1)),
        role: Role::Admin,
        email: Some("fan@example.org".to_owned()),
        session: Uuid::from_u128(2),
    }
}

fn verifier() -> Verifier {
    Verifier::new([key(&secret("one"))])
}

fn token() -> String {
    Signer::new(key(&secret("one")), LIFETIME).sign(&access(), Uuid::from_u128(3), now())
}

/// A correctly signed token with these claims.
fn signed(claims: &Value) -> String {
    Jwt::new(key(&secret("one"))).sign(claims)
}

fn good_claims() -> Value {
    json!({
        "typ": "access", "role": "user", "iat": 1_700_000_000, "exp": 1_700_003_600,
        "sub": Uuid::from_u128(1), "sid": Uuid::from_u128(2), "jti": Uuid::from_u128(3),
    })
}

#[test]
fn token_round_trips() {
    let verified = verifier().verify(&token(), now()).unwrap();
    assert_eq!(verified.access, access());
    assert_eq!(verified.id, Uuid::from_u128(3));
    assert_eq!(verified.expires.since(verified.issued), LIFETIME);
    assert_eq!(verified.access.actor(), Actor::User { id: access().user, role: Role::Admin });
}

#[test]
fn email_is_optional() {
    let quiet = Access { email: None, ..access() };
    let token = Signer::new(key(&secret("one")), LIFETIME).sign(&quiet, Uuid::from_u128(3), now());
    assert_eq!(verifier().verify(&token, now()).unwrap().access, quiet);
}

#[test]
fn a_token_expires_after_its_lifetime_and_not_before() {
    let end = now().after(LIFETIME);
    let just_before = end.before(Duration::from_secs(1));
    assert!(verifier().verify(&token(), just_before).is_ok());
    assert_eq!(verifier().verify(&token(), end), Err(Refusal::Expired));
}

#[test]
fn a_token_from_the_future_is_invalid_beyond_clock_skew() {
    assert!(verifier().verify(&token(), now().before(CLOCK_SKEW)).is_ok());
    let earlier = now().before(CLOCK_SKEW + Duration::from_secs(1));
    assert_eq!(verifier().verify(&token(), earlier), Err(Refusal::Invalid));
}

#[test]
fn old_key_verifies_while_it_is_listed() {
    let rotated = Verifier::new([key(&secret("two")), key(&secret("one"))]);
    assert!(rotated.verify(&token(), now()).is_ok());
    let dropped = Verifier::new([key(&secret("two"))]);
    assert_eq!(dropped.verify(&token(), now()), Err(Refusal::Invalid));
    assert_eq!(Verifier::new([]).verify(&token(), now()), Err(Refusal::Invalid));
}

#[test]
fn key_of_another_purpose_is_rejected() {
    let entry = Signer::new(secret("one").key("entry"), LIFETIME);
    let token = entry.sign(&access(), Uuid::from_u128(3), now());
    assert_eq!(verifier().verify(&token, now()), Err(Refusal::Invalid));
}

#[test]
fn other_token_kinds_under_the_same_key_are_rejected() {
    assert!(verifier().verify(&signed(&good_claims()), now()).is_ok());
    for typ in [json!("entry"), json!("refresh"), json!("ACCESS"), json!(""), json!(null), json!(["access"])]
    {
        let mut claims = good_claims();
        claims["typ"] = typ;
        assert_eq!(verifier().verify(&signed(&claims), now()), Err(Refusal::Invalid), "{claims}");
    }
}

#[test]
fn missing_or_mistyped_claims_are_rejected() {
    for name in ["typ", "sub", "role", "sid", "jti", "iat", "exp"] {
        let mut claims = good_claims();
        claims.as_object_mut().unwrap().remove(name);
        assert_eq!(verifier().verify(&signed(&claims), now()), Err(Refusal::Invalid), "without {name}");
    }
    let wrong = [
        ("exp", json!("1700003600")),
        ("exp", json!(1_700_003_600.5)),
        ("exp", json!(1.0e30)),
        ("exp", json!(null)),
        ("exp", json!(1_700_000_000)),
        ("exp", json!(-1)),
        ("iat", json!("1700000000")),
        ("iat", json!(i64::MAX)),
        ("sub", json!("admin")),
        ("role", json!("root")),
        ("sid", json!(7)),
    ];
    for (name, value) in wrong {
        let mut claims = good_claims();
        claims[name] = value.clone();
        assert_eq!(verifier().verify(&signed(&claims), now()), Err(Refusal::Invalid), "{name}: {value}");
    }
    let mut endless = good_claims();
    endless["exp"] = json!(i64::MAX);
    assert!(verifier().verify(&signed(&endless), now()).is_ok(), "a distant expiry is valid");
}

#[test]
fn duplicate_claims_are_rejected() {
    let twice =
        good_claims().to_string().replace("\"role\":\"user\"", "\"role\":\"user\",\"role\":\"admin\"");
    let header = token().split('.').next().unwrap().to_owned();
    let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(twice));
    let signature = URL_SAFE_NO_PAD.encode(key(&secret("one")).sign(message.as_bytes()));
    assert_eq!(verifier().verify(&format!("{message}.{signature}"), now()), Err(Refusal::Invalid));
}

#[test]
fn other_algorithms_and_embedded_keys_are_rejected() {
    let kid = key(&secret("one")).id().to_owned();
    let claims = URL_SAFE_NO_PAD.encode(good_claims().to_string());
    for header in [
        json!({"alg": "none", "typ": "JWT"}),
        json!({"alg": "none", "kid": kid, "typ": "JWT"}),
        json!({"alg": "None", "kid": kid, "typ": "JWT"}),
        json!({"alg": "RS256", "kid": kid, "typ": "JWT"}),
        json!({"alg": "ES256", "kid": kid, "typ": "JWT"}),
        json!({"alg": "HS512", "kid": kid, "typ": "JWT"}),
        json!({"alg": "HS256", "typ": "JWT"}),
        json!({"alg": "HS256", "kid": "../../dev/null", "typ": "JWT"}),
        json!({"alg": "HS256", "kid": "' or 1=1 --", "typ": "JWT"}),
        json!({"alg": "HS256", "kid": kid, "typ": "JWT", "jku": "https://evil.example/keys"}),
        json!({"alg": "HS256", "kid": kid, "typ": "JWT", "jwk": {"kty": "oct", "k": "AAAA"}}),
        json!({"alg": "HS256", "kid": kid, "typ": "JWT", "crit": ["b64"], "b64": false}),
    ] {
        let message = format!("{}.{claims}", URL_SAFE_NO_PAD.encode(header.to_string()));
        let genuine = URL_SAFE_NO_PAD.encode(key(&secret("one")).sign(message.as_bytes()));
        let empty_key = URL_SAFE_NO_PAD.encode([0_u8; 32]);
        for signature in ["", &genuine, &empty_key] {
            let token = format!("{message}.{signature}");
            assert_eq!(verifier().verify(&token, now()), Err(Refusal::Invalid), "{header}");
        }
    }
}

#[test]
fn malformed_tokens_are_invalid() {
    let long = "a.".repeat(5_000);
    let padded = format!("{}=", token());
    let (message, _) = token().rsplit_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    for text in ["", ".", "..", "...", "a.b.c", "null", "토큰.토큰.토큰", "\0", &long, &padded, &message]
    {
        assert_eq!(verifier().verify(text, now()), Err(Refusal::Invalid), "{text}");
    }
}

proptest! {
    #[test]
    fn any_changed_byte_is_rejected(position in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let token = token();
        let mut bytes = token.clone().into_bytes();
        let position = position.index(bytes.len());
        prop_assume!(bytes[position] != byte);
        bytes[position] = byte;
        if let Ok(changed) = String::from_utf8(bytes) {
            prop_assert_eq!(verifier().verify(&changed, now()), Err(Refusal::Invalid));
        }
    }

    #[test]
    fn truncated_tokens_are_rejected(length in any::<prop::sample::Index>()) {
        let token = token();
        prop_assert!(verifier().verify(&token[..length.index(token.len())], now()).is_err());
    }

    #[test]
    fn arbitrary_text_is_rejected_without_panicking(text in "\\PC{0,200}") {
        prop_assert_eq!(verifier().verify(&text, now()), Err(Refusal::Invalid));
    }
}
